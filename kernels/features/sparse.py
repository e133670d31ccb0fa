"""Packed sparse features of many networks, for the distances of one network from all of them in
milliseconds.

Each component consists of concatenated entries (`archive.kernels.features.l1.parts.Entries`): the
numbers and values of the features of a vector, or the places of a measure on a line with its
distribution function. Features are numbered in the order of their first occurrence; the array of
their names is stored with them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archive.kernels.distances.tree_wasserstein.degrees import cumulated
from archive.kernels.features.embedding import Embedded, FeatureDistance
from archive.kernels.features.l1.parts import Entries
from archive.kernels.search.packed import Arrays, join

Floats = NDArray[np.float64]

_SIDES = ("starts", "places", "values")


def add(distance: FeatureDistance, arrays: Arrays, networks: Sequence[Embedded]) -> Arrays:
    """Return the arrays with further networks appended.

    Args:
        distance: The distance of the features.
        arrays: A result of this function, or nothing.
        networks: Prepared networks.
    """
    joined: Arrays = {}
    for at, comparison in enumerate(distance.comparisons):
        on_a_line = comparison == "line"
        names = _names(arrays, at)
        entries = _entries([network.features[at] for network in networks], names, on_a_line)
        own: Arrays = {f"{at}.{side}": getattr(entries, side) for side in _SIDES}
        stored = {name: array for name, array in arrays.items() if name in own}
        joined.update(join(stored, own) if stored else own)
        joined[f"{at}.names"] = np.frombuffer(json.dumps(list(names)).encode(), np.uint8)

    return joined


def distances(
    distance: FeatureDistance, arrays: Arrays, network: Embedded, component: int | None
) -> Floats:
    """Return the (n,) distances of a prepared network from all packed ones: one component, or the
    mean of all.

    For a distance with weights, this is the weighted sum of its parts.
    """
    from archive.kernels.features.l1 import rows as l1

    parts = len(distance.comparisons)
    weights = np.full(parts, 1 / parts)
    if distance.part_weights is not None:
        weights = np.array(distance.part_weights)
    elif component is not None:
        weights = np.eye(parts)[component]

    out = np.zeros((1, len(arrays["0.starts"]) - 1 if arrays else 0))
    for at, comparison in enumerate(distance.comparisons if out.size else ()):
        if not weights[at]:
            continue

        on_a_line = comparison == "line"
        y = Entries(*(arrays[f"{at}.{side}"] for side in _SIDES))
        x = _entries([network.features[at]], _names(arrays, at), on_a_line)
        if on_a_line:
            l1.add_steps(*x, *y, weights[at], False, 0, 1, out)
        else:
            l1.add_sparse(*x, *y, comparison == "l2", weights[at], False, 0, 1, out)

    row: Floats = out[0]
    return row


def _names(arrays: Arrays, at: int) -> dict[str, int]:
    """Return the numbers of a component's features by name."""
    stored = arrays.get(f"{at}.names")
    return (
        {}
        if stored is None
        else {name: number for number, name in enumerate(json.loads(stored.tobytes()))}
    )


def _entries(vectors: Sequence[Any], names: dict[str, int], on_a_line: bool) -> Entries:
    """Return packed vectors or measures; new names are numbered and added to `names`."""
    if on_a_line:
        functions = [cumulated(measure) for measure in vectors]
        rows = [list(zip(*function, strict=True)) for function in functions]
    else:
        rows = [
            sorted((names.setdefault(name, len(names)), value) for name, value in v.items())
            for v in vectors
        ]

    flat = np.array([entry for row in rows for entry in row], np.float64).reshape(-1, 2)
    starts = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return Entries(starts, np.ascontiguousarray(flat[:, 0]), np.ascontiguousarray(flat[:, 1]))
