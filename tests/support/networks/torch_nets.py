"""Networks of the space `torch`: written by hand, and drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from archive.architecture.aten import weights
from archive.architecture.graph import Architecture, Layer
from archive.architecture.layer import Attributes

CHANNELS = 4


def layer(op: str, step: int = 1, **attributes: Any) -> Layer:
    """A layer whose units are those of its weight."""
    settings = Attributes(attributes)
    return Layer(op, weights.units(Layer(op, None, step, settings)), step, settings)


def network(
    inner: Sequence[Layer], edges: Sequence[tuple[int, ...]], given: str = "3x8x8"
) -> Architecture:
    """A network of the layers between input and output."""
    return Architecture("torch", [layer("ip", input=given), *inner, layer("op")], edges)


def chain(*inner: Layer, given: str = "3x8x8") -> Architecture:
    return network(inner, [(u, u + 1, 0) for u in range(len(inner) + 1)], given)


def residual(channels: int = 3) -> Architecture:
    """A convolution, a scaled residual block, and a linear layer."""
    inner = [
        layer("convolution", 2, weight=[8, channels, 3, 3], bias=[8], padding=1),
        layer("relu"),
        layer("parameter", shape=[8, 1, 1]),
        layer("mul"),
        layer("convolution", weight=[8, 8, 3, 3], padding=1),
        layer("add"),
        layer("mean", dim=[-1, -2]),
        layer("linear", weight=[10, 8], bias=[10]),
    ]
    edges = [
        (0, 1, 0),
        (1, 2, 0),
        (0, 3),
        (2, 4, 0),
        (3, 4, 0),
        (4, 5, 0),
        (5, 6, 0),
        (2, 6, 0),
        (6, 7, 0),
    ]
    return network(inner, [*edges, (7, 8, 0), (8, 9, 0)], f"{channels}x8x8")


def classifiers() -> list[Architecture]:
    """Networks of several kinds for grey images of 8 x 8 and ten classes."""
    return [residual(1), mobile(), transformer(), folded()]


def mobile() -> Architecture:
    """A network with batch normalisation, a convolution of each channel by itself, and dropout."""
    norm = layer("batch_norm", weight=[8], bias=[8], running_mean=[8], running_var=[8])
    return chain(
        layer("convolution", 2, weight=[8, 1, 3, 3], padding=1),
        norm,
        layer("hardswish"),
        layer("convolution", weight=[8, 1, 3, 3], padding=1, groups=8),
        norm,
        layer("mean", dim=[-1, -2]),
        layer("dropout", p=0.2),
        layer("linear", weight=[10, 8], bias=[10]),
        given="1x8x8",
    )


def transformer() -> Architecture:
    """Patches with trained positions, attention of each to all, and a mean."""
    inner = [
        layer("convolution", 4, weight=[6, 1, 4, 4], bias=[6]),
        layer("view", size=[-1, 6, 4]),
        layer("permute", dims=[0, 2, 1]),
        layer("parameter", shape=[1, 4, 6]),
        layer("add"),
        layer("native_layer_norm", normalized_shape=[6], weight=[6], bias=[6]),
        layer("scaled_dot_product_attention"),
        layer("add"),
        layer("mean", dim=[1]),
        layer("linear", weight=[10, 6], bias=[10]),
    ]
    edges = [
        (0, 1, 0),
        (1, 2, 0),
        (2, 3, 0),
        (0, 4),
        (3, 5, 0),
        (4, 5, 0),
        (5, 6, 0),
        (6, 7, 0, 1, 2),
        (7, 8, 0),
    ]
    return network(inner, [*edges, (5, 8, 0), (8, 9, 0), (9, 10, 0), (10, 11, 0)], "1x8x8")


def folded() -> Architecture:
    """A block that is repeated three times."""
    return chain(
        layer("convolution", weight=[4, 1, 3, 3], padding=1),
        layer("block_start", times=3),
        layer("convolution", weight=[4, 4, 3, 3], padding=1),
        layer("relu"),
        layer("block_end"),
        layer("mean", dim=[-1, -2]),
        layer("linear", weight=[10, 4], bias=[10]),
        given="1x8x8",
    )


@st.composite
def networks(draw: st.DrawFn, most: int = 10) -> Architecture:
    """Any DAG of convolutions, activations, sums, differences and parameters, all of one width."""
    inner: list[Layer] = []
    edges: list[tuple[int, ...]] = []
    for at in range(1, draw(st.integers(1, most)) + 1):
        op = draw(
            st.sampled_from(["convolution", "relu", "gelu", "add", "sub", "mul", "parameter"])
        )
        tails = st.integers(0, at - 1)
        if op == "parameter":
            inner.append(layer(op, shape=[CHANNELS, 1, 1]))
            edges.append((0, at))
        elif op in ("add", "sub", "mul"):
            inner.append(layer(op))
            first = draw(tails)
            second = draw(tails)
            used = (0, 0) if op != "sub" else (0, 1)
            edges += (
                [(first, at, *used)]
                if first == second
                else [(first, at, used[0]), (second, at, used[1])]
            )
        else:
            side = draw(st.sampled_from([1, 3]))
            inner.append(
                layer(op, weight=[CHANNELS, CHANNELS, side, side], padding=side // 2)
                if op == "convolution"
                else layer(op)
            )
            edges.append((draw(tails), at, 0))

    last = len(inner) + 1
    used_once = {edge[0] for edge in edges}
    ends = [at for at in range(1, last) if at not in used_once]
    edges += [(tail, last, argument) for argument, tail in enumerate(ends)]
    return network(inner, edges, f"{CHANNELS}x8x8")
