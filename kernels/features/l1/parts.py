"""The four ways of adding distances to a block: subtract dense vectors, merge sparse ones, or steps, or look up.

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
# Places, ascending, and the value from each place on; 0 before the first, the same last value for all.
Steps = tuple[tuple[float, ...], tuple[float, ...]]

# Merging one entry of a sparse vector takes as long as subtracting this many dense ones (measured).
MERGE = 20
# Entries that the dense vectors of one part may hold: 256 MB.
DENSE = 2**25


class BlockPart(ABC):
    """The distances between two lists of networks, ready to be added to rows of a block. Threads may share it."""

    @abstractmethod
    def add(self, weight: float, upper: bool, begin: int, end: int, out: Floats) -> None:
        """Add weight * d to the rows `begin` to `end`; with `upper`, what lies left of the diagonal may be left out."""


def of_vectors(rows: Sequence[Vector], columns: Sequence[Vector] | None, euclidean: bool) -> BlockPart:
    """Choose between subtracting and merging; `columns` None stands for `rows`."""
    both = rows if columns is None else [*rows, *columns]
    place = {name: at for at, name in enumerate(sorted(set(chain.from_iterable(both))))}
    if is_dense(len(place), [len(vector) for vector in both]):
        x = dense(rows, place)
        y = x if columns is None else dense(columns, place)
        return DenseRows(x, np.ascontiguousarray(y.T), euclidean)
    first = _entries_of_vectors(rows, place)
    return SparseRows(first, first if columns is None else _entries_of_vectors(columns, place), euclidean)


def of_steps(rows: Sequence[Steps], columns: Sequence[Steps] | None) -> BlockPart:
    """Choose likewise for the areas between step functions; `columns` None stands for `rows`."""
    both = rows if columns is None else [*rows, *columns]
    places = np.array(sorted({place for steps in both for place in steps[0]}))
    if is_dense(len(places), [len(steps[0]) for steps in both]):
        x = areas(rows, places)
        y = x if columns is None else areas(columns, places)
        return DenseRows(x, np.ascontiguousarray(y.T), euclidean=False)
    first = _entries_of_steps(rows)
    return StepRows(first, first if columns is None else _entries_of_steps(columns))


def dense(vectors: Sequence[Vector], place: Mapping[str, int]) -> Floats:
    """Lay vectors out as (m, p); entries without a place are ignored."""
    laid = np.zeros((len(vectors), len(place)))
    for row, vector in zip(laid, vectors, strict=True):
        for name, value in vector.items():
            at = place.get(name)
            if at is not None:
                row[at] = value
    return laid


def is_dense(p: int, entries: Sequence[int]) -> bool:
    """Return whether subtracting vectors of p columns is faster than merging their numbers of entries."""
    # A pair merges the entries of two networks; with few columns the vectors are cheap in any case.
    return p * len(entries) <= min(DENSE, 2 * MERGE * sum(entries) + 64 * len(entries))


def areas(functions: Sequence[Steps], places: Floats) -> Floats:
    """Return (m, p - 1) areas below step functions between one place and the next, whose L1 distance is the area."""
    areas = np.empty((len(functions), max(len(places) - 1, 0)))
    for row, (own, values) in zip(areas, functions, strict=True):
        row[:] = np.array([0.0, *values])[np.searchsorted(own, places[:-1], side="right")]
    return areas * np.diff(places)


class Entries(NamedTuple):
    """Sparse vectors, or step functions, laid end to end.

    Attributes:
        starts: (m + 1,) int64, where the entries of each begin.
        places: (entries,) float64, ascending within each: the column, or from where on a function has a value.
        values: (entries,) float64.
    """

    starts: Integers
    places: Floats
    values: Floats


def _entries_of_vectors(vectors: Sequence[Vector], place: Mapping[str, int]) -> Entries:
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
    """Subtracts: O(p) a pair, in vector instructions."""

    x: Floats
    y: Floats
    euclidean: bool

    def add(self, weight: float, upper: bool, begin: int, end: int, out: Floats) -> None:
        """Subtract."""
        from archive.kernels.features.l1 import rows as l1

        l1.add_dense(self.x, self.y, self.euclidean, weight, upper, begin, end, out)


@final
@dataclass(frozen=True, eq=False)
class SparseRows(BlockPart):
    """Merges the entries of sparse vectors: O(entries) a pair."""

    x: Entries
    y: Entries
    euclidean: bool

    def add(self, weight: float, upper: bool, begin: int, end: int, out: Floats) -> None:
        """Merge."""
        from archive.kernels.features.l1 import rows as l1

        l1.add_sparse(*self.x, *self.y, self.euclidean, weight, upper, begin, end, out)


@final
@dataclass(frozen=True, eq=False)
class StepRows(BlockPart):
    """Merges the places of step functions: O(places) a pair."""

    x: Entries
    y: Entries

    def add(self, weight: float, upper: bool, begin: int, end: int, out: Floats) -> None:
        """Merge."""
        from archive.kernels.features.l1 import rows as l1

        l1.add_steps(*self.x, *self.y, weight, upper, begin, end, out)


@final
@dataclass(frozen=True, eq=False)
class LookupRows(BlockPart):
    """Reads the distances of distinct features from a table: (m,) and (n,) say which are whose."""

    table: Floats
    rows: Integers
    columns: Integers

    def add(self, weight: float, upper: bool, begin: int, end: int, out: Floats) -> None:
        """Look up."""
        from archive.kernels.features.l1 import rows as l1

        l1.add_lookup(self.table, self.rows, self.columns, weight, upper, begin, end, out)
