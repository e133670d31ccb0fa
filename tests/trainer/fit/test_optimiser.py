"""The optimisers' steps against their formulas, written out."""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from archive.trainer.fit.steps import Optimiser
from archive.trainer.tasks import registry


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
