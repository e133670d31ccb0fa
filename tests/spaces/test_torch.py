"""The open space `torch`: which graphs are members, and what the others lack."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

from archive import agents, spaces
from archive.architecture.aten.weights import parameters
from archive.architecture.graph import Architecture, Layer
from archive.architecture.layer_mass import layer_masses
from archive.errors import InvalidArchitectureError, UsageError
from archive.spaces.aten import pack_content
from tests.support.networks.torch_nets import chain, layer, network, networks, residual

TORCH = spaces.get("torch")
RELU = layer("relu")


@given(networks())
def test_networks_of_operations_are_members(net: Architecture) -> None:
    TORCH.validate(net)
    TORCH.validate(net.canonical)


def constant(**changes: Any) -> Layer:
    content = pack_content(np.arange(6, dtype="<i8").tobytes())
    return layer("constant", **{"shape": [2, 3], "dtype": "int64", "content": content, **changes})


MEMBERS = {
    "residual": residual(),
    "two inputs": network(
        [
            layer("getitem", item=0),
            layer("getitem", item=1),
            layer("embedding", weight=[9, 4]),
            layer("add"),
        ],
        [(0, 1, 0), (0, 2, 0), (2, 3, 1), (1, 4, 0), (3, 4, 0), (4, 5, 0)],
        "4 1:int64",
    ),
    "two outputs": network([RELU], [(0, 1, 0), (1, 2, 0), (0, 2, 1)]),
    "second output of an operation": chain(layer("topk", k=2), layer("getitem", item=1)),
    "size of the batch": chain(layer("view", size=["2*batch", "96"])),
    "number to subtract from": network([layer("sub", self=1)], [(0, 1, 1), (1, 2, 0)]),
    "infinity": chain(layer("clamp", min="-inf", max=6)),
    "list of tensors": network(
        [RELU, layer("cat", dim=1)], [(0, 1, 0), (1, 2, 1), (0, 2, 0), (2, 3, 0)]
    ),
    "one tensor twice": network([layer("mul")], [(0, 1, 0, 0), (1, 2, 0)]),
    "absent tensor in a list": network(
        [constant(), layer("index")], [(0, 1), (0, 2, 0), (1, 2, 2), (2, 3, 0)]
    ),
    "transposed": chain(layer("convolution", 2, weight=[3, 8, 2, 2], bias=[8], transposed=True)),
    "repeated": chain(
        layer("block_start", times=3), layer("linear", weight=[8, 8]), RELU, layer("block_end")
    ),
}


@pytest.mark.parametrize("case", MEMBERS)
def test_members(case: str) -> None:
    TORCH.validate(MEMBERS[case])


def conv(**changes: Any) -> Architecture:
    return chain(layer("convolution", **{"weight": [8, 3, 3, 3], **changes}))


STRANGERS: dict[str, tuple[Architecture, str]] = {
    "no shape of the input": (
        Architecture("torch", [Layer("ip"), RELU, Layer("op")], [(0, 1, 0), (1, 2, 0)]),
        r"the attribute input must have the shapes of the inputs, as in 3x224x224 \(layer 0\)",
    ),
    "bad shape": (chain(RELU, given="3x-1"), "an input is given as 3x224x224.*got '3x-1'"),
    "bad type": (chain(RELU, given="3x4:int65"), "an input is given as"),
    "unknown attribute": (chain(layer("relu", slope=1)), r"relu has no attribute slope: self "
                                                         r"\(layer 1\)"),
    "attribute of another kind": (conv(padding="1x"), "padding of convolution must be a whole "
                                                      "number .* 1x"),
    "attribute list of another kind": (conv(padding=[0.5, 1.0]), "padding of convolution must be "
                                                                 "a whole number"),
    "missing attribute": (chain(layer("permute")), "permute needs the attribute dims"),
    "missing input": (network([layer("sub")], [(0, 1, 0), (1, 2, 0)]), "sub needs other: an edge "
                                                                       "with the argument 1"),
    "missing weight": (chain(layer("convolution")), "convolution needs weight: an edge with the "
                                                    "argument 1"),
    "too many inputs": (network([RELU], [(0, 1, 0, 1), (1, 2, 0)]), "relu has 1 inputs, got .* "
                                                                    "argument 1"),
    "input and attribute": (network([layer("mul", other=2)], [(0, 1, 0, 1), (1, 2, 0)]), "is given twice"),
    "argument twice": (
        network([RELU, layer("sub")], [(0, 1, 0), (0, 2, 0), (1, 2, 0), (2, 3, 0)]),
        r"two edges have the argument 0 \(layer 2\)",
    ),
    "edge without argument": (network([RELU], [(0, 1), (1, 2, 0)]), "relu needs self: an edge "
                                                                    "with the argument 0"),
    "edge without argument beside one": (
        network([layer("parameter", shape=[3]), RELU, layer("add")],
                [(0, 1), (0, 2, 0), (1, 3, 0), (2, 3, 0), (0, 3), (3, 4, 0)]),
        r"the edge from layer 0 needs an argument: the number of the input \(layer 3\)",
    ),
    "outputs not numbered": (network([RELU], [(0, 1, 0), (1, 2, 1)]), "the outputs must be "
                                                                      "numbered from 0"),
    "wrong units": (
        Architecture("torch", [layer("ip", input="3"), Layer("relu", 8), Layer("op")], [(0, 1, 0), (1, 2, 0)]),
        "relu must have the units of its weight, None, got 8",
    ),
    "stride of no window": (
        Architecture("torch", [layer("ip", input="3"), Layer("relu", None, 2), Layer("op")], [(0, 1, 0), (1, 2, 0)]),
        "relu has no stride, got 2",
    ),
    "weight of no layer": (
        network([layer("mul", other=[8])], [(0, 1, 0), (1, 2, 0)]), "mul cannot own other: a "
                                                                    "layer parameter gives it",
    ),
    "empty weight": (chain(layer("linear", weight=[8, 0])), "weight must have sides >= 1"),
    "flat kernel": (chain(layer("convolution", weight=[8, 3])), "the weight of convolution has 3 "
                                                                "sides or more"),
    "groups": (conv(groups=5), "groups must divide the 8 channels of the weight, got 5"),
    "bias": (conv(bias=[4]), r"the bias of convolution must have the shape \[8\], got \(4,\)"),
    "statistics": (
        chain(layer("batch_norm", weight=[4], bias=[4], running_mean=[8], running_var=[8])), "one shape of one side",
    ),
    "item": (chain(layer("topk", k=2), layer("getitem", item=2)), "must be from 1 to 1, the "
                                                                  "outputs of topk, got 2"),
    "content": (network([constant(shape=[5]), layer("add")], [(0, 1), (0, 2, 0), (1, 2, 0), (2, 3, 0)]),
                "the content of a constant must have 40 bytes, got 4"),
    "text as content": (
        network([constant(content="!"), layer("add")], [(0, 1), (0, 2, 0), (1, 2, 0), (2, 3, 0)]),
        "must be compressed bytes in base 64",
    ),
    "huge constant": (
        network([constant(shape=[2**40]), layer("add")], [(0, 1), (0, 2, 0), (1, 2, 0), (2, 3, 0)]), "at most 67108864",
    ),
    "block without end": (chain(layer("block_start", times=2), RELU), "1 blocks begin and 0 end"),
    "block once": (chain(layer("block_start", times=1), RELU, layer("block_end")), "must be a whole number from 2"),
    "edge into a block": (
        network([layer("block_start", times=2), RELU, layer("add"), layer("block_end")],
                [(0, 1, 0), (1, 2, 0), (2, 3, 0), (0, 3, 0), (3, 4, 0), (4, 5, 0)]),
        "an edge leads into the block past its start",
    ),
    "edge out of a block": (
        network([layer("block_start", times=2), RELU, layer("block_end"), layer("add")],
                [(0, 1, 0), (1, 2, 0), (2, 3, 0), (3, 4, 0), (2, 4, 0), (4, 5, 0)]),
        "an edge leads out of the block past its end",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", STRANGERS)
def test_what_is_no_member_says_why(case: str) -> None:
    stranger, reason = STRANGERS[case]
    assert not TORCH.contains(stranger)
    with pytest.raises(InvalidArchitectureError, match=reason):
        TORCH.validate(stranger)


def test_nothing_can_be_drawn() -> None:
    rng = np.random.default_rng(0)
    draws = (
        lambda: TORCH.sample(rng),
        lambda: TORCH.initial_pool(),
        lambda: TORCH.mutate(residual(), rng),
        lambda: TORCH.neighbours(residual()),
        lambda: agents.get("random", TORCH),
    )
    for draw in draws:
        with pytest.raises(UsageError, match="its networks are imported"):
            draw()

    assert TORCH.members() is None
    assert not TORCH.is_cell


def test_parameters_and_masses_of_a_network() -> None:
    assert parameters(residual()) == (8 * 27 + 8) + 8 + 8 * 72 + (80 + 10)
    # A convolution counts its channels times those before it, an activation its channels, a
    # parameter nothing.
    inner = [8 * 3, 8, 0, 8, 8 * 8, 8, 8, 10 * 8]
    assert layer_masses(residual()) == [0.1 * sum(inner), *inner, 0.1 * sum(inner)]


def test_a_repeated_block_counts_as_often_as_it_is_repeated() -> None:
    parts = [layer("linear", weight=[8, 8]), RELU]
    folded = chain(layer("block_start", times=3), *parts, layer("block_end"), given="8")
    whole = chain(*parts * 3, given="8")
    assert parameters(folded) == parameters(whole) == 3 * 64
    assert sum(layer_masses(folded)) == pytest.approx(sum(layer_masses(whole)))


def test_groups_and_transposition_are_part_of_the_mass() -> None:
    depthwise = layer("convolution", weight=[8, 1, 3, 3], groups=8)
    transposed = layer("convolution", weight=[8, 2, 3, 3], groups=2, transposed=True)
    assert (depthwise.units, transposed.units) == (8, 4)
    assert layer_masses(chain(depthwise, transposed))[1:3] == [8 * 1, 4 * 4]
