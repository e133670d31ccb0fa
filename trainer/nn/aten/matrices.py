"""Matrices and kernels of layers: which tensors they are, and how their units lie.

A layer owns its matrix, or is given a trained tensor: a layer `parameter`, which other layers may
share, as it is or with its axes permuted. No other tensor that is computed counts.
"""

from __future__ import annotations

from typing import NamedTuple

from archive.architecture.aten import weights, wiring
from archive.architecture.aten.signature import resolve
from archive.architecture.graph import Architecture, Layer
from archive.trainer.nn.units import Units


class GivenMatrix(NamedTuple):
    """A trained tensor that is the matrix of a layer.

    Attributes:
        tensor: Position of the tensor.
        units: How the layer's units lie in it.
    """

    tensor: int
    units: Units


def owned(layer: Layer) -> dict[str, tuple[Units, ...]]:
    """Return how the units lie in the matrices that a layer owns, by the names of these."""
    by_name: dict[str, tuple[Units, ...]] = {}
    for name in weights.owned(layer):
        axis = weights.unit_axis(layer, name)
        if axis is not None and _is_matrix(weights.shape(layer, name), axis):
            by_name[name] = (Units(axis, weights.input_groups(layer)),)

    return by_name


def given(architecture: Architecture) -> dict[int, GivenMatrix]:
    """Return the matrices that layers are given, by the positions of the layers."""
    by_layer = {}
    for u, layer in enumerate(architecture.layers):
        if layer.op not in weights.OWNED:
            continue

        used = wiring.values(architecture, u)
        signature = resolve(layer.op, layer.attributes, used.keys())
        for number, tail in used.items():
            axis = weights.unit_axis(layer, signature.tensors[number].name)
            matrix = (
                None
                if axis is None
                else _source(architecture, tail, Units(axis, weights.input_groups(layer)))
            )
            if matrix is not None:
                by_layer[u] = matrix

    return by_layer


def _source(architecture: Architecture, at: int, units: Units) -> GivenMatrix | None:
    """Return the trained tensor that a layer gives, before its axes were permuted;

    None if it computes another.
    """
    layer = architecture.layers[at]
    if layer.op == "parameter":
        return (
            GivenMatrix(at, units)
            if _is_matrix(weights.shape(layer, "shape"), units.axis)
            else None
        )

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
    source = wiring.values(architecture, at)[0]
    return _source(architecture, source, Units(axis % len(dims))) if isinstance(axis, int) else None


def _is_matrix(shape: tuple[int, ...], axis: int) -> bool:
    return len(shape) > max(axis, 1)
