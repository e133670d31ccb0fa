"""Morphisms: the changed graph, and weights that preserve the function."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from archive import spaces
from archive.architecture.graph import Architecture, Layer
from archive.errors import InvalidArchitectureError
from archive.spaces import morphism
from archive.trainer.nn import builders
from archive.trainer.protocols.networks import NetworkForm

GROWING = {"deepen", "widen", "skip_add", "skip_concat"}


def chain(space, *inner):
    last = "softmax" if space == "cnn" else "linear"
    layers = [Layer("ip"), *inner, Layer(last), Layer("op")]
    return Architecture(space, layers, [(u, u + 1) for u in range(len(layers) - 1)])


CNN = chain(
    "cnn", Layer("conv3", 8), Layer("max-pool", None, 2), Layer("conv5", 12, 2), Layer("fc", 16)
)
MLP = chain("mlp", Layer("relu", 8), Layer("tanh", 12), Layer("crelu", 6))


def built(architecture, seed=0):
    shape, outputs, kind = (
        ((1, 8, 8), 3, "classification") if architecture.space == "cnn" else ((5,), 1, "regression")
    )
    network = builders.build(architecture, NetworkForm(shape, outputs, kind, False), seed)
    return network.eval().double()


def total(architecture):
    return sum(layer.units or 0 for layer in architecture.layers)


def inputs(architecture):
    shape = (7, 1, 8, 8) if architecture.space == "cnn" else (7, 5)
    return torch.randn(shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def same_function(one, other, architecture):
    x = inputs(architecture)
    with torch.no_grad():
        torch.testing.assert_close(one(x), other(x))


def copied(child, parent, positions):
    """Give layers of the child the weights of the parent's: child position to parent position."""
    for new, old in positions.items():
        child.layers[new].load_state_dict(parent.layers[old].state_dict())


def test_deepen_inserts_a_layer_that_can_be_the_identity():
    child = morphism.deepen(CNN, 1, "conv5")
    assert [layer.op for layer in child.layers] == [
        "ip",
        "conv3",
        "conv5",
        "max-pool",
        "conv5",
        "fc",
        "softmax",
        "op",
    ]
    assert child.layers[2] == Layer("conv5", 8)
    parent = built(CNN)
    new = built(child, seed=9)
    copied(new, parent, {1: 1, 4: 3, 5: 4, 6: 5})
    with torch.no_grad():
        torch.nn.init.dirac_(new.layers[2].filter.weight)

    same_function(parent, new, CNN)


def test_deepen_after_a_pool_is_as_wide_as_what_enters_the_pool():
    assert morphism.deepen(CNN, 2, "conv3").layers[3] == Layer("conv3", 8)
    assert morphism.deepen(CNN, 4, "fc").layers[5] == Layer("fc", 16)


def test_deepen_takes_over_all_outgoing_edges():
    branched = morphism.skip_concat(MLP, 1, 3)
    child = morphism.deepen(branched, 1, "relu")
    assert child.children[1] == (2,)
    assert child.children[2] == (3, 4)


def test_deepen_keeps_both_signs_with_a_crelu():
    # tanh is negative half of the time: relu would lose that, crelu keeps it in its second half.
    child = morphism.deepen(MLP, 2, "crelu")
    assert child.layers[3] == Layer("crelu", 12)
    parent = built(MLP)
    new = built(child, seed=9)
    copied(new, parent, {1: 1, 2: 2, 5: 4})
    with torch.no_grad():
        new.layers[3].affine.weight.copy_(torch.eye(12))
        new.layers[3].affine.bias.zero_()
        old = parent.layers[3].affine
        new.layers[4].affine.weight.copy_(torch.cat([old.weight, -old.weight], dim=1))
        new.layers[4].affine.bias.copy_(old.bias)

    same_function(parent, new, MLP)
    with pytest.raises(InvalidArchitectureError, match="relu cannot be the identity"):
        morphism.deepen(MLP, 2, "relu")


