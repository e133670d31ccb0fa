"""Content of a table: rows grouped by network, as arrays to cache (`archive.cache`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from archive.architecture import packing
from archive.architecture.compact import restore
from archive.architecture.graph import Architecture, Edge, Layer
from archive.cache import Arrays

Floats = NDArray[np.float64]


class Shared(NamedTuple):
    """Distinct parts of many networks, each by itself.

    Attributes:
        layers: The layers.
        edges: The edges.
    """

    layers: dict[Layer, Layer]
    edges: dict[Edge, Edge]


class Described(NamedTuple):
    """Identity of the network of a row, which is built on demand.

    Attributes:
        functional_key: Functional key of the network.
        size: Its numbers of layers and edges, dead ones included.
        build: Returns the network of the row, dead layers included.
    """

    functional_key: str
    size: tuple[int, int]
    build: Callable[[], Architecture]

    @classmethod
    def of(cls, cell: Architecture, shared: Shared | None = None) -> Self:
        """Describe an existing network.

        Args:
            cell: The network.
            shared: Layers and edges of other networks, which equal ones of this network are
                replaced by. Equal parts and what a network caches beside its keys are nine tenths
                of its memory.
        """
        if shared is None:
            return cls(cell.functional_key, (len(cell.layers), len(cell.edges)), lambda: cell)

        layers = tuple([shared.layers.setdefault(layer, layer) for layer in cell.layers])
        edges = tuple([shared.edges.setdefault(edge, edge) for edge in cell.edges])
        return cls.of(
            restore(
                cell.space, layers, edges, cell.key, cell.functional_key, cell.arguments or None
            )
        )


def classes(
    space: str,
    cells: Sequence[Described],
    columns: Mapping[str, Sequence[float]],
    unusable: Mapping[str, str],
    doubtful: Mapping[str, tuple[str, Sequence[int]]] = MappingProxyType({}),
    config: Mapping[str, Any] = MappingProxyType({}),
) -> Arrays:
    """Group rows of equal `functional_key`, and average each column over each group.

    Args:
        space: Name of the vocabulary of the cells.
        cells: The cell of each row of the file; one network per class is built.
        columns: Name to one number per row, NaN if it is missing.
        unusable: Name of each column with values that are no numbers to the reason.
        doubtful: Name of each column of costs with impossible entries to the first of them, and
            their rows.
        config: Settings of the space, where the table determines them.

    Returns:
        The arrays of `packing` for one architecture a class, with `rows` (n,), `means` (columns, n)
        and `about`, JSON.
    """
    index: dict[str, int] = {}
    class_of_row = []
    best: list[Described] = []
    for cell in cells:
        number = index.setdefault(cell.functional_key, len(index))
        class_of_row.append(number)
        if number == len(best):
            best.append(cell)
        elif cell.size < best[number].size:
            best[number] = cell

    numbers = np.array(class_of_row, np.int64)
    means = [_means(numbers, len(index), values) for values in columns.values()]
    doubtful_classes = {}
    for name, (first, rows) in doubtful.items():
        doubtful_classes[name] = [first, np.unique(numbers[[*rows]]).tolist()]

    about = {
        "space": space,
        "columns": list(columns),
        "unusable": dict(unusable),
        "doubtful": doubtful_classes,
        "config": dict(config),
    }
    return {
        **packing.pack([cell.build() for cell in best]),
        "rows": np.bincount(numbers, minlength=len(index)).astype(np.int64),
        "means": np.array(means, np.float64).reshape(len(columns), len(index)),
        "about": np.frombuffer(json.dumps(about).encode(), np.uint8),
    }


def _means(numbers: NDArray[np.int64], n: int, values: Iterable[float]) -> Floats:
    column = np.array(values, dtype=np.float64)
    present = ~np.isnan(column)
    counts = np.bincount(numbers[present], minlength=n)
    sums = np.bincount(numbers[present], column[present], minlength=n)
    means: Floats = np.divide(sums, counts, out=np.full(n, np.nan), where=counts > 0)
    return means
