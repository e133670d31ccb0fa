"""Blocks of weighted sums of L1 and Euclidean distances, computed on all processors and written
once.

Many networks of a space of cells have equal features: distinct features are compared once, and
further pairs are looked up. Writing a large result takes longer than computing it: a weighted sum
of distances is computed a few rows at a time, while they are in the processor's cache.

| symbol | meaning                                | shape  |
|--------|----------------------------------------|--------|
| d_c    | distances of one part                  | (m, n) |
| out    | sum over the parts of weight_c * d_c   | (m, n) |
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from archive import runtime
from archive.kernels.features.l1.parts import (
    BlockPart,
    LookupRows,
    Steps,
    Vector,
    of_steps,
    of_vectors,
)

Floats = NDArray[np.float64]
Item = TypeVar("Item")

TABLE = 2**22
SMALLER = 4
"""Limits of a table of distinct distances: at most 4M entries (32 MB), and a quarter of the block's
entries."""
ROWS = 16
SMALL = 2**16
"""Rows that a thread fills at a time, and the number of entries below which a second thread costs
more than it saves."""


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

    return _distinct(rows, columns, lambda vector: frozenset(vector.items()), compare)


def steps(rows: Sequence[Steps], columns: Sequence[Steps] | None = None) -> BlockPart:
    """Return the areas between cumulative distribution functions: the Wasserstein distances of
    measures on a line.

    Args:
        rows: m functions.
        columns: n functions; None means `rows`.
    """
    return _distinct(rows, columns, lambda function: function, of_steps)


def fill(out: Floats, parts: Sequence[tuple[float, BlockPart]], *, symmetric: bool) -> None:
    """Write a weighted sum of distances.

    Args:
        out: (m, n), all zeros.
        parts: Weights and distances.
        symmetric: Whether rows and columns are the same networks; one half is then computed and
            copied to the other.
    """
    from archive.kernels.features.l1 import rows as l1

    def add(begin: int) -> None:
        for weight, part in parts:
            part.add(weight, symmetric, begin, min(begin + ROWS, len(out)), out)

    def mirror(begin: int) -> None:
        l1.mirror(begin, min(begin + 4 * ROWS, len(out)), out)

    _for_all(add, range(0, len(out), ROWS), out.size)
    if symmetric:
        _for_all(mirror, range(0, len(out), 4 * ROWS), out.size)


def _for_all(work: Callable[[int], None], begins: range, size: int) -> None:
    threads = runtime.count_cores()
    if threads == 1 or size < SMALL:
        for begin in begins:
            work(begin)

        return

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, begins))


def _distinct(
    rows: Sequence[Item],
    columns: Sequence[Item] | None,
    identity: Callable[[Item], Hashable],
    compare: Callable[[Sequence[Item], Sequence[Item] | None], BlockPart],
) -> BlockPart:
    """Return a look-up of distinct features where enough networks share them, else the plain
    comparison.
    """
    number: dict[Hashable, int] = {}
    features: list[Item] = []

    def numbered(items: Sequence[Item]) -> NDArray[np.int64]:
        numbers = np.empty(len(items), np.int64)
        for at, item in enumerate(items):
            known = number.setdefault(identity(item), len(features))
            if known == len(features):
                features.append(item)

            numbers[at] = known

        return numbers

    i = numbered(rows)
    j = i if columns is None else numbered(columns)
    if len(features) ** 2 > min(TABLE, len(i) * len(j) // SMALLER):
        return compare(rows, columns)

    table = np.zeros((len(features), len(features)))
    fill(table, [(1.0, compare(features, None))], symmetric=True)
    return LookupRows(table, i, j)
