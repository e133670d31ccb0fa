"""Decoders inherit weights: each change keeps the function, and what it adds can learn."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from archive.architecture.decoders.design import Block, design_of
from archive.architecture.decoders.parts import (
    Attention,
    GatedDelta,
    Gelu,
    Mamba2,
    MixtureOfExperts,
    SwiGlu,
)
from archive.errors import InvalidArchitectureError
from archive.trainer.morphism import feasibility, transfer
from archive.trainer.nn import builders
from tests.support.networks.decoders import FORM, network_of, sampled, small_space

ATTENTION = Attention(4, 1, 4, 10_000.0)
PARENT = (
    Block(ATTENTION, SwiGlu(16)),
    Block(Mamba2(2, 16, 4), Gelu(16), "sandwich"),
    Block(GatedDelta(2, 8), MixtureOfExperts(8, 3, 2), parallel=True),
    Block(None, SwiGlu(8)),
)


def changed(index, **settings):
    blocks = list(PARENT)
    blocks[index] = replace(blocks[index], **settings)
    return network_of(*blocks)


def with_block(index, block):
    return network_of(*PARENT[:index], block, *PARENT[index:])


CHANGES = {
    "insert gated_delta in block 1, insert gelu in block 1": with_block(
        0, Block(GatedDelta(4, 4), Gelu(8))
    ),
    "insert moe in block 3": with_block(2, Block(None, MixtureOfExperts(8, 4, 2), "sandwich")),
    "insert mamba2 in block 4": changed(3, mixer=Mamba2(4, 8, 4)),
    "insert attention in block 4": changed(3, mixer=ATTENTION, parallel=True),
    "widen swiglu in block 1 from 16 to 40": changed(0, feed_forward=SwiGlu(40)),
    "widen gelu in block 2 from 16 to 24": changed(1, feed_forward=Gelu(24)),
    "widen moe in block 3 from 8 to 24": changed(2, feed_forward=MixtureOfExperts(24, 3, 2)),
    "kv_heads of attention in block 1 from 1 to 4": changed(0, mixer=Attention(4, 4, 4, 10_000.0)),
    "attention to sliding_attention in block 1": changed(
        0, mixer=Attention(4, 1, 4, 10_000.0, FORM.input_shape[0])
    ),
    "state of mamba2 in block 2 from 4 to 16": changed(1, mixer=Mamba2(2, 16, 16)),
    "swiglu to moe in block 1": changed(0, feed_forward=MixtureOfExperts(24, 4, 2)),
    "a matrix of its own for the head": network_of(*PARENT, tied=False),
}


def outputs(network, weights=None, seed=5):
    module = builders.build(network, FORM, seed)
    if weights is not None:
        module.load_state_dict(weights)

    tokens = torch.randint(11, (3, *FORM.input_shape), generator=torch.Generator().manual_seed(0))
    return module, module.eval()(tokens)


@pytest.mark.parametrize("words", CHANGES)
def test_a_child_begins_with_the_function_of_its_parent(words):
    child = CHANGES[words]
    parent = network_of(*PARENT)
    module, expected = outputs(parent)
    made = transfer.inherit(parent, module.state_dict(), child, FORM, seed=2)
    grown, actual = outputs(child, made.weights, seed=9)
    assert ", ".join(made.operations) == words
    assert feasibility.operations_between(parent, child, FORM.input_shape) == made.operations
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)
    # What begins as zeros learns from the first step on.
    actual.square().mean().backward()
    for name, parameter in grown.named_parameters():
        if not parameter.any():
            assert parameter.grad.any(), name


def test_copies_of_neurons_have_different_gradients():
    parent = network_of(Block(None, Gelu(8)))
    child = network_of(Block(None, Gelu(16)))
    module, _ = outputs(parent)
    made = transfer.inherit(parent, module.state_dict(), child, FORM, seed=1)
    grown, logits = outputs(child, made.weights)
    logits[..., 0].sum().backward()
    gradient = grown.blocks[0].feed_forward.up.weight.grad
    assert (gradient[:8] - gradient[8:]).abs().max() > 1e-4
    noisy = transfer.inherit(parent, module.state_dict(), child, FORM, seed=1, noise=0.1)
    assert not torch.equal(
        noisy.weights["blocks.0.feed_forward.up.weight"],
        made.weights["blocks.0.feed_forward.up.weight"],
    )


@pytest.mark.parametrize(
    "child",
    [
        changed(0, norm="sandwich"),
        changed(0, parallel=True),
        changed(0, mixer=replace(ATTENTION, rotary_base=100.0)),
        changed(0, mixer=Attention(4, 1, 4, 10_000.0, 4)),
        changed(0, feed_forward=Gelu(16)),
        changed(0, feed_forward=SwiGlu(8)),
        changed(0, feed_forward=MixtureOfExperts(8, 4, 2)),
        changed(0, mixer=None),
        network_of(*PARENT[1:]),
        network_of(*PARENT[::-1]),
        network_of(*PARENT, vocabulary=12),
    ],
)
def test_other_changes_inherit_nothing(child):
    assert not feasibility.preserving(network_of(*PARENT), child, FORM.input_shape)
    with pytest.raises(InvalidArchitectureError):
        transfer.inherit(network_of(*PARENT), {}, child, FORM)


def test_a_parent_with_a_head_of_its_own_keeps_it():
    free = network_of(*PARENT, tied=False)
    assert not feasibility.preserving(free, network_of(*PARENT), FORM.input_shape)


def test_mutations_inherit_where_they_can():
    space = small_space()
    inherited: set[str] = set()
    for seed, parent in enumerate(sampled(6, seed=8)):
        module, expected = outputs(parent, seed=seed)
        for mutation in space.neighbours(parent):
            if not feasibility.preserving(parent, mutation.child, FORM.input_shape):
                continue

            if mutation.operations[0] in inherited and len(inherited) > 4:
                continue

            made = transfer.inherit(parent, module.state_dict(), mutation.child, FORM, seed=seed)
            _, actual = outputs(mutation.child, made.weights)
            torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)
            inherited |= {*mutation.operations}

    assert {"insert_block", "widen", "kv_heads", "swap_mixer", "tie"} <= inherited


def test_several_changes_are_one_step():
    parent = network_of(*PARENT)
    module, expected = outputs(parent)
    blocks = [Block(GatedDelta(2, 8)), *PARENT, Block(Mamba2(2, 16, 4), Gelu(8))]
    blocks[1] = replace(blocks[1], feed_forward=SwiGlu(32), mixer=Attention(4, 2, 4, 10_000.0))
    child = network_of(*blocks, tied=False)
    made = transfer.inherit(parent, module.state_dict(), child, FORM)
    assert len(made.operations) == 6
    _, actual = outputs(child, made.weights)
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)
    assert design_of(child).blocks[0] == Block(GatedDelta(2, 8))
