"""The contract of a builder, over the builders of all spaces."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from archive import spaces
from archive.errors import InvalidArchitectureError
from archive.trainer.nn import builders, costs
from archive.trainer.nn.base import CountsFlops, HasAuxiliaryHead, HasProgress, weighted_layers
from archive.trainer.protocols.base import SMALL_CELLS
from archive.trainer.protocols.networks import NetworkForm
from tests.support.networks.torch_nets import classifiers
from tests.support.strategies import relabelled

SPACES = sorted({*builders.names()} & {*spaces.names()})
IMAGES = NetworkForm((1, 8, 8), 10, "classification", options=SMALL_CELLS)
TEXT = NetworkForm((8,), 256, "language")
VECTORS = NetworkForm((6,), 1, "regression", options=SMALL_CELLS)
SHAPES = [(3, 7, 5), (1, 1, 1), (2, 2, 9)]


def form_of(space):
    return {"mlp": VECTORS, "decoder": TEXT}.get(space, IMAGES)


def sampled(space, count=4, seed=0):
    if space == "torch":
        return classifiers()[:count]

    rng = np.random.default_rng(seed)
    return [spaces.get(space).sample(rng) for _ in range(count)]


def inputs(form, count=5, seed=1):
    if form is TEXT:
        generator = torch.Generator().manual_seed(seed)
        return torch.randint(form.outputs, (count, *form.input_shape), generator=generator)

    return torch.randn((count, *form.input_shape), generator=torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module", params=SPACES)
def case(request):
    """A space, the form of its networks, and networks of sampled members."""
    form = form_of(request.param)
    members = sampled(request.param)
    return request.param, form, [(member, builders.build(member, form, 3)) for member in members]


def test_every_built_in_space_has_a_builder():
    # Decisions without a meaning of their own are no network; parameters, programs and
    # graphs of operations are the user's.
    built = set(spaces.registry.built_in) - {"choices", "graph", "parameters", "program"}
    assert built <= set(builders.names())


def test_outputs_are_finite_and_of_the_forms_shape(case):
    _, form, built = case
    for _, network in built:
        for mode in (True, False):
            shape = (5, 8, 256) if form is TEXT else (5, form.outputs)
            assert network.train(mode)(inputs(form)).shape == shape
            assert network(inputs(form)).isfinite().all()


def test_live_layers_learn(case):
    _, form, built = case
    for member, network in built:
        network.train()
        target = torch.zeros(5, form.outputs) if form.kind == "regression" else torch.arange(5)
        loss = (
            torch.nn.functional.mse_loss
            if form.kind == "regression"
            else torch.nn.functional.cross_entropy
        )
        outputs = network(inputs(form))
        loss(outputs[:, -1] if form is TEXT else outputs, target).backward()
        without = [name for name, parameter in network.named_parameters() if parameter.grad is None]
        if len(member.live) == len(member.layers) and not isinstance(network, HasAuxiliaryHead):
            assert not without

        assert all(p.grad.isfinite().all() for p in network.parameters() if p.grad is not None)
        assert any(p.grad is not None and p.grad.abs().max() > 0 for p in network.parameters())
        network.zero_grad()


def test_an_output_depends_on_its_own_input_alone(case):
    _, form, built = case
    for _, network in built:
        network.eval()
        x = inputs(form)
        torch.testing.assert_close(network(x)[1:2], network(x[1:2]), rtol=1e-4, atol=1e-5)


def test_the_seed_decides_the_initial_weights(case):
    _, form, built = case
    state = torch.get_rng_state()
    for member, _ in built[:2]:
        first, again, other = (
            builders.build(member, form, seed).state_dict() for seed in (3, 3, 4)
        )
        assert all(torch.equal(first[name], again[name]) for name in first)
        assert any(not torch.equal(first[name], other[name]) for name in first)

    assert torch.equal(state, torch.get_rng_state())


def test_weights_make_a_network_again(case):
    _, form, built = case
    for member, network in built[:2]:
        other = builders.build(member, form, 9)
        other.load_state_dict(network.state_dict())
        torch.testing.assert_close(other.eval()(inputs(form)), network.eval()(inputs(form)))


def test_relabellings_have_one_canonical_network(case):
    _, form, built = case
    for member, _ in built[:2]:
        first, second = (
            builders.build(each.canonical, form, 3).eval()(inputs(form))
            for each in (member, relabelled(member, 1))
        )
        assert torch.equal(first, second)


def test_costs_are_those_of_the_built_network(case):
    _, form, built = case
    for member, network in built:
        mode = network.train().training
        measured = costs.measure(network, form.input_shape)
        assert network.training == mode
        assert builders.costs(member, form) == measured
        auxiliary = (
            network.auxiliary if isinstance(network, HasAuxiliaryHead) else torch.nn.Identity()
        )
        assert measured.params == sum(
            p.numel()
            for p in network.parameters()
            if not any(p is other for other in auxiliary.parameters())
        )


def test_operations_are_those_that_torch_counts(case):
    _, form, built = case
    for _, network in built[:2]:
        if isinstance(network, CountsFlops):
            # A definition of its own; `tests.trainer.nn.decoders` compares its matrices.
            continue

        with FlopCounterMode(display=False) as counter, torch.no_grad():
            network.eval()(inputs(form, 1))

        assert (
            costs.flops(network, form.input_shape) - biases(network, form)
            == counter.get_total_flops() // 2
        )


def biases(network, form):
    """Return the additions of biases, from the outputs of the layers that have one."""
    found = []

    def hook(layer, _, output):
        found.append(output.numel())

    layers = [part for part in network.modules() if getattr(part, "bias", None) is not None]
    layers = [
        part
        for part in layers
        if getattr(part, "weight", None) is not None and part.weight.ndim > 1
    ]
    handles = [part.register_forward_hook(hook) for part in layers]
    with torch.no_grad():
        network.eval()(inputs(form, 1))

    for handle in handles:
        handle.remove()

    return sum(found)


# A vector is the input of an `mlp`, text of a `decoder`; a network of `torch` takes what it was imported for.
OF_IMAGES = [space for space in SPACES if space not in ("decoder", "mlp", "torch")]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("space", OF_IMAGES)
def test_images_of_any_size_are_taken(space, shape):
    form = dataclasses.replace(IMAGES, input_shape=shape, outputs=3)
    for member in sampled(space, 2, seed=5):
        assert builders.build(member, form).eval()(inputs(form)).shape == (5, 3)


@pytest.mark.parametrize("space", OF_IMAGES)
def test_vectors_are_refused_by_spaces_of_images(space):
    with pytest.raises(
        InvalidArchitectureError,
        match=rf"a network of {space} needs images, .* "
        r"shape \(6,\)",
    ):
        builders.get(space).check(VECTORS)


def test_every_layer_with_weights_takes_hyperparameters(case):
    _, _, built = case
    for _, network in built[:1]:
        layers = weighted_layers(network)
        assert layers
        # Scales and tables of positions are no weights of a layer.
        named = network.named_parameters()
        matrices = {id(p) for name, p in named if p.ndim > 1 and not name.startswith("parameter_")}
        assert matrices == {id(p) for layer in layers for p in layer.parameters() if p.ndim > 1}
        if isinstance(network, HasProgress):
            network.set_progress(0.5)
