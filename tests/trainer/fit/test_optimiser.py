"""The optimisers' steps against their formulas, written out."""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from archive.architecture.decoders.design import Block
from archive.architecture.decoders.parts import Attention, Gelu
from archive.errors import UsageError
from archive.trainer.fit.hyperparameters import Hyperparameters
from archive.trainer.fit.optimisers import Optimiser, optimisers_of, orthogonalise
from archive.trainer.nn import builders
from archive.trainer.protocols.networks import NetworkForm
from archive.trainer.tasks import registry
from tests.support.networks.decoders import network_of


def protocol(rule, decay, momentum=0.9):
    own = registry.get("diabetes").protocol()
    return dataclasses.replace(own, optimiser=rule, weight_decay=decay, momentum=momentum)


def adamw(start, gradients, rates, decay):
    x = start.clone()
    mean = torch.zeros_like(start)
    square = torch.zeros_like(start)
    for t, (gradient, rate) in enumerate(zip(gradients, rates, strict=True), start=1):
        x = x - rate * decay * x
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        x = x - rate * (mean / (1 - 0.9**t)) / ((square / (1 - 0.999**t)).sqrt() + 1e-8)

    return x


def sgd(start, gradients, rates, decay, coefficient=0.9):
    x = start.clone()
    momentum = torch.zeros_like(start)
    for gradient, rate in zip(gradients, rates, strict=True):
        gradient = gradient + decay * x
        momentum = coefficient * momentum + gradient
        x = x - rate * (gradient + coefficient * momentum)

    return x


@pytest.mark.parametrize(
    ("rule", "momentum", "formula"),
    [
        ("adamw", 0.9, adamw),
        ("sgd", 0.9, sgd),
        ("sgd", 0.5, partial(sgd, coefficient=0.5)),
        ("sgd", 0.0, partial(sgd, coefficient=0.0)),
    ],
)
def test_steps_follow_the_formula_and_only_matrices_decay(rule, momentum, formula):
    generator = torch.Generator().manual_seed(0)
    shapes = [(3, 4), (5,), (2, 3, 3, 3)]
    parameters = [nn.Parameter(torch.randn(shape, generator=generator)) for shape in shapes]
    starts = [parameter.detach().double() for parameter in parameters]
    gradients = [[torch.randn(shape, generator=generator) for shape in shapes] for _ in range(5)]
    rates = [0.01, 0.1, 0.05, 0.02, 0.001]
    optimiser = Optimiser(parameters, protocol(rule, 0.3, momentum))
    for step, rate in zip(gradients, rates, strict=True):
        for parameter, gradient in zip(parameters, step, strict=True):
            parameter.grad = gradient.clone()

        optimiser.step(rate)
        assert all(parameter.grad is None for parameter in parameters)

    for place, parameter in enumerate(parameters):
        own = [step[place].double() for step in gradients]
        expected = formula(starts[place], own, rates, 0.3 if parameter.ndim > 1 else 0.0)
        np.testing.assert_allclose(parameter.detach(), expected, rtol=1e-5, atol=1e-6)


def test_a_network_without_vectors_or_without_anything_to_learn():
    parameter = nn.Parameter(torch.ones(2, 2))
    parameter.grad = torch.ones(2, 2)
    Optimiser([parameter], protocol("adamw", 0.0)).step(0.5)
    np.testing.assert_allclose(parameter.detach(), 0.5, rtol=1e-6)
    Optimiser([], protocol("sgd", 0.0)).step(0.5)


def test_muon_steps_along_an_orthogonal_matrix():
    generator = torch.Generator().manual_seed(0)
    matrices = torch.randn(2, 6, 20, generator=generator)
    values = torch.linalg.svdvals(orthogonalise(matrices))
    # The coefficients make the slopes steep, not the limit exact.
    assert 0.6 < values.min() and values.max() < 1.3
    torch.testing.assert_close(orthogonalise(matrices.mT), orthogonalise(matrices).mT)


@pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="torch before 2.9 has no Muon")
def test_muon_takes_the_steps_of_torch():
    generator = torch.Generator().manual_seed(0)
    starts = [torch.randn(shape, generator=generator) for shape in [(6, 20), (20, 6), (6, 20)]]
    ours = [nn.Parameter(start.clone()) for start in starts]
    theirs = [nn.Parameter(start.clone()) for start in starts]
    first = Optimiser(ours, protocol("muon", 0.3))
    second = torch.optim.Muon(
        theirs, lr=0.1, weight_decay=0.3, momentum=0.95, adjust_lr_fn="match_rms_adamw"
    )
    for step in range(4):
        if step == 2:
            # As after an interruption.
            state = {name: tensor.clone() for name, tensor in first.state().items()}
            first = Optimiser(ours, protocol("muon", 0.3))
            first.resume(state)

        for own, other in zip(ours, theirs, strict=True):
            own.grad = torch.randn(own.shape, generator=generator)
            other.grad = own.grad.clone()

        first.step(0.1)
        second.step()

    for own, other, start in zip(ours, theirs, starts, strict=True):
        # The iterations of torch are in bfloat16.
        torch.testing.assert_close(own - start, other - start, rtol=0.05, atol=0.02)


