"""Blocks of weighted sums of L1 and Euclidean distances, computed on all processors.

Many networks of a space of cells have equal features: distinct features are compared once, and
further pairs are looked up. Writing a large result takes longer than computing it: a weighted sum
of distances is computed a few rows at a time, while they are in the processor's cache.

A part of a block compares dense vectors, sparse vectors or step functions, or looks up a table.

| symbol | meaning                                                    | shape          |
|--------|------------------------------------------------------------|----------------|
| x, y   | dense vectors of the rows' and of the columns' networks    | (m, p), (p, n) |
| d_c    | distances of one part                                      | (m, n)         |
| out    | sum over the parts of weight_c * d_c                       | (m, n)         |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from archive import runtime

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Item = TypeVar("Item")
Vector = Mapping[str, float]
# Ascending places, and the value from each place on; 0 before the first, and the same last value in
# all functions.
Steps = tuple[tuple[float, ...], tuple[float, ...]]

TABLE = 2**22
SMALLER = 4
"""Limits of a table of distinct distances: at most 4M entries (32 MB), and a quarter of the block's
entries."""
ROWS = 16
SMALL = 2**16
"""Rows that a thread fills at a time, and the number of entries below which a second thread costs
more than it saves."""
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
        """Add weight * d to rows `begin` to `end`; with `upper`, optionally above the diagonal only.

        Entries left of the diagonal may be left out with `upper`.
        """


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


@final
@dataclass(frozen=True, eq=False)
class DenseRows(BlockPart):
    """Dense vectors, subtracted by vector instructions: O(p) a pair."""

    x: Floats
    y: Floats
    euclidean: bool

    def add(self, weight: float, upper: bool, begin: int, end: int, out: Floats) -> None:
        """See `BlockPart.add`."""
        from archive.kernels.features import l1_rows as l1

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
        from archive.kernels.features import l1_rows as l1

        l1.add_sparse(*self.x, *self.y, self.euclidean, weight, upper, begin, end, out)


@final
@dataclass(frozen=True, eq=False)
class StepRows(BlockPart):
    """Step functions, merged by place: O(places) a pair."""

    x: Entries
    y: Entries

    def add(self, weight: float, upper: bool, begin: int, end: int, out: Floats) -> None:
        """See `BlockPart.add`."""
        from archive.kernels.features import l1_rows as l1

        l1.add_steps(*self.x, *self.y, weight, upper, begin, end, out)


@final
@dataclass(frozen=True, eq=False)
class LookupRows(BlockPart):
    """Distances of distinct features: `rows` (m,) and `columns` (n,) are positions in `table`."""

    table: Floats
    rows: Integers
    columns: Integers

    def add(self, weight: float, upper: bool, begin: int, end: int, out: Floats) -> None:
        """See `BlockPart.add`."""
        from archive.kernels.features import l1_rows as l1

        l1.add_lookup(self.table, self.rows, self.columns, weight, upper, begin, end, out)


def vectors(
    rows: Sequence[Vector], columns: Sequence[Vector] | None = None, *, euclidean: bool = False
) -> BlockPart:
    """Return the norms of the differences of sparse vectors.

    Args:
        rows: m vectors, feature name to value, zeros left out.
        columns: n vectors; None means `rows`.
        euclidean: Whether the norm is Euclidean rather than L1.
    """

    def compare(first: Sequence[Vector], second: Sequence[Vector] | None) -> BlockPart:
        return of_vectors(first, second, euclidean)

    return _compare_distinct(rows, columns, lambda vector: frozenset(vector.items()), compare)


def steps(rows: Sequence[Steps], columns: Sequence[Steps] | None = None) -> BlockPart:
    """Return the areas between cumulative distribution functions.

    They are the Wasserstein distances of measures on a line.

    Args:
        rows: m functions.
        columns: n functions; None means `rows`.
    """
    return _compare_distinct(rows, columns, lambda function: function, of_steps)


def of_vectors(
    rows: Sequence[Vector], columns: Sequence[Vector] | None, euclidean: bool
) -> BlockPart:
    """Return dense or sparse rows, whichever is faster; `columns` None means `rows`."""
    both = rows if columns is None else [*rows, *columns]
    names = sorted(set(chain.from_iterable(both)))
    column_of = dict(zip(names, range(len(names)), strict=True))
    if is_dense(len(names), list(map(len, both))):
        x = dense(rows, column_of)
        y = x if columns is None else dense(columns, column_of)
        return DenseRows(x, np.ascontiguousarray(y.T), euclidean)

    first = entries_of(rows, column_of)
    second = first if columns is None else entries_of(columns, column_of)
    return SparseRows(first, second, euclidean)


def of_steps(rows: Sequence[Steps], columns: Sequence[Steps] | None) -> BlockPart:
    """Return dense or merged areas between step functions; `columns` None means `rows`."""
    both = rows if columns is None else [*rows, *columns]
    distinct: set[float] = set()
    for function_places, _ in both:
        distinct.update(function_places)

    places = np.array(sorted(distinct))
    if is_dense(len(places), [len(function_places) for function_places, _ in both]):
        x = areas(rows, places)
        y = x if columns is None else areas(columns, places)
        return DenseRows(x, np.ascontiguousarray(y.T), euclidean=False)

    first = entries_of_steps(rows)
    return StepRows(first, first if columns is None else entries_of_steps(columns))


def is_dense(p: int, entries: Sequence[int]) -> bool:
    """Return whether subtracting dense vectors is faster than merging sparse ones.

    Args:
        p: Columns of the dense vectors.
        entries: Entries of each sparse vector.
    """
    # A pair merges the entries of two networks; with few columns the vectors are cheap in any case.
    return p * len(entries) <= min(DENSE, 2 * MERGE * sum(entries) + 64 * len(entries))


def dense(vectors: Sequence[Vector], column_of: Mapping[str, int]) -> Floats:
    """Return vectors as a dense (m, p) matrix; entries without a column are ignored."""
    matrix = np.zeros((len(vectors), len(column_of)))
    for row, vector in zip(matrix, vectors, strict=True):
        for name, value in vector.items():
            column = column_of.get(name)
            if column is not None:
                row[column] = value

    return matrix


def areas(functions: Sequence[Steps], places: Floats) -> Floats:
    """Return the areas below step functions between adjacent places, (m, p - 1).

    The L1 distance of two rows is the area between the functions.
    """
    heights = np.empty((len(functions), max(len(places) - 1, 0)))
    for row, (function_places, values) in zip(heights, functions, strict=True):
        steps_before = np.searchsorted(function_places, places[:-1], side="right")
        row[:] = np.array([0.0, *values])[steps_before]

    return heights * np.diff(places)


def entries_of(vectors: Sequence[Vector], column_of: Mapping[str, float]) -> Entries:
    """Pack sparse vectors; all of their names have a column."""
    sizes: list[int] = []
    places: list[float] = []
    values: list[float] = []
    for vector in vectors:
        entries = sorted((column_of[name], value) for name, value in vector.items())
        sizes.append(len(entries))
        for column, value in entries:
            places.append(column)
            values.append(value)

    return Entries(_starts(sizes), np.array(places, np.float64), np.array(values, np.float64))


def entries_of_steps(functions: Sequence[Steps]) -> Entries:
    """Pack step functions."""
    sizes: list[int] = []
    places: list[float] = []
    values: list[float] = []
    for function_places, function_values in functions:
        sizes.append(len(function_places))
        places += function_places
        values += function_values

    return Entries(_starts(sizes), np.array(places, np.float64), np.array(values, np.float64))


def _starts(sizes: Iterable[int]) -> Integers:
    return np.cumsum([0, *sizes], dtype=np.int64)


def fill(out: Floats, parts: Sequence[tuple[float, BlockPart]], *, symmetric: bool) -> None:
    """Write a weighted sum of distances.

    Args:
        out: (m, n), all zeros.
        parts: Weights and distances.
        symmetric: Whether rows and columns are the same networks; one half is then computed and
            copied to the other.
    """
    from archive.kernels.features import l1_rows as l1

    def add(begin: int) -> None:
        for weight, part in parts:
            part.add(weight, symmetric, begin, min(begin + ROWS, len(out)), out)

    def mirror(begin: int) -> None:
        l1.mirror(begin, min(begin + 4 * ROWS, len(out)), out)

    _run_for_all(add, range(0, len(out), ROWS), out.size)
    if symmetric:
        _run_for_all(mirror, range(0, len(out), 4 * ROWS), out.size)


def _run_for_all(work: Callable[[int], None], begins: range, size: int) -> None:
    threads = runtime.count_cores()
    if threads == 1 or size < SMALL:
        for begin in begins:
            work(begin)

        return

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, begins))


def _compare_distinct(
    rows: Sequence[Item],
    columns: Sequence[Item] | None,
    identity: Callable[[Item], Hashable],
    compare: Callable[[Sequence[Item], Sequence[Item] | None], BlockPart],
) -> BlockPart:
    """Return a look-up of distinct features, or the plain comparison if few networks share them."""
    number_of: dict[Hashable, int] = {}
    features: list[Item] = []

    def number_items(items: Sequence[Item]) -> Integers:
        numbers = np.empty(len(items), np.int64)
        for row, item in enumerate(items):
            number = number_of.setdefault(identity(item), len(features))
            if number == len(features):
                features.append(item)

            numbers[row] = number

        return numbers

    i = number_items(rows)
    j = i if columns is None else number_items(columns)
    if len(features) ** 2 > min(TABLE, len(i) * len(j) // SMALLER):
        return compare(rows, columns)

    table = np.zeros((len(features), len(features)))
    fill(table, [(1.0, compare(features, None))], symmetric=True)
    return LookupRows(table, i, j)
