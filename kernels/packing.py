"""Prepared networks, packed as flat arrays (CSR): the input of compiled solvers, and of files.

    starts  0   3       7   9       network i has the entries starts[i] to starts[i + 1] of each
    flat    a a a b b b b c c       flat array

A prepared network is a dataclass of arrays, numbers, and its key and space. Each array is
concatenated along its first axis. Its length differs between networks; the other axes have one
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
    kind: type[Any], arrays: Mapping[str, NDArray[Any]], position: int, key: str, space: str
) -> Any:
    """Return one prepared network of a class; its arrays are views."""
    values: dict[str, Any] = {"key": key, "space": space}
    for name in _array_fields(kind):
        starts = arrays.get(f"{name}.starts")
        flat = arrays[name]
        if starts is None:
            values[name] = float(flat[position])
        else:
            values[name] = flat[starts[position] : starts[position + 1]]

    return kind(**values)


def _array_fields(prepared: Any) -> list[str]:
    return [field.name for field in fields(prepared) if field.name not in _NAMES]
