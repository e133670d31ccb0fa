"""Compiled rows of L1 and Euclidean distances: dense, sparse, step functions, look-up.

| symbol | meaning                                                                       | shape          |
|--------|-------------------------------------------------------------------------------|----------------|
| x, y   | of the rows' and the columns' networks: dense vectors, the latter transposed  | (m, p), (p, n) |
|        | or entries of sparse vectors or step functions (`features.l1.parts.Entries`): |                |
|        | `starts`, `places`, `values`, for the columns with `_y`                       |                |
| out    | to each entry, `weight` times a distance is added                             | (m, n)         |

Every function fills the rows `begin` to `end`, so that threads can share a block. With `upper`,
entries left of the diagonal may be left out; `mirror` fills them in. Terms are added in the order
of columns or places: exchanging the two vectors changes no bit of a distance, and equal vectors are
at exactly 0.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from archive.kernels.compiled import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

TILE = 256
"""Columns of one tile: their sums stay in the first-level cache while the vectors' entries are
read."""
SQUARE = 32
"""Side of the mirrored squares: both the rows read and the rows written stay in the first-level
cache."""


@compiled
def add_dense(
    x: Floats,
    y: Floats,
    euclidean: bool,
    weight: float,
    upper: bool,
    begin: int,
    end: int,
    out: Floats,
) -> None:
    """Add weight * ||x_i - y_j||."""
    buffer = np.empty(TILE)
    n = y.shape[1]
    for i in range(begin, end):
        for left in range(i // TILE * TILE if upper else 0, n, TILE):
            right = min(left + TILE, n)
            sums = buffer[: right - left]
            if euclidean:
                _sum_squares(x[i], y, left, right, sums)
            else:
                _sum_absolutes(x[i], y, left, right, sums)

            row = out[i, left:right]
            for j in range(right - left):
                row[j] += weight * sums[j]


@compiled
def _sum_absolutes(x: Floats, y: Floats, left: int, right: int, sums: Floats) -> None:
    sums[:] = 0.0
    # Four columns a pass: sums are read and written a quarter as often, and slices compile to
    # vector instructions.
    whole = x.shape[0] // 4 * 4
    for k in range(0, whole, 4):
        a = x[k]
        b = x[k + 1]
        c = x[k + 2]
        d = x[k + 3]
        ya = y[k, left:right]
        yb = y[k + 1, left:right]
        yc = y[k + 2, left:right]
        yd = y[k + 3, left:right]
        for j in range(right - left):
            sums[j] = sums[j] + abs(ya[j] - a) + abs(yb[j] - b) + abs(yc[j] - c) + abs(yd[j] - d)

    for k in range(whole, x.shape[0]):
        a = x[k]
        ya = y[k, left:right]
        for j in range(right - left):
            sums[j] += abs(ya[j] - a)


@compiled
def _sum_squares(x: Floats, y: Floats, left: int, right: int, sums: Floats) -> None:
    """Write the roots of the sums of squared differences.

    The shorter formula by scalar products cancels.
    """
    sums[:] = 0.0
    for k in range(x.shape[0]):
        a = x[k]
        ya = y[k, left:right]
        for j in range(right - left):
            sums[j] += (ya[j] - a) * (ya[j] - a)

    for j in range(right - left):
        sums[j] = math.sqrt(sums[j])


@compiled
def add_sparse(
    starts: Integers,
    places: Floats,
    values: Floats,
    starts_y: Integers,
    places_y: Floats,
    values_y: Floats,
    euclidean: bool,
    weight: float,
    upper: bool,
    begin: int,
    end: int,
    out: Floats,
) -> None:
    """Add weight * ||x_i - y_j|| by merging the entries of both."""
    for i in range(begin, end):
        for j in range(i if upper else 0, out.shape[1]):
            a = starts[i]
            b = starts_y[j]
            total = 0.0
            while a < starts[i + 1] or b < starts_y[j + 1]:
                if b == starts_y[j + 1] or (a < starts[i + 1] and places[a] < places_y[b]):
                    difference = values[a]
                    a += 1
                elif a == starts[i + 1] or places_y[b] < places[a]:
                    difference = values_y[b]
                    b += 1
                else:
                    difference = values[a] - values_y[b]
                    a += 1
                    b += 1

                total += difference * difference if euclidean else abs(difference)

            out[i, j] += weight * (math.sqrt(total) if euclidean else total)


@compiled
def add_steps(
    starts: Integers,
    places: Floats,
    values: Floats,
    starts_y: Integers,
    places_y: Floats,
    values_y: Floats,
    weight: float,
    upper: bool,
    begin: int,
    end: int,
    out: Floats,
) -> None:
    """Add weight * the area between the step functions x_i and y_j, which end at the same value."""
    for i in range(begin, end):
        for j in range(i if upper else 0, out.shape[1]):
            a = starts[i]
            b = starts_y[j]
            total = 0.0
            gap = 0.0
            before = 0.0
            level = 0.0
            level_y = 0.0
            while a < starts[i + 1] or b < starts_y[j + 1]:
                position = places[a] if a < starts[i + 1] else places_y[b]
                if b < starts_y[j + 1]:
                    position = min(position, places_y[b])

                total += gap * (position - before)
                before = position
                if a < starts[i + 1] and places[a] == position:
                    level = values[a]
                    a += 1

                if b < starts_y[j + 1] and places_y[b] == position:
                    level_y = values_y[b]
                    b += 1

                gap = abs(level - level_y)

            out[i, j] += weight * total


@compiled
def add_lookup(
    table: Floats,
    rows: Integers,
    columns: Integers,
    weight: float,
    upper: bool,
    begin: int,
    end: int,
    out: Floats,
) -> None:
    """Add weight * table[rows_i, columns_j]."""
    for i in range(begin, end):
        left = i if upper else 0
        source = table[rows[i]]
        selected = columns[left:]
        row = out[i, left:]
        for j in range(row.shape[0]):
            row[j] += weight * source[selected[j]]


@compiled
def mirror(begin: int, end: int, out: Floats) -> None:
    """Copy the upper triangle to the lower one, for the rows `begin` to `end`."""
    for top in range(begin, end, SQUARE):
        bottom = min(top + SQUARE, end)
        for left in range(0, bottom, SQUARE):
            for i in range(top, bottom):
                for j in range(left, min(left + SQUARE, i)):
                    out[i, j] = out[j, i]
