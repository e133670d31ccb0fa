"""Labels of layers in feature names, operations up to the output, and checks of the encodings'
settings.
"""

from __future__ import annotations

import math
from urllib.parse import quote

from archive.architecture.graph import Architecture, Layer
from archive.architecture.operations import vocabulary

_NO_OPERATION = ("input", "output", "entry", "exit")


def label(layer: Layer, attributes: bool = False) -> str:
    """Return a layer's label in feature names.

    Args:
        layer: The layer.
        attributes: Whether to add the power of two that is nearest to the units, and a stride of 2:
            `conv3:2^6/2`. With exact units almost every name would be unique, and networks would
            share no feature.
    """
    # Labels of user-defined operations may contain the arrows and brackets that structure feature
    # names.
    text = quote(layer.op, safe="")
    if not attributes:
        return text

    units = f":2^{round(math.log2(layer.units))}" if layer.units else ""
    return text + units + (f"/{layer.stride}" if layer.stride != 1 else "")


def operations_counted(architecture: Architecture) -> list[int]:
    """Return 1 for each layer that is an operation, and 0 for the ends, and for the entries and
    exits of cells.
    """
    operations = vocabulary(architecture.space).operations
    return [int(operations[layer.op].group not in _NO_OPERATION) for layer in architecture.layers]


def operations_to_output(architecture: Architecture) -> list[int | None]:
    """Return the least number of operations on a path from each layer to the output; None for a
    layer without one.

    The layer itself counts.
    """
    counted = operations_counted(architecture)
    fewest: list[int | None] = [None] * len(counted)
    fewest[-1] = 0
    for u in reversed(range(len(counted) - 1)):
        near = [length for c in architecture.children[u] if (length := fewest[c]) is not None]
        fewest[u] = counted[u] + min(near) if near else None

    return fewest
