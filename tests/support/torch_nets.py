"""Networks of the space `torch`: written by hand, and drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from archive.architecture.aten import weights
from archive.architecture.attributes import Attributes
from archive.architecture.graph import Architecture, Layer

CHANNELS = 4


def layer(op: str, step: int = 1, **attributes: Any) -> Layer:
    """A layer whose units are those of its weight."""
    settings = Attributes(attributes)
    return Layer(op, weights.units(Layer(op, None, step, settings)), step, settings)


def network(inner: Sequence[Layer], edges: Sequence[tuple[int, ...]], given: str = "3x8x8") -> Architecture:
    """A network of the layers between input and output."""
    return Architecture("torch", [layer("ip", input=given), *inner, layer("op")], edges)


def chain(*inner: Layer, given: str = "3x8x8") -> Architecture:
    return network(inner, [(u, u + 1, 0) for u in range(len(inner) + 1)], given)


def residual() -> Architecture:
    """A convolution, a scaled residual block, and a linear layer."""
    inner = [
        layer("convolution", 2, weight=[8, 3, 3, 3], bias=[8], padding=1),
        layer("relu"),
        layer("parameter", shape=[8, 1, 1]),
        layer("mul"),
        layer("convolution", weight=[8, 8, 3, 3], padding=1),
        layer("add"),
        layer("mean", dim=[-1, -2]),
        layer("linear", weight=[10, 8], bias=[10]),
    ]
    edges = [(0, 1, 0), (1, 2, 0), (0, 3), (2, 4, 0), (3, 4, 0), (4, 5, 0), (5, 6, 0), (2, 6, 0), (6, 7, 0)]
    return network(inner, [*edges, (7, 8, 0), (8, 9, 0)])


@st.composite
def networks(draw: st.DrawFn, most: int = 10) -> Architecture:
    """Any DAG of convolutions, activations, sums, differences and parameters, all of one width."""
    inner: list[Layer] = []
    edges: list[tuple[int, ...]] = []
    for at in range(1, draw(st.integers(1, most)) + 1):
        op = draw(st.sampled_from(["convolution", "relu", "gelu", "add", "sub", "mul", "parameter"]))
        tails = st.integers(0, at - 1)
        if op == "parameter":
            inner.append(layer(op, shape=[CHANNELS, 1, 1]))
            edges.append((0, at))
        elif op in ("add", "sub", "mul"):
            inner.append(layer(op))
            first, second = draw(tails), draw(tails)
            used = (0, 0) if op != "sub" else (0, 1)
            edges += [(first, at, *used)] if first == second else [(first, at, used[0]), (second, at, used[1])]
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