def decoder(width, form_options, tied=False):
    attention = Attention(2, 2, width // 2, 10_000.0)
    network = network_of(Block(attention, Gelu(2 * width)), width=width, tied=tied)
    return builders.build(network, NetworkForm((12,), 11, "language", options=form_options), 0)


def test_muon_trains_hidden_matrices_and_the_width_scales_their_rate():
    text = dataclasses.replace(protocol("muon", 0.1), learning_rate=0.01)
    module = decoder(32, {"base_width": 8})
    (hidden, rate), (others, other_rate) = optimisers_of(module, text, Hyperparameters())
    assert rate == pytest.approx(0.01 * 0.5) and other_rate == 0.01
    (matrices,) = hidden.groups
    assert {p.shape for p in matrices.parameters} == {(32, 32), (64, 32), (32, 64)}
    ends = others.groups[0].parameters
    assert {id(p) for p in ends} == {id(module.embedding.weight), id(module.head.weight)}
    adamw = dataclasses.replace(text, optimiser="adamw")
    assert [rate for _, rate in optimisers_of(module, adamw, Hyperparameters())] == [0.0025, 0.01]
    assert len(optimisers_of(decoder(32, {}), adamw, Hyperparameters())) == 1
    with pytest.raises(UsageError, match="muon trains decoders, got a Linear"):
        optimisers_of(nn.Linear(2, 2), text, Hyperparameters())


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("rule", ["adamw", "muon"])
def test_activations_do_not_grow_with_the_width(rule, tied):
    """Coordinate check of Yang et al. (2022, appendix D.1)."""

    def growth(options):
        sizes = []
        for width in (32, 512):
            module = decoder(width, options, tied)
            tokens = torch.arange(48).reshape(4, 12) % 11
            before = module(tokens).detach()
            rules = dataclasses.replace(protocol(rule, 0.0), learning_rate=0.02)
            optimisers = optimisers_of(module, rules, Hyperparameters())
            for _ in range(4):
                logits = module(tokens[:, :-1])
                loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
                loss.backward()
                for optimiser, rate in optimisers:
                    optimiser.step(rate)

            sizes.append(float((module(tokens).detach() - before).abs().mean()))

        return sizes[1] / sizes[0]

    assert growth({"base_width": 32}) < 1.3 < growth({}) / 1.5


@pytest.mark.parametrize(("rule", "momentum"), [("adamw", 0.9), ("sgd", 0.9), ("sgd", 0.0)])
@pytest.mark.parametrize("before", [0, 3])
def test_resumed_optimiser_takes_the_same_steps(rule, momentum, before):
    generator = torch.Generator().manual_seed(0)
    kernel = torch.randn(4, 3, 3, 3, generator=generator).to(memory_format=torch.channels_last)
    ours = [nn.Parameter(kernel), nn.Parameter(torch.randn(5, generator=generator))]
    first = Optimiser(ours, protocol(rule, 0.3, momentum))

    def step(optimiser, parameters, k):
        noise = torch.Generator().manual_seed(k)
        for parameter in parameters:
            parameter.grad = torch.empty_like(parameter).copy_(
                torch.randn(parameter.shape, generator=noise)
            )

        optimiser.step(0.01 * k)

    for k in range(before):
        step(first, ours, k)

    theirs = [nn.Parameter(p.detach().clone()) for p in ours]
    second = Optimiser(theirs, protocol(rule, 0.3, momentum))
    # As from a file: in the order of the axes, whatever the parameter's.
    second.resume(
        {
            name: tensor.clone(memory_format=torch.contiguous_format)
            for name, tensor in first.state().items()
        }
    )
    for k in range(before, before + 3):
        step(first, ours, k)
        step(second, theirs, k)
        assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("name", ["adamw", "sgd"])
def test_rate_in_a_tensor_is_that_number(name):
    ends = []
    for rate in (0.25, torch.tensor(0.25)):
        weights = nn.Parameter(torch.arange(6.0).reshape(2, 3))
        optimiser = Optimiser([weights], protocol(name, 0.1))
        for k in range(3):
            (weights**2 * (k + 1)).sum().backward()
            optimiser.step(rate)

        ends.append(weights.detach())

    assert torch.equal(*ends)
