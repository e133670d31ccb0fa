"""The edit distance of decoders, with a block as the unit: costs by hand, the axioms of a metric,
every setting."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from archive import kernels
from archive.architecture.decoders.design import Block, Design, StreamSettings, design_of
from archive.architecture.decoders.parts import (
    Attention,
    GatedDelta,
    Gelu,
    Mamba2,
    MixtureOfExperts,
    SwiGlu,
)
from archive.architecture.graph import Architecture
from archive.architecture.layer import Attributes
from archive.errors import InvalidArchitectureError
from archive.kernels.differences import difference
from archive.kernels.distances.block_edit import block_features
from tests.support.networks.decoders import network_of, sampled, small_space
from tests.support.strategies import relabelled

ATTENTION = Attention(4, 2, 4, 10_000.0)
EXPERTS = MixtureOfExperts(16, 4, 1)
FIRST = Block(ATTENTION, EXPERTS)
SECOND = Block(Mamba2(2, 16, 4), SwiGlu(32), "sandwich")


def apart(first, second) -> float:
    return float(kernels.get("edit").distances([first], [second]).stack[0, 0, 0])


def mass(block: Block, width: int = 16) -> float:
    return sum(block_features(block, width))


def test_costs_by_hand():
    base = network_of(FIRST, SECOND)
    # Heads, keys' heads and shares of the matrices: 4 d p (4 + 2) / 2 becomes 4 d p (4 + 4) / 2.
    doubled = network_of(replace(FIRST, mixer=replace(ATTENTION, kv_heads=4)), SECOND)
    assert apart(base, doubled) == pytest.approx(0.1 + 2 * 16 * 8 / (12 * 16**2))
    assert apart(base, network_of(FIRST, replace(SECOND, norm="pre"))) == pytest.approx(0.25)
    assert apart(base, network_of(replace(FIRST, parallel=True), SECOND)) == pytest.approx(0.25)
    assert apart(base, network_of(FIRST, SECOND, tied=False)) == pytest.approx(1.0)
    # An insertion anywhere costs the block alone.
    third = Block(None, Gelu(16), "sandwich")
    for blocks in ([third, FIRST, SECOND], [FIRST, SECOND, third]):
        assert apart(base, network_of(*blocks)) == pytest.approx(mass(third))

    # A block of GPT-2 has the mass 1; beside it, kinds and settings.
    classical = Block(Attention(4, 4, 4, 10_000.0), Gelu(64))
    settings = 0.1 * 2 + 0.1 * 2 + 0.02 * np.log2(10_000.0)
    assert mass(classical) == pytest.approx(1 + 2 * 1.0 + settings)


@pytest.mark.parametrize("name", ["edit", "tree-wasserstein", "weisfeiler-lehman"])
@pytest.mark.parametrize(
    "changed",
    [
        Block(replace(ATTENTION, kv_heads=4), EXPERTS),
        Block(Attention(2, 2, 8, 10_000.0), EXPERTS),
        Block(replace(ATTENTION, rotary_base=500_000.0), EXPERTS),
        Block(ATTENTION, replace(EXPERTS, experts=8)),
        Block(ATTENTION, replace(EXPERTS, active=2)),
    ],
    ids=["kv_heads", "heads", "rotary_base", "experts", "active"],
)
def test_kernels_see_settings(name, changed):
    settings = {"attributes": True} if name == "weisfeiler-lehman" else {}
    far = network_of(Block(GatedDelta(4, 4), Gelu(48)))
    networks = [network_of(FIRST), network_of(changed), far]
    stack = kernels.get(name, **settings).distances(networks).stack.sum(axis=0)
    assert 0 < stack[0, 1] < stack[0, 2]


@pytest.mark.parametrize("name", ["edit", "tree-wasserstein"])
def test_windows_and_states_are_ordered(name):
    kernel = kernels.get(name)
    for mixers in (
        [replace(ATTENTION, window=window) for window in (4, 8, 32)],
        [Mamba2(2, 16, state) for state in (4, 8, 32)],
        [replace(ATTENTION, rotary_base=base) for base in (1e4, 1e5, 1e6)],
    ):
        networks = [network_of(Block(mixer, EXPERTS)) for mixer in mixers]
        near, far = kernel.distances(networks[:1], networks[1:]).stack.sum(axis=0)[0]
        assert 0 < near < far


def test_it_is_a_metric_on_functions():
    networks = [*sampled(30, seed=3), *small_space().initial_pool()]
    for network in networks[:4]:
        networks += [mutation.child for mutation in list(small_space().neighbours(network))[:8]]

    distances = kernels.get("edit").distances(networks).stack[0]
    slack = distances[:, :, None] + distances[None, :, :] - distances[:, None, :]
    assert slack.min() > -1e-9
    keys = np.array([network.functional_key for network in networks])
    np.testing.assert_array_equal(distances == 0, keys[:, None] == keys[None, :])


def test_the_script_pairs_blocks_and_layers():
    parallel = replace(FIRST, parallel=True)
    first = relabelled(network_of(FIRST, SECOND, FIRST), 1)
    second = network_of(parallel, FIRST)
    explained = difference(first, second)
    changes = [(part.subject, part.change) for part in explained.parts]
    assert changes == [
        ("stream", "matched"),
        ("block", "changed"),
        ("block", "removed"),
        ("block", "matched"),
    ]
    assert explained.parts[1].reason.endswith("beside moe 16 (1 of 4 experts)")
    assert "sandwich norms" in explained.parts[2].reason
    removed = {first.layers[u].op for u in explained.parts[2].first}
    assert removed == {"norm", "mamba2", "swiglu", "add"}
    for u, v in explained.layers:
        if u is not None and v is not None:
            assert first.layers[u].op == second.layers[v].op

    for before, after in pairwise(sampled(6)):
        assert difference(before, after).distance == pytest.approx(apart(before, after))


@pytest.mark.parametrize(
    "changed",
    [
        replace(FIRST, mixer=replace(ATTENTION, rotary_base=500_000.0)),
        replace(FIRST, norm="post"),
        replace(FIRST, norm="sandwich"),
        replace(FIRST, parallel=True),
    ],
)
def test_the_script_tells_what_a_change_costs(changed):
    part = difference(network_of(FIRST), network_of(changed)).parts[1]
    before, after = part.reason.split(" → ")
    assert part.change == "changed" and part.cost > 0
    assert before != after


def test_the_script_names_settings_of_a_published_stream():
    published = StreamSettings(embedding=Attributes({"scale": 4.0}))
    other = Design(11, 16, (FIRST,), stream=published).graph()
    stream = difference(network_of(FIRST), other).parts[0]
    assert (stream.subject, stream.change) == ("stream", "changed")
    assert stream.cost > 0 and stream.reason == "settings of the stream"


def test_graphs_that_are_no_decoders_are_refused():
    network = network_of(FIRST)
    without_sum = [edge for edge in network.edges if edge != (1, 4)]
    broken = Architecture(network.space, network.layers, without_sum)
    with pytest.raises(InvalidArchitectureError, match="decoder"):
        apart(network, broken)

    assert design_of(network).blocks == (FIRST,)
