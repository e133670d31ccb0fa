"""Arrays of the architectures of one space, with their keys: thousands are read in milliseconds.

| array             | content                                                          | shape          | type    |
|-------------------|------------------------------------------------------------------|----------------|---------|
| `alphabet`        | the distinct layers, as JSON: `[[op, units, stride], …]`         | (bytes,)       | uint8   |
| `layers`          | numbers in the alphabet, network after network                   | (all layers,)  | int32   |
| `layers.starts`   | where the layers of each network begin                           | (n + 1,)       | int64   |
| `edges`           | pairs of positions, network after network                        | (all edges, 2) | int32   |
| `edges.starts`    | where the edges of each network begin                            | (n + 1,)       | int64   |
| `keys`            | `Architecture.key`                                               | (n,)           | 32 byte |
| `functional_keys` | `Architecture.functional_key`                                    | (n,)           | 32 byte |
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archive.architecture.compact import restored
from archive.architecture.graph import Architecture, Layer
from archive.cache import Arrays


def pack(architectures: Sequence[Architecture]) -> Arrays:
    """Return the arrays of architectures of one space."""
    alphabet: dict[Layer, int] = {}
    layers = [[alphabet.setdefault(layer, len(alphabet)) for layer in each.layers] for each in architectures]
    edges = [each.edges for each in architectures]
    letters = [[layer.op, layer.units, layer.stride] for layer in alphabet]
    return {
        "alphabet": np.frombuffer(json.dumps(letters).encode(), np.uint8),
        "layers": np.array([letter for each in layers for letter in each], np.int32),
        "layers.starts": np.cumsum([0, *map(len, layers)], dtype=np.int64),
        "edges": np.array([edge for each in edges for edge in each], np.int32).reshape(-1, 2),
        "edges.starts": np.cumsum([0, *map(len, edges)], dtype=np.int64),
        "keys": np.array([each.key for each in architectures], "S32"),
        "functional_keys": np.array([each.functional_key for each in architectures], "S32"),
    }


def unpack(space: str, arrays: Mapping[str, NDArray[Any]]) -> tuple[Architecture, ...]:
    """Return the architectures of a space from the arrays of `pack`.

    They are not validated again, which would take a hundred times as long as the rest.
    """
    alphabet = [Layer(*letter) for letter in json.loads(arrays["alphabet"].tobytes())]
    edges = list(map(tuple, arrays["edges"].tolist()))
    columns = zip(
        _cut([alphabet[letter] for letter in arrays["layers"].tolist()], arrays["layers.starts"]),
        _cut(edges, arrays["edges.starts"]),
        texts(arrays["keys"]),
        texts(arrays["functional_keys"]),
        strict=True,
    )
    return tuple([restored(space, *values) for values in columns])


def texts(names: NDArray[Any]) -> list[str]:
    """Return an array of bytes as strings."""
    strings: list[str] = names.astype("U").tolist()
    return strings


def _cut(flat: list[Any], starts: NDArray[Any]) -> Iterator[tuple[Any, ...]]:
    return (tuple(flat[begin:end]) for begin, end in pairwise(starts.tolist()))
