"""Repeated blocks: folding, writing out, and what stays as it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive import spaces
from archive.architecture.aten.blocks import fold, unfold
from archive.architecture.aten.weights import parameters
from archive.architecture.graph import Architecture, Layer
from archive.architecture.layer_mass import total_mass
from archive.errors import InvalidArchitectureError
from tests.support import examples
from tests.support.networks.torch_nets import chain, layer, network, networks
from tests.support.strategies import relabelled

TORCH = spaces.get("torch")
RELU = layer("relu")


def linear(features: int = 8) -> Layer:
    return layer("linear", weight=[features, features])


def times(net: Architecture) -> list[int]:
    return sorted(each.attributes["times"] for each in net.layers if each.op == "block_start")


def residual_chain(blocks: int) -> Architecture:
    """Blocks x + scale * relu(x), each with a scale of its own: a source within the block."""
    inner = []
    edges = []
    last = 0
    for _ in range(blocks):
        at = len(inner) + 1
        inner += [RELU, layer("parameter", shape=[8]), layer("mul"), layer("add")]
        edges += [
            (last, at, 0),
            (0, at + 1),
            (at, at + 2, 0),
            (at + 1, at + 2, 0),
            (last, at + 3, 0),
            (at + 2, at + 3, 0),
        ]
        last = at + 3

    return network(inner, [*edges, (last, len(inner) + 1, 0)], "8")


@given(networks(), st.integers(0, 99))
@examples(2)
def test_a_folded_network_is_written_out_as_it_was(net: Architecture, seed: int) -> None:
    folded = fold(net)
    TORCH.validate(folded)
    assert unfold(folded).key == net.key
    assert len(folded.layers) <= len(net.layers)
    assert parameters(folded) == parameters(net)
    assert total_mass(folded) == pytest.approx(total_mass(net))
    assert fold(relabelled(net, seed)).key == folded.key
    assert fold(folded) == folded


@pytest.mark.parametrize("blocks", [2, 3, 24])
def test_equal_blocks_become_one(blocks: int) -> None:
    folded = fold(residual_chain(blocks))
    assert times(folded) == [blocks]
    assert len(folded.layers) == 2 + 2 + 4
    TORCH.validate(folded)
    assert unfold(folded).key == residual_chain(blocks).key


def test_blocks_within_blocks() -> None:
    stage = [*[linear(), RELU] * 3, layer("gelu")]
    net = chain(*stage * 3, given="8")
    folded = fold(net)
    assert times(folded) == [3, 3]
    TORCH.validate(folded)
    assert unfold(folded).key == net.key
    assert parameters(folded) == 9 * 64


def test_the_repeat_that_saves_most_is_folded() -> None:
    # Two times (linear relu) four times, or four times (linear relu) with the rest: all in one
    # block.
    assert times(fold(chain(*[linear(), RELU] * 8, linear(), given="8"))) == [8]
    # One layer twice saves nothing: a block has two ends.
    net = chain(RELU, RELU, linear(), given="8")
    assert fold(net) is net


def test_a_shared_weight_is_in_no_block() -> None:
    inner: list[Layer] = [layer("parameter", shape=[8, 8])]
    edges: list[tuple[int, ...]] = [(0, 1)]
    last = 0
    for _ in range(4):
        at = len(inner) + 1
        inner += [layer("linear"), RELU, layer("gelu")]
        edges += [(last, at, 0), (1, at, 1), (at, at + 1, 0), (at + 1, at + 2, 0)]
        last = at + 2

    net = network(inner, [*edges, (last, len(inner) + 1, 0)], "8")
    TORCH.validate(net)
    assert fold(net) is net


def test_a_skip_over_blocks_keeps_them() -> None:
    inner = [linear(), RELU, linear(), RELU, layer("add")]
    edges = [(0, 1, 0), (1, 2, 0), (2, 3, 0), (3, 4, 0), (4, 5, 0), (0, 5, 0), (5, 6, 0)]
    net = network(inner, edges, "8")
    assert fold(net) is net


def test_a_network_that_grows_beyond_measure_is_not_written_out() -> None:
    inner = [layer("block_start", times=10_000)] * 3 + [RELU] + [layer("block_end")] * 3
    net = chain(*inner)
    TORCH.validate(net)
    with pytest.raises(InvalidArchitectureError, match="at most 20000 layers are unfolded"):
        unfold(net)