def test_widen_shares_copies_out():
    child = morphism.widen(MLP, 1)
    assert child.layers[1] == Layer("relu", 16)
    parent = built(MLP)
    new = built(child, seed=9)
    copied(new, parent, {3: 3, 4: 4})
    with torch.no_grad():
        first = parent.layers[1].affine
        second = parent.layers[2].affine
        new.layers[1].affine.weight.copy_(first.weight.repeat(2, 1))
        new.layers[1].affine.bias.copy_(first.bias.repeat(2))
        new.layers[2].affine.weight.copy_(second.weight.repeat(1, 2) / 2)
        new.layers[2].affine.bias.copy_(second.bias)

    same_function(parent, new, MLP)


def test_skip_add_adds_zeros_at_first():
    child = morphism.skip_add(CNN, 1, "res3")
    assert child.layers[2] == Layer("res3", 8)
    parent = built(CNN)
    new = built(child, seed=9)
    copied(new, parent, {1: 1, 4: 3, 5: 4, 6: 5})
    assert new.layers[2].projection is None
    with torch.no_grad():
        new.layers[2].second.weight.zero_()

    same_function(parent, new, CNN)


def test_skip_concat_is_blind_to_what_is_new():
    child = morphism.skip_concat(MLP, 1, 3)
    assert child.parents[3] == (1, 2)
    parent = built(MLP)
    new = built(child, seed=9)
    copied(new, parent, {1: 1, 2: 2, 4: 4})
    with torch.no_grad():
        old = parent.layers[3].affine
        new.layers[3].affine.weight.copy_(torch.cat([torch.zeros(6, 8), old.weight], dim=1))
        new.layers[3].affine.bias.copy_(old.bias)

    same_function(parent, new, MLP)


def test_widths_add_up_where_layers_meet():
    assert morphism.widths(MLP) == (None, 8, 12, 12, None, None)
    assert morphism.widths(CNN) == (None, 8, 8, 12, 16, None, None)
    joined = morphism.skip_concat(
        chain("cnn", Layer("conv3", 8), Layer("conv3", 9), Layer("max-pool", None, 2)), 1, 3
    )
    assert morphism.widths(joined)[3] == 17


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: morphism.widen(CNN, 2), "max-pool has no units to widen"),
        (lambda: morphism.widen(CNN, 1, 8), "more than 8 units, got 8"),
        (lambda: morphism.deepen(CNN, 0, "conv3"), "conv3 cannot be the identity"),
        (lambda: morphism.deepen(CNN, 1, "fc"), "conv3, conv5, conv7"),
        (lambda: morphism.skip_add(CNN, 4, "res3"), "res3 cannot add the output"),
        (lambda: morphism.skip_concat(CNN, 1, 2), r"got \(1, 2\)"),
        (lambda: morphism.skip_concat(CNN, 1, 5), "image sizes"),
    ],
)
def test_what_is_no_morphism_is_refused(call, message):
    with pytest.raises(InvalidArchitectureError, match=message):
        call()


@pytest.mark.parametrize("name", ["cnn", "mlp"])
def test_every_choice_grows_the_network(name):
    space = spaces.get(name)
    rng = np.random.default_rng(0)
    for _ in range(3):
        parent = space.sample(rng)
        every = morphism.choices(parent)
        assert set(every) <= GROWING
        assert "skip_add" not in every or name == "cnn"
        for operation, calls in every.items():
            for at in rng.choice(len(calls), min(6, len(calls)), replace=False):
                try:
                    child = calls[at]()
                except InvalidArchitectureError:
                    assert operation == "skip_concat"
                    continue

                grown = total(child) - total(parent)
                assert (len(child.layers), len(child.edges), grown) > (
                    len(parent.layers),
                    len(parent.edges),
                    0,
                ) or (operation == "widen" and grown > 0)
                assert child.key != parent.key


def test_cells_have_no_morphisms():
    assert morphism.choices(spaces.get("nasbench201").initial_pool()[0]) == {}
    assert morphism.choices(spaces.get("nasbench101").initial_pool()[0]) == {}
