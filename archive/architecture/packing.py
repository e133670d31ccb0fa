"""Arrays of the architectures of one space, with their keys: thousands are read in milliseconds.

| array             | content                                          | shape          | type  |
|-------------------|--------------------------------------------------|----------------|-------|
| `alphabet`        | distinct layers: JSON `[[op, units, stride], …]` | (bytes,)       | uint8 |
| `layers`          | numbers in the alphabet, by network              | (all layers,)  | int32 |
| `layers.starts`   | where the layers of each network begin           | (n + 1,)       | int64 |
| `edges`           | pairs of positions, by network                   | (all edges, 2) | int32 |
| `edges.starts`    | where the edges of each network begin            | (n + 1,)       | int64 |
| `keys`            | `Architecture.key`                               | (n,)           | S32   |
| `functional_keys` | `Architecture.functional_key`                    | (n,)           | S32   |
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple, final, overload

import numpy as np
from numpy.typing import NDArray

from archive.architecture.compact import restore
from archive.architecture.graph import Architecture, Edge, Layer
from archive.cache import Arrays

BLOCK = 4096
"""Architectures built at a time by an iteration."""


def pack(architectures: Sequence[Architecture]) -> Arrays:
    """Return the arrays of architectures of one space."""
    alphabet: dict[Layer, int] = {}
    layers: list[int] = []
    layer_starts = [0]
    edges: list[Edge] = []
    edge_starts = [0]
    for architecture in architectures:
        layers += [alphabet.setdefault(layer, len(alphabet)) for layer in architecture.layers]
        layer_starts.append(len(layers))
        edges += architecture.edges
        edge_starts.append(len(edges))

    letters = [[layer.op, layer.units, layer.stride] for layer in alphabet]
    keys = list(map(attrgetter("key"), architectures))
    functional_keys = list(map(attrgetter("functional_key"), architectures))
    return {
        "alphabet": np.frombuffer(json.dumps(letters).encode(), np.uint8),
        "layers": np.array(layers, np.int32),
        "layers.starts": np.array(layer_starts, np.int64),
        "edges": np.array(edges, np.int32).reshape(-1, 2),
        "edges.starts": np.array(edge_starts, np.int64),
        "keys": np.array(keys, "S32"),
        "functional_keys": np.array(functional_keys, "S32"),
    }


def unpack(space: str, arrays: Mapping[str, NDArray[Any]]) -> tuple[Architecture, ...]:
    """Return the architectures of a space from the arrays of `pack`.

    They are not validated again, which would take a hundred times as long as the rest.
    """
    return PackedArchitectures(space, arrays)[:]


@final
class PackedArchitectures(Sequence[Architecture]):
    """The architectures of the arrays of `pack`; each is built when it is read, and not kept.

    The arrays need a tenth of the memory of all architectures.

    Args:
        space: Name of their vocabulary.
        arrays: The arrays.
    """

    def __init__(self, space: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Read the alphabet; nothing else is read until it is needed."""
        self._space = space
        self._arrays = arrays
        self._alphabet = [Layer(*letter) for letter in json.loads(arrays["alphabet"].tobytes())]
        # 400,000 networks share few distinct edges: one object for each distinct edge saves memory.
        self._edges: dict[Edge, Edge] = {}

    def __len__(self) -> int:
        """Count the architectures."""
        return len(self._arrays["keys"])

    @overload
    def __getitem__(self, index: int) -> Architecture: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Architecture, ...]: ...

    def __getitem__(self, index: int | slice) -> Architecture | tuple[Architecture, ...]:
        """Build one architecture, or several."""
        positions = range(len(self))[index]
        if isinstance(positions, int):
            return self.take([positions])[0]

        return self.take(positions)

    def __iter__(self) -> Iterator[Architecture]:
        """Build the architectures in blocks, which is faster than one by one."""
        for begin in range(0, len(self), BLOCK):
            yield from self.take(range(begin, min(begin + BLOCK, len(self))))

    def take(self, positions: Sequence[int] | NDArray[np.int64]) -> tuple[Architecture, ...]:
        """Build the architectures at some positions, each at least 0, in their order."""
        rows = np.asarray(positions, np.int64)
        numbers = self._entries("layers", rows)
        pairs = self._entries("edges", rows)
        layers = list(map(self._alphabet.__getitem__, numbers.values.tolist()))
        edges = [self._edges.setdefault(edge, edge) for edge in map(tuple, pairs.values.tolist())]
        columns = zip(
            _cut(layers, numbers.starts),
            _cut(edges, pairs.starts),
            texts(self._arrays["keys"][rows]),
            texts(self._arrays["functional_keys"][rows]),
            strict=True,
        )
        return tuple([restore(self._space, *values) for values in columns])

    def _entries(self, name: str, rows: NDArray[np.int64]) -> _Entries:
        begins = self._arrays[f"{name}.starts"][rows]
        ends = self._arrays[f"{name}.starts"][rows + 1]
        starts = np.concatenate([[0], np.cumsum(ends - begins)])
        positions = np.arange(starts[-1]) + np.repeat(begins - starts[:-1], ends - begins)
        return _Entries(self._arrays[name][positions], starts)


class _Entries(NamedTuple):
    """Entries of some networks, network after network.

    Attributes:
        values: The entries.
        starts: (n + 1,) int64, where the entries of each network begin.
    """

    values: NDArray[Any]
    starts: NDArray[np.int64]


def texts(names: NDArray[Any]) -> list[str]:
    """Return an array of bytes as strings."""
    strings: list[str] = names.astype("U").tolist()
    return strings


def _cut(flat: list[Any], starts: NDArray[Any]) -> Iterator[tuple[Any, ...]]:
    for begin, end in pairwise(starts.tolist()):
        yield tuple(flat[begin:end])
