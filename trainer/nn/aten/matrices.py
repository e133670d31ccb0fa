"""Matrices and kernels of layers: their tensors, and the axes of their units.

A layer owns its matrix, or uses the trained tensor of a layer `parameter`, as it is or with its
axes permuted. Several layers may share one. No other computed tensor counts.
"""

from __future__ import annotations

from typing import NamedTuple

from archive.architecture.aten import weights, wiring
from archive.architecture.aten.signature import resolve
from archive.architecture.graph import Architecture, Layer
from archive.trainer.nn.units import Units


class SharedMatrix(NamedTuple):
    """A trained tensor that is the matrix of a layer.

    Attributes:
        tensor: Position of the tensor.
        units: Axis of the layer's units in it.
    """

    tensor: int
    units: Units


def find_owned(layer: Layer) -> dict[str, tuple[Units, ...]]:
    """Return the axes of the units in the matrices that a layer owns, by tensor name."""
    by_name: dict[str, tuple[Units, ...]] = {}
    for name in weights.owned(layer):
        axis = weights.unit_axis(layer, name)
        if axis is not None and _is_matrix(weights.shape(layer, name), axis):
            by_name[name] = (Units(axis, weights.input_groups(layer)),)

    return by_name


def find_shared(architecture: Architecture) -> dict[int, SharedMatrix]:
    """Return the trained tensors that serve as matrices, by the position of their user."""
    by_layer = {}
    for u, layer in enumerate(architecture.layers):
        if layer.op not in weights.OWNED:
            continue

        used = wiring.values(architecture, u)
        signature = resolve(layer.op, layer.attributes, used.keys())
        for number, tail in used.items():
            axis = weights.unit_axis(layer, signature.tensors[number].name)
            if axis is None:
                continue

            units = Units(axis, weights.input_groups(layer))
            matrix = _find_source(architecture, tail, units)
            if matrix is not None:
                by_layer[u] = matrix

    return by_layer


def _find_source(architecture: Architecture, position: int, units: Units) -> SharedMatrix | None:
    """Return the trained tensor behind a layer's output, before permutations of its axes.

    None if the layer computes another tensor.
    """
    layer = architecture.layers[position]
    if layer.op == "parameter":
        shape = weights.shape(layer, "shape")
        return SharedMatrix(position, units) if _is_matrix(shape, units.axis) else None

    dims = layer.attributes.get("dims")
    # Groups are parts of the first axis.
    if (
        layer.op != "permute"
        or not isinstance(dims, tuple)
        or len(dims) <= units.axis
        or units.groups > 1
    ):
        return None

    axis = dims[units.axis]
    source = wiring.values(architecture, position)[0]
    return (
        _find_source(architecture, source, Units(axis % len(dims)))
        if isinstance(axis, int)
        else None
    )


def _is_matrix(shape: tuple[int, ...], axis: int) -> bool:
    return len(shape) > max(axis, 1)
