"""One replaced block: the library, what a new part begins with, and what distillation changes."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch

from archive import spaces
from archive.architecture.decoders.design import Block, Design, design_of
from archive.architecture.decoders.parts import (
    Attention,
    Gelu,
    Mamba2,
    MixtureOfExperts,
    SwiGlu,
)
from archive.errors import UsageError
from archive.trainer.blocks.distillation import BlockDistiller, make_optimiser
from archive.trainer.blocks.replacements import PartReplacement, library
from archive.trainer.blocks.students import make_student
from archive.trainer.fit.batches import Batches
from archive.trainer.fit.evaluate import evaluate
from archive.trainer.nn import builders
from archive.trainer.protocols.networks import NetworkForm
from archive.trainer.tasks import registry

WIDTH = 16
BASE = 10_000.0
ATTENTION = Attention(2, 2, 8, BASE)
BLOCKS = (
    Block(ATTENTION, SwiGlu(16)),
    Block(Attention(2, 1, 8, BASE), Gelu(16), "sandwich"),
    Block(ATTENTION, SwiGlu(16), parallel=True),
)
TEXT = "".join(f"def function_{n}(x):\n    return x + {n % 7}\n\n" for n in range(800))


def small_space(**settings):
    return spaces.get(
        "decoder",
        **{
            "widths": [WIDTH],
            "max_blocks": 3,
            "heads": [2],
            "kv_heads": [1, 2],
            "windows": [8],
            "states": [4],
            "expansions": [1, 2],
            "experts": [2],
            "active": [1],
            "expert_expansions": [1],
            **settings,
        },
    )


PARENT = Design(256, WIDTH, BLOCKS).graph()
FORM = NetworkForm((128,), 256, "language")


def replaced(index, **parts):
    old = BLOCKS[index]
    new = replace(old, **parts)
    if len(new.parts) < 2:
        new = replace(new, parallel=False)

    blocks = (*BLOCKS[:index], new, *BLOCKS[index + 1 :])
    network = Design(256, WIDTH, blocks).normal().graph()
    part = "mixer" if "mixer" in parts else "feed-forward"
    return PartReplacement(index, part, old, new, WIDTH, network)


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    file = tmp_path_factory.mktemp("texts") / "code.txt"
    file.write_text(TEXT)
    return registry.get(f"text:{file}")


@pytest.fixture
def distiller(task):
    protocol = task.protocol()
    parent = builders.build(PARENT, task.form(protocol), seed=1)
    return BlockDistiller(parent, task, protocol, steps=12, device=torch.device("cpu"))


def test_the_library_has_every_other_part_once():
    space = small_space()
    found = library(PARENT, space)
    assert len({one.architecture.functional_key for one in found}) == len(found)
    assert all(space.contains(one.architecture) for one in found)
    # Six mixers and none; two GELU, two SwiGLU, experts and none: each block has two of them.
    assert [sum(one.index == index for one in found) for index in range(3)] == [11, 11, 11]
    assert {one.index for one in found[:6]} == {0, 1, 2}
    for one in found:
        if len(one.new.parts) == 2:
            blocks = design_of(one.architecture).blocks
            assert blocks[one.index] == one.new
            assert blocks[: one.index] == BLOCKS[: one.index]

    few = library(PARENT, space, parts=["mixer"], blocks=[2], kinds=["none", "mamba2"])
    assert [str(one) for one in few] == [
        "block 2 mixer: attention 16 (2 heads, 1 kv heads) to mamba2 32 (2 heads, state 4)",
        "block 2 mixer: attention 16 (2 heads, 1 kv heads) to none",
    ]
    with pytest.raises(UsageError, match="has the blocks 1 to 3, got 4"):
        library(PARENT, space, blocks=[4])

    with pytest.raises(UsageError, match=r"parts of the space are .*, got 'lstm'"):
        library(PARENT, space, kinds=["lstm"])


def test_the_parent_has_its_loss(distiller, task):
    splits = task.load(task.protocol())
    valid = Batches.of(splits.valid, torch.device("cpu"))
    loss, bits = evaluate(distiller.parent, valid, task)
    score = distiller.measure_parent()
    assert score.loss == pytest.approx(loss, rel=1e-6)
    assert score.bits == pytest.approx(bits, rel=1e-6)
    assert score.divergence == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    "same",
    [
        replaced(0, mixer=replace(ATTENTION, window=128)),
        replaced(1, mixer=Attention(2, 2, 8, BASE)),
        replaced(0, feed_forward=SwiGlu(32)),
        replaced(1, feed_forward=Gelu(48)),
        replaced(2, mixer=replace(ATTENTION, window=128)),
    ],
    ids=str,
)
def test_a_part_that_can_begin_with_the_old_weights_does(distiller, same):
    distiller.steps = 0
    parent = distiller.measure_parent()
    score = distiller.score(same, seed=0)
    assert score.loss == pytest.approx(parent.loss, rel=1e-5)
    assert score.divergence == pytest.approx(0.0, abs=1e-6)


def test_a_part_that_is_left_out_is_the_network_without_it(distiller, task):
    without = replaced(2, mixer=None)
    score = distiller.score(without, seed=0)
    assert score.errors == ()
    network = builders.build(without.architecture, task.form(task.protocol()))
    weights = {}
    for name, tensor in distiller.parent.state_dict().items():
        weights[name] = tensor

    # The norm of parallel parts is the norm of the part that stays.
    weights["blocks.2.feed_forward_norm.weight"] = weights.pop("blocks.2.mixer_norm.weight")
    network.load_state_dict({name: weights[name] for name in network.state_dict()})
    valid = Batches.of(task.load(task.protocol()).valid, torch.device("cpu"))
    assert score.loss == pytest.approx(evaluate(network, valid, task)[0], rel=1e-6)


@pytest.mark.parametrize(
    "new",
    [
        replaced(0, mixer=Mamba2(2, 16, 4)),
        replaced(1, mixer=replace(ATTENTION, window=8)),
        replaced(1, feed_forward=MixtureOfExperts(16, 2, 1)),
        replaced(2, feed_forward=Gelu(32)),
    ],
    ids=str,
)
def test_distillation_trains_the_new_part_alone(distiller, new):
    before = copy.deepcopy(distiller.parent.state_dict())
    score = distiller.score(new, seed=3)
    assert len(score.errors) == 12
    assert score.errors[-1] < score.errors[0]
    assert score.divergence > 0
    for name, tensor in distiller.parent.state_dict().items():
        assert torch.equal(tensor, before[name]), name

    assert distiller.score(new, seed=3) == score
    assert distiller.score(new, seed=4) != score


@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 2), (6, 4)])
def test_key_value_heads_that_do_not_divide_each_other(before, after):
    old = Block(Attention(12, before, 4, BASE), SwiGlu(16))
    new = replace(old, mixer=Attention(12, after, 4, BASE))
    parent = builders.build(Design(256, WIDTH, (old,)).graph(), FORM, seed=1).blocks[0]
    replacement = PartReplacement(0, "mixer", old, new, WIDTH, Design(256, WIDTH, (new,)).graph())
    student, _ = make_student(parent, replacement, seed=0)
    assert torch.equal(student.mixer.query.weight, parent.mixer.query.weight)
    assert student.mixer.key.weight.shape == (4 * after, WIDTH)


def test_matrices_have_the_rate_of_their_width():
    module = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Conv1d(3, 3, 2))
    optimiser = make_optimiser(list(module.parameters()), 0.1, 0.25)
    rates = {id(p): group["lr"] for group in optimiser.param_groups for p in group["params"]}
    assert rates[id(module[0].weight)] == 0.025
    assert [rates[id(p)] for p in (module[0].bias, *module[1].parameters())] == [0.1] * 3
