"""Prepared networks and sparse features, packed as flat arrays (CSR), to read files at once.

    starts  0   3       7   9       network i has the entries starts[i] to starts[i + 1] of each
    flat    a a a b b b b c c       flat array

A prepared network is a dataclass of arrays, numbers, and its key and space. Each array is
concatenated along its first axis. Its length differs between networks; the other axes have one
length for all networks of a space.

Sparse features give the distances of one network from hundreds of thousands in milliseconds. Each
component consists of concatenated entries (`archive.kernels.features.l1_blocks.Entries`): the
numbers and values of the features of a vector, or the places of a measure on a line with its
distribution function. Features are numbered in the order of their first occurrence; the array of
their names is stored with them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archive.kernels.distances.tree_wasserstein.measures import cumulate
from archive.kernels.features.embedding import Embedded, FeatureDistance
from archive.kernels.features.l1_blocks import Entries

Arrays = dict[str, NDArray[Any]]
Floats = NDArray[np.float64]

_NAMES = ("key", "space")
_SIDES = ("starts", "places", "values")


def pack(networks: Sequence[Any]) -> Arrays:
    """Return the packed arrays of one or more prepared networks of one class."""
    arrays: Arrays = {}
    for name in _array_fields(networks[0]):
        column = [getattr(network, name) for network in networks]
        if isinstance(column[0], float):
            arrays[name] = np.array(column)
        else:
            arrays[name] = np.concatenate(column)
            arrays[f"{name}.starts"] = np.cumsum([0, *map(len, column)], dtype=np.int64)

    return arrays


def join(first: Mapping[str, NDArray[Any]], second: Mapping[str, NDArray[Any]]) -> Arrays:
    """Return the packed arrays of the first networks followed by the second ones."""
    joined: Arrays = {}
    for name, array in first.items():
        if name.endswith("starts"):
            joined[name] = np.concatenate([array, second[name][1:] + array[-1]])
        else:
            joined[name] = np.concatenate([array, second[name]])

    return joined


def unpack(
    kind: type[Any], arrays: Mapping[str, NDArray[Any]], index: int, key: str, space: str
) -> Any:
    """Return one prepared network of a class; its arrays are views."""
    values: dict[str, Any] = {"key": key, "space": space}
    for name in _array_fields(kind):
        starts = arrays.get(f"{name}.starts")
        flat = arrays[name]
        if starts is None:
            values[name] = float(flat[index])
        else:
            values[name] = flat[starts[index] : starts[index + 1]]

    return kind(**values)


def _array_fields(prepared: Any) -> list[str]:
    return [field.name for field in fields(prepared) if field.name not in _NAMES]


def add_features(distance: FeatureDistance, arrays: Arrays, networks: Sequence[Embedded]) -> Arrays:
    """Return the arrays of sparse features with further networks appended.

    Args:
        distance: The distance of the features.
        arrays: A result of this function, or nothing.
        networks: Prepared networks.
    """
    joined: Arrays = {}
    for part, comparison in enumerate(distance.comparisons):
        names = _feature_numbers(arrays, part)
        entries = _entries([network.features[part] for network in networks], names, comparison)
        new: Arrays = {f"{part}.{side}": getattr(entries, side) for side in _SIDES}
        stored = {name: array for name, array in arrays.items() if name in new}
        joined.update(join(stored, new) if stored else new)
        joined[f"{part}.names"] = np.frombuffer(json.dumps(list(names)).encode(), np.uint8)

    return joined


def feature_distances(
    distance: FeatureDistance, arrays: Arrays, network: Embedded, component: int | None
) -> Floats:
    """Return the (n,) distances of a prepared network from all packed ones.

    Args:
        distance: The distance of the features.
        arrays: A result of `add_features`.
        network: A prepared network.
        component: Position of a component; None means the mean of all. A distance with weights
            has one component, the weighted sum of its parts.
    """
    from archive.kernels.features import l1_rows as l1

    parts = len(distance.comparisons)
    weights = np.full(parts, 1 / parts)
    if distance.part_weights is not None:
        weights = np.array(distance.part_weights)
    elif component is not None:
        weights = np.eye(parts)[component]

    out = np.zeros((1, len(arrays["0.starts"]) - 1 if arrays else 0))
    for part, comparison in enumerate(distance.comparisons if out.size else ()):
        weight = weights[part]
        if not weight:
            continue

        y = Entries(*(arrays[f"{part}.{side}"] for side in _SIDES))
        x = _entries([network.features[part]], _feature_numbers(arrays, part), comparison)
        if comparison == "line":
            l1.add_steps(*x, *y, weight, False, 0, 1, out)
        else:
            l1.add_sparse(*x, *y, comparison == "l2", weight, False, 0, 1, out)

    row: Floats = out[0]
    return row


def _feature_numbers(arrays: Arrays, part: int) -> dict[str, int]:
    """Return the numbers of a component's features by name."""
    stored = arrays.get(f"{part}.names")
    if stored is None:
        return {}

    return {name: number for number, name in enumerate(json.loads(stored.tobytes()))}


def _entries(vectors: Sequence[Any], numbers: dict[str, int], comparison: str) -> Entries:
    """Pack vectors or, for the comparison `line`, measures; new names are added to `numbers`."""
    starts = [0]
    entries: list[tuple[float, float]] = []
    for vector in vectors:
        if comparison == "line":
            entries += zip(*cumulate(vector), strict=True)
        else:
            entries += sorted(
                (numbers.setdefault(name, len(numbers)), value) for name, value in vector.items()
            )

        starts.append(len(entries))

    flat = np.array(entries, np.float64).reshape(-1, 2)
    return Entries(
        np.array(starts, np.int64),
        np.ascontiguousarray(flat[:, 0]),
        np.ascontiguousarray(flat[:, 1]),
    )
