"""Ragged arrays in CSR form: prepared networks concatenated, so that a file of hundreds of
thousands is read at once.

    starts  0   3       7   9           network i has the entries starts[i] to starts[i + 1] of each flat array
    flat    a a a b b b b c c

A prepared network is a dataclass of arrays, numbers, and its key and space. Each array is
concatenated along its first axis, whose length differs between networks; the other axes have one
length for all networks of a space.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]

_NAMES = ("key", "space")


def pack(networks: Sequence[Any]) -> Arrays:
    """Return the packed arrays of one or more prepared networks of one class."""
    arrays: Arrays = {}
    for name, first in _values(networks[0]).items():
        column = [getattr(network, name) for network in networks]
        if isinstance(first, float):
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
    kind: type[Any], arrays: Mapping[str, NDArray[Any]], at: int, key: str, space: str
) -> Any:
    """Return one prepared network of a class; its arrays are views."""
    values: dict[str, Any] = {"key": key, "space": space}
    for field in fields(kind):
        if field.name in _NAMES:
            continue

        starts = arrays.get(f"{field.name}.starts")
        flat = arrays[field.name]
        values[field.name] = (
            float(flat[at]) if starts is None else flat[starts[at] : starts[at + 1]]
        )

    return kind(**values)


def _values(network: Any) -> dict[str, Any]:
    return {
        field.name: getattr(network, field.name)
        for field in fields(network)
        if field.name not in _NAMES
    }
