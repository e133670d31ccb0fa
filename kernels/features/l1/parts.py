"""Parts of a block of distances, by representation: dense vectors, sparse vectors, step functions,
a look-up table.

| symbol | meaning                                                    | shape          |
|--------|------------------------------------------------------------|----------------|
| x, y   | dense vectors of the rows' and of the columns' networks    | (m, p), (p, n) |
| d      | distances of the part                                      | (m, n)         |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Vector = Mapping[str, float]
# Ascending places, and the value from each place on; 0 before the first, and the same last value in
# all functions.
Steps = tuple[tuple[float, ...], tuple[float, ...]]

MERGE = 20
"""Time to merge one entry of a sparse vector, in subtractions of a dense one (measured)."""
DENSE = 2**25
"""Largest number of entries in the dense vectors of one part: 256 MB."""


class BlockPart(ABC):
    """Distances between two lists of networks, which are added to a block row by row.

    Threads may share an instance.
    """

    @abstractmethod
    def add(self, weight: float, upper: bool, begin: int, end: int, out: Floats) -> None:
        """Add weight * d to the rows `begin` to `end`; with `upper`, entries left of the diagonal
        may be left out.
        """


def of_vectors(
    rows: Sequence[Vector], columns: Sequence[Vector] | None, euclidean: bool
) -> BlockPart:
    """Return dense or sparse rows, whichever is faster; `columns` None means `rows`."""
    both = rows if columns is None else [*rows, *columns]
    place = {name: at for at, name in enumerate(sorted(set(chain.from_iterable(both))))}
    if is_dense(len(place), [len(vector) for vector in both]):
        x = dense(rows, place)
        y = x if columns is None else dense(columns, place)
        return DenseRows(x, np.ascontiguousarray(y.T), euclidean)

    first = entries_of(rows, place)
    return SparseRows(first, first if columns is None else entries_of(columns, place), euclidean)


def of_steps(rows: Sequence[Steps], columns: Sequence[Steps] | None) -> BlockPart:
    """Return the same choice for the areas between step functions; `columns` None means `rows`."""
    both = rows if columns is None else [*rows, *columns]
    places = np.array(sorted({place for steps in both for place in steps[0]}))
    if is_dense(len(places), [len(steps[0]) for steps in both]):
        x = areas(rows, places)
        y = x if columns is None else areas(columns, places)
        return DenseRows(x, np.ascontiguousarray(y.T), euclidean=False)

    first = _entries_of_steps(rows)
    return StepRows(first, first if columns is None else _entries_of_steps(columns))


def dense(vectors: Sequence[Vector], place: Mapping[str, int]) -> Floats:
    """Return vectors as a dense (m, p) matrix; entries without a place are ignored."""
    laid = np.zeros((len(vectors), len(place)))
    for row, vector in zip(laid, vectors, strict=True):
        for name, value in vector.items():
            at = place.get(name)
            if at is not None:
                row[at] = value

    return laid


def is_dense(p: int, entries: Sequence[int]) -> bool:
    """Return whether subtracting dense vectors of p columns is faster than merging sparse ones of
    these sizes.
    """
    # A pair merges the entries of two networks; with few columns the vectors are cheap in any case.
    return p * len(entries) <= min(DENSE, 2 * MERGE * sum(entries) + 64 * len(entries))


def areas(functions: Sequence[Steps], places: Floats) -> Floats:
    """Return (m, p - 1) areas below step functions between adjacent places; their L1 distance is
    the area between.
    """
    areas = np.empty((len(functions), max(len(places) - 1, 0)))
    for row, (own, values) in zip(areas, functions, strict=True):
        row[:] = np.array([0.0, *values])[np.searchsorted(own, places[:-1], side="right")]

    return areas * np.diff(places)


class Entries(NamedTuple):
    """Packed sparse vectors, or step functions.

    Attributes:
        starts: (m + 1,) int64, position of the first entry of each.
        places: (entries,) float64, ascending within each: the column, or the place from which a
            value holds.
        values: (entries,) float64.
    """

    starts: Integers
    places: Floats
    values: Floats


def entries_of(vectors: Sequence[Vector], place: Mapping[str, float]) -> Entries:
    """Pack sparse vectors, whose names all have a place."""
    ordered = [sorted((place[name], value) for name, value in vector.items()) for vector in vectors]
    flat = [entry for entries in ordered for entry in entries]
    places, values = (np.array([entry[side] for entry in flat], np.float64) for side in (0, 1))
    return Entries(_starts(map(len, ordered)), places, values)


def _entries_of_steps(functions: Sequence[Steps]) -> Entries:
    places = np.array([place for steps in functions for place in steps[0]], np.float64)
    values = np.array([value for steps in functions for value in steps[1]], np.float64)
    return Entries(_starts(len(steps[0]) for steps in functions), places, values)


def _starts(sizes: Iterable[int]) -> Integers:
    return np.cumsum([0, *sizes], dtype=np.int64)


@final
@dataclass(frozen=True, eq=False)
class DenseRows(BlockPart):
    """Dense vectors, subtracted by vector instructions: O(p) a pair."""

    x: Floats
    y: Floats
    euclidean: bool

    def add(self, weight: float, upper: bool, begin: int, end: int, out: Floats) -> None:
        """See `BlockPart.add`."""
        from archive.kernels.features.l1 import rows as l1

        l1.add_dense(self.x, self.y, self.euclidean, weight, upper, begin, end, out)


@final
@dataclass(frozen=True, eq=False)
class SparseRows(BlockPart):
    """Sparse vectors, merged by column: O(entries) a pair."""

    x: Entries
    y: Entries
    euclidean: bool

    def add(self, weight: float, upper: bool, begin: int, end: int, out: Floats) -> None:
        """See `BlockPart.add`."""
        from archive.kernels.features.l1 import rows as l1

        l1.add_sparse(*self.x, *self.y, self.euclidean, weight, upper, begin, end, out)


@final
@dataclass(frozen=True, eq=False)
class StepRows(BlockPart):
    """Step functions, merged by place: O(places) a pair."""

    x: Entries
    y: Entries

    def add(self, weight: float, upper: bool, begin: int, end: int, out: Floats) -> None:
        """See `BlockPart.add`."""
        from archive.kernels.features.l1 import rows as l1

        l1.add_steps(*self.x, *self.y, weight, upper, begin, end, out)


@final
@dataclass(frozen=True, eq=False)
class LookupRows(BlockPart):
    """Table of the distances of distinct features;

    `rows` (m,) and `columns` (n,) are positions in it.
    """

    table: Floats
    rows: Integers
    columns: Integers

    def add(self, weight: float, upper: bool, begin: int, end: int, out: Floats) -> None:
        """See `BlockPart.add`."""
        from archive.kernels.features.l1 import rows as l1

        l1.add_lookup(self.table, self.rows, self.columns, weight, upper, begin, end, out)
