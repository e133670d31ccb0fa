"""Tensors of a layer, and quantities that follow: channels, window, computation, parameters.

A weight is an attribute with the name of a tensor parameter of the operation, and the tensor's
shape as its value:
`weight: [64, 3, 7, 7]`. Trained tensors of other operations, or of several layers, are layers
`parameter`.
"""

from __future__ import annotations

import math
from operator import mul
from typing import TYPE_CHECKING

from archive.architecture.aten import recurrent
from archive.architecture.layer import Layer

if TYPE_CHECKING:
    from archive.architecture.graph import Architecture

OWNED: dict[str, tuple[str, ...]] = {
    "convolution": ("weight", "bias"),
    "linear": ("weight", "bias"),
    "addmm": ("self", "mat2"),
    "mm": ("mat2",),
    "embedding": ("weight",),
    "_embedding_bag": ("weight",),
    "prelu": ("weight",),
    "batch_norm": ("weight", "bias", "running_mean", "running_var"),
    "instance_norm": ("weight", "bias", "running_mean", "running_var"),
    "_native_batch_norm_legit_no_training": ("weight", "bias", "running_mean", "running_var"),
    "native_layer_norm": ("weight", "bias"),
    "native_group_norm": ("weight", "bias"),
}
"""Operation to the tensors that a layer may own."""

BUFFERS = ("running_mean", "running_var")
"""Owned tensors that are not trained."""

_LAST = {"linear": ("weight", 0), "addmm": ("mat2", 1), "mm": ("mat2", 1)}
_FIRST = {"linear": ("weight", 1), "addmm": ("mat2", 0), "mm": ("mat2", 0)}
_PASSES = frozenset("pool norm rectifier sigmoid attention elementwise reduction".split())


def shape(layer: Layer, name: str) -> tuple[int, ...]:
    """Return the shape of an owned tensor; empty if the layer does not own it."""
    if layer.op in recurrent.GATES:
        return recurrent.shapes(layer.op, layer.attributes).get(name, ())

    value = layer.attributes.get(name)
    if not isinstance(value, tuple):
        return ()

    return tuple(side for side in value if isinstance(side, int))


def owned(layer: Layer) -> list[str]:
    """Return the names of the tensors that a layer owns."""
    if layer.op in recurrent.GATES:
        return list(recurrent.shapes(layer.op, layer.attributes))

    names = []
    for name in OWNED.get(layer.op, ()):
        if isinstance(layer.attributes.get(name), tuple):
            names.append(name)

    return names


def units(layer: Layer) -> int | None:
    """Return the channels or features that a layer's weights give its output; None without."""
    if layer.op == "convolution":
        sides = shape(layer, "weight")
        if len(sides) < 3:
            return None

        return (
            sides[1] * _whole(layer, "groups") if layer.attributes.get("transposed") else sides[0]
        )

    if layer.op in recurrent.GATES:
        return recurrent.features(layer.attributes)

    if layer.op in ("embedding", "_embedding_bag"):
        return next(iter(shape(layer, "weight")[1:]), None)

    name, side = _LAST.get(layer.op, ("", 0))
    return next(iter(shape(layer, name)[side:]), None)


def unit_axis(layer: Layer, name: str) -> int | None:
    """Return the axis of a layer's matrix or kernel along which its units lie.

    None for other tensors.

    The units of an embedding are its indices, each with a separate vector.
    """
    if layer.op in ("convolution", "embedding", "_embedding_bag"):
        transposed = layer.op == "convolution" and bool(layer.attributes.get("transposed"))
        return int(transposed) if name == "weight" else None

    matrix, axis = _LAST.get(layer.op, ("", 0))
    return axis if name == matrix else None


def input_groups(layer: Layer) -> int:
    """Return the groups of a transposed convolution, whose kernel has inputs first; else 1."""
    transposed = layer.op == "convolution" and layer.attributes.get("transposed")
    return max(_whole(layer, "groups"), 1) if transposed else 1


def fan_in(layer: Layer) -> int:
    """Return the number of inputs of each output channel or feature of a weighted layer."""
    if layer.op == "convolution":
        sides = shape(layer, "weight")
        return (
            sides[0] // max(_whole(layer, "groups"), 1)
            if layer.attributes.get("transposed")
            else sides[1]
        )

    if layer.op in recurrent.GATES:
        return max(count_trained(layer) // recurrent.features(layer.attributes), 1)

    name, side = _FIRST.get(layer.op, ("", 0))
    return next(iter(shape(layer, name)[side:]), 1)


def window(layer: Layer) -> int:
    """Return the longest side of a convolution's kernel; 0 for other layers."""
    return max(shape(layer, "weight")[2:], default=0) if layer.op == "convolution" else 0


def parameters(architecture: Architecture) -> int:
    """Return the number of trained numbers of a network of the space `torch`."""
    from archive.architecture.aten.blocks import repeats

    return sum(map(mul, repeats(architecture), map(count_trained, architecture.layers)))


def count_trained(layer: Layer) -> int:
    """Return the number of trained numbers that a layer owns."""
    if layer.op == "parameter":
        return math.prod(shape(layer, "shape"))

    if layer.op in recurrent.GATES:
        return sum(map(math.prod, recurrent.shapes(layer.op, layer.attributes).values()))

    total = 0
    for name in OWNED.get(layer.op, ()):
        if name not in BUFFERS and name in layer.attributes:
            total += math.prod(shape(layer, name))

    return total


def computations(architecture: Architecture) -> list[float]:
    """Return the computation of each layer (`archive.architecture.layer_mass` for other spaces).

    Weighted layers count their output channels times the inputs of each, without the window: as in
    NASBOT. Operations without weights count their channels, like its pools. Operations that move
    data count nothing. A layer of a repeated block counts as often as it is repeated.
    """
    from archive.architecture.aten.blocks import repeats

    emitted: list[int] = []
    computed: list[float] = []
    groups = architecture.groups
    layers = zip(architecture.layers, architecture.parents, repeats(architecture), strict=True)
    for group, (layer, parents, times) in zip(groups, layers, strict=True):
        incoming = list(map(emitted.__getitem__, parents))
        channels = sum(incoming) if layer.op == "cat" else max(incoming, default=1)
        if layer.units is not None:
            emitted.append(layer.units)
            computed.append(float(times * layer.units * fan_in(layer)))
        else:
            emitted.append(channels)
            computed.append(float(times * channels) if group in _PASSES else 0.0)

    return computed


def _whole(layer: Layer, name: str) -> int:
    value = layer.attributes.get(name, 1)
    return value if isinstance(value, int) else 1
