"""Decoders of language: designs and graphs, identity, counts by hand, moves and settings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from archive import kernels, spaces
from archive.architecture.codec import from_json, to_json
from archive.architecture.decoders import costs
from archive.architecture.decoders.design import Block, Design, design_of
from archive.architecture.decoders.labels import details_of, text_of
from archive.architecture.decoders.parts import (
    Attention,
    GatedDelta,
    Gelu,
    Mamba2,
    MixtureOfExperts,
    SwiGlu,
)
from archive.architecture.graph import Architecture, Layer
from archive.architecture.layer_mass import layer_masses
from archive.errors import InvalidArchitectureError, SettingsError, UnknownNameError
from archive.spaces.decoder.moves import edits
from tests.support.networks.decoders import network_of, sampled, small_space
from tests.support.strategies import relabelled

ATTENTION = Attention(4, 2, 4, 10_000.0)
GATED = SwiGlu(32)


def test_blocks_that_do_nothing_vanish():
    both = network_of(Block(ATTENTION, GATED))
    empty = Block(None, None, "sandwich", parallel=True)
    assert network_of(empty, Block(ATTENTION, GATED), empty).functional_key == both.functional_key
    # A mixer and the feed-forward part behind it are one block, whoever lists them.
    assert network_of(Block(ATTENTION), Block(None, GATED)).key == both.key
    assert network_of(Block(None, GATED), Block(ATTENTION)).key != both.key
    assert network_of(Block(ATTENTION), Block(None, GATED, "sandwich")).key != both.key


def test_settings_of_layers_are_part_of_the_identity():
    block = Block(ATTENTION, GATED)
    others = [
        replace(block, parallel=True),
        replace(block, norm="sandwich"),
        replace(block, mixer=replace(ATTENTION, kv_heads=4)),
        replace(block, mixer=replace(ATTENTION, rotary_base=500.0)),
        replace(block, mixer=replace(ATTENTION, window=8)),
        replace(block, feed_forward=Gelu(32)),
    ]
    keys = {network_of(other).key for other in [block, *others]}
    keys |= {network_of(block, tied=False).key, network_of(block, vocabulary=12).key}
    assert len(keys) == len(others) + 3


def test_graphs_become_designs_again():
    for network in sampled(40):
        design = design_of(relabelled(network, 3))
        assert design == design.normal()
        assert design.graph().key == network.key
        assert from_json(to_json(network)).key == network.key


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda layers: layers.__setitem__(3, Layer("norm", 16)), "mixer is attention"),
        (
            lambda layers: layers.__setitem__(3, Layer("attention", 16)),
            "needs heads >= 1, got None",
        ),
        (lambda layers: layers.__setitem__(1, Layer("norm", 16)), "embedding here alone, got norm"),
        (lambda layers: layers.__setitem__(4, Layer("norm", 16)), "norm here alone, got"),
    ],
)
def test_graphs_that_are_no_decoders_are_refused(change, message):
    network = network_of(Block(ATTENTION, GATED))
    layers = list(network.layers)
    assert layers[3].op == "attention"
    change(layers)
    with pytest.raises(InvalidArchitectureError, match=message):
        design_of(Architecture("decoder", layers, network.edges))


@pytest.mark.parametrize(
    ("part", "params", "cache", "operations"),
    [
        # width 8, so 4 x 8 x 8 with all heads; keys and values of 2 of 4 heads are half as wide.
        (Attention(4, 4, 2, 10.0), 256, 2 * 8 * 10, 256 + 2 * 8 * 5.5),
        (Attention(4, 2, 2, 10.0), 192, 2 * 4 * 10, 192 + 2 * 8 * 5.5),
        # The first three positions see 1, 2, 3, and the other seven 3.
        (Attention(4, 2, 2, 10.0, 3), 192, 2 * 4 * 2, 192 + 2 * 8 * 2.7),
        (GatedDelta(2, 4), 5 * 64 + 2 * 16 + 96 + 4 + 4, 32 + 72, 352 + 3 * 8 * 8),
        (
            Mamba2(2, 8, 4),
            8 * (32 + 8 + 2) + 24 * 5 + 6 + 16 + 128,
            64 + 72,
            464 + 24 * 4 + 2 * 64,
        ),
        (Gelu(16), 256, 0, 256),
        (SwiGlu(16), 384, 0, 384),
        (MixtureOfExperts(16, 4, 2), 32 + 4 * 384, 0, 32 + 2 * 384),
    ],
)
def test_counts_of_parts(part, params, cache, operations):
    assert part.params(8) == params
    assert part.cache_numbers(10) == cache
    assert part.multiply_adds(8, 10) == pytest.approx(operations)


def test_costs_of_a_decoder():
    network = network_of(Block(Attention(2, 1, 8, 10.0), Gelu(16), "sandwich"), width=16)
    # Embedding, two norms around each part and one before the head.
    assert costs.params(network) == 11 * 16 + 5 * 16 + 16 * (2 * 16 + 2 * 8) + 2 * 16 * 16
    free = replace(design_of(network), tied=False).graph()
    assert costs.params(free) == costs.params(network) + 11 * 16
    assert costs.kv_cache_bytes(network, 100) == 2 * (2 * 8 * 100)
    assert costs.flops_per_token(free, 1) == costs.flops_per_token(network, 1)


def test_masses_are_parameters():
    network = network_of(Block(ATTENTION, GATED))
    masses = layer_masses(network)
    assert sum(masses[1:-1]) == costs.params(network)
    # A tied head and a sum have no parameters.
    for layer, mass in zip(network.layers, masses, strict=True):
        assert (mass == 0) == (layer.op in ("add", "head"))


def test_settings_of_layers_in_words():
    assert details_of(Layer("attention", 4)) == ""
    # Networks that differ in the base alone look different.
    assert details_of(ATTENTION.layer(16)) == "4 heads, 2 kv heads, base 10000"
    assert text_of(ATTENTION, 16) == "attention 16 (4 heads, 2 kv heads)"


@pytest.mark.parametrize("name", ["otmann", "tree-wasserstein", "edit", "weisfeiler-lehman"])
def test_a_small_change_is_nearer_than_another_network(name):
    near = [Block(ATTENTION, GATED)] * 3
    changed = [*near[:2], Block(ATTENTION, Gelu(32))]
    far = [Block(Mamba2(2, 16, 4))] * 3
    first, second, third = (network_of(*blocks) for blocks in (near, changed, far))
    stack = kernels.get(name).distances([first, second, third]).stack.sum(axis=0)
    assert 0 < stack[0, 1] < stack[0, 2]


@pytest.mark.parametrize(
    "changed",
    [
        network_of(Block(replace(ATTENTION, kv_heads=4), MixtureOfExperts(32, 4, 1))),
        network_of(Block(Attention(2, 2, 8, 10_000.0), MixtureOfExperts(32, 4, 1))),
        network_of(Block(replace(ATTENTION, rotary_base=500.0), MixtureOfExperts(32, 4, 1))),
        network_of(Block(ATTENTION, MixtureOfExperts(32, 8, 1))),
        network_of(Block(ATTENTION, MixtureOfExperts(32, 4, 2))),
        network_of(Block(ATTENTION, MixtureOfExperts(32, 4, 1)), tied=False),
    ],
    ids=["kv_heads", "heads", "rotary_base", "experts", "active", "tied"],
)
def test_the_portfolio_tells_settings_apart(changed):
    network = network_of(Block(ATTENTION, MixtureOfExperts(32, 4, 1)))
    kernel = kernels.get("weisfeiler-lehman", attributes=True)
    stack = kernel.distances([network, changed, network_of(Block(ATTENTION, GATED))]).stack[0]
    assert 0 < stack[0, 1] < stack[0, 2]


def test_edits_reach_every_kind_of_change():
    space = small_space()
    seen: dict[str, int] = {}
    for network in sampled(30):
        for name, design in edits(design_of(network), space.settings):
            seen[name] = seen.get(name, 0) + 1
            # An edit either leaves the space or gives a member.
            normal = design.normal()
            if 1 <= len(normal.blocks) <= 3 and space.contains(normal.graph()):
                assert design_of(normal.graph()) == normal

    assert {*seen} == {
        "swap_mixer", "heads", "kv_heads", "window", "swap_feed_forward", "widen", "narrow",
        "active", "norm", "parallel", "insert_block", "remove_block", "swap_blocks",
        "widen_stream", "narrow_stream", "tie", "rotary_base",
    }  # fmt: skip


def test_another_width_keeps_the_options():
    space = spaces.get("decoder")
    network = space.initial_pool()[3]
    wider = [m.child for m in space.neighbours(network) if m.operations == ("widen_stream",)]
    (child,) = wider
    for old, new in zip(design_of(network).blocks, design_of(child).blocks, strict=True):
        assert (old.mixer.heads, old.mixer.kv_heads) == (new.mixer.heads, new.mixer.kv_heads)
        assert new.feed_forward.hidden * 96 == old.feed_forward.hidden * 128


def test_decisions_describe_networks():
    space = small_space()
    decisions = space.decisions()
    rng = np.random.default_rng(0)
    for network in sampled(30):
        assert decisions.decode(decisions.encode(network)).key == network.key

    decoded = 0
    for _ in range(50):
        vector = decisions.complete([-1] * len(decisions.decisions), rng)
        network = decisions.decode(vector)
        decoded += network is not None

    assert decoded > 40


def test_settings_narrow_the_space():
    space = spaces.get(
        "decoder", mixers=["mamba2"], feed_forwards=["none"], norms="pre", tied=True, max_blocks=12
    )
    rng = np.random.default_rng(0)
    for network in [*space.initial_pool(), *(space.sample(rng) for _ in range(5))]:
        assert {layer.op for layer in network.layers} == {
            "ip", "op", "embedding", "norm", "mamba2", "add", "head",
        }  # fmt: skip

    stranger = spaces.get("decoder").initial_pool()[0]
    with pytest.raises(InvalidArchitectureError, match="block 1: no mixer of the space"):
        space.validate(stranger)

    with pytest.raises(InvalidArchitectureError, match="has 256 tokens, got 11"):
        space.validate(network_of(Block(Mamba2(2, 16, 4))))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"widths": [20], "heads": [4]}, "multiples of twice the heads"),
        ({"widths": []}, "widths must be a list of different values, got"),
        ({"max_blocks": 0}, "max_blocks must be a whole number from 1 to 256, got 0"),
        ({"mixers": ["rnn"]}, "mixers are attention, .*got 'rnn'"),
        ({"mixers": ["none"], "feed_forwards": ["none"]}, "more than none"),
        ({"kv_heads": [8], "heads": [4], "widths": [64]}, "kv_heads must have a divisor of 4"),
        ({"expansions": [1, 1.01]}, "must differ by 8 hidden neurons"),
        ({"active": [9]}, "active must have a number <= 4 experts"),
        ({"rotary_bases": [0.5]}, "rotary_bases must be > 1, got 0.5"),
        ({"tied": [1]}, "tied must be true or false, got 1"),
        ({"widths": [[64]]}, "widths must be a list of different values, got"),
        ({"expansions": [float("inf")]}, "expansions must be numbers > 0 and <= 1e.09, got inf"),
        ({"vocabulary": 10**30}, "vocabulary must be a whole number from 1 to 1e.09, got 1000"),
    ],
)
def test_settings_that_cannot_be_used_are_named(settings, message):
    with pytest.raises(SettingsError, match=message):
        spaces.get("decoder", **settings)

    with pytest.raises(UnknownNameError, match="setting of space decoder 'width'"):
        spaces.get("decoder", width=4)


def test_a_design_without_a_block_is_no_member():
    with pytest.raises(InvalidArchitectureError, match="1 to 6 blocks, got 0"):
        spaces.get("decoder").validate(Design(256, 64, ()).graph())
