"""Compiled edit distances of many pairs of networks: the dynamic programme of eq.

(6), the assignment of eq. (7).

The common parts of two networks are left out first. All costs are metrics in which inserting costs
1. By the triangle inequality, exchanging two matches never costs more. Hence some optimal alignment
matches the common beginning and the common end of the layers, and some optimal matching contains
all common skips. A search compares thousands of networks that are a few operations apart, which are
then small problems.

The assignment is found by shortest augmenting paths (Jonker and Volgenant 1987), one for each of
the fewer skips.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from archive.kernels.compiled import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Workspace(NamedTuple):
    """Buffers of one thread.

    Attributes:
        row: (layers + 1,) one row of A.
        unshared: (2, skips) positions of the skips that only one of the networks has.
        cost: (skips, skips) d_s.
        potential: (2, skips + 1) of rows and columns.
        slack: (skips + 1,) reduced length of the shortest path to each column.
        match: (skips + 1,) row matched to each column, 0 for none; counted from 1, like the
            columns.
        before: (skips + 1,) previous column on the shortest path.
        done: (skips + 1,) whether the shortest path to a column is final.
    """

    row: Floats
    unshared: Integers
    cost: Floats
    potential: Floats
    slack: Floats
    match: Integers
    before: Integers
    done: NDArray[np.bool_]


def workspace(layers: int, skips: int) -> Workspace:
    """Return the buffers for networks of at most this many layers and skips."""
    links = np.empty((2, skips + 1), np.int64)
    return Workspace(
        np.empty(layers + 1),
        np.empty((2, skips), np.int64),
        np.empty((skips, skips)),
        np.empty((2, skips + 1)),
        np.empty(skips + 1),
        links[0],
        links[1],
        np.empty(skips + 1, np.bool_),
    )


@compiled
def solve_pairs(
    pairs: Integers,
    kinds: Integers,
    scales: Floats,
    attributes: Floats,
    layer_starts: Integers,
    skips: Integers,
    skip_starts: Integers,
    lam: float,
    room: Workspace,
    out: Floats,
) -> None:
    """Write the distance of each pair.

    Args:
        pairs: (q, 2) networks.
        kinds: (layers,), of all networks, concatenated as in the following arrays.
        scales: (layers,).
        attributes: (layers, f).
        layer_starts: (networks + 1,) position of each network's first layer.
        skips: (skips, 3), sorted within each network.
        skip_starts: (networks + 1,) position of each network's first skip.
        lam: lambda.
        room: Buffers (`workspace`); one thread at a time may use them.
        out: (q,), written.
    """
    for q in range(pairs.shape[0]):
        left = pairs[q, 0]
        right = pairs[q, 1]
        out[q] = _layers(
            layer_starts[left],
            layer_starts[left + 1],
            layer_starts[right],
            layer_starts[right + 1],
            kinds,
            scales,
            attributes,
            room.row,
        )
        if lam > 0:
            out[q] += lam * _skips(
                skip_starts[left],
                skip_starts[left + 1],
                skip_starts[right],
                skip_starts[right + 1],
                skips,
                room,
            )


@compiled
def _layers(
    start: int,
    stop: int,
    begin: int,
    end: int,
    kinds: Integers,
    scales: Floats,
    attributes: Floats,
    row: Floats,
) -> float:
    """Return D_l by eq. (6), one row of A at a time."""
    while start < stop and begin < end and _layer(start, begin, kinds, scales, attributes) == 0.0:
        start += 1
        begin += 1

    while (
        start < stop and begin < end and _layer(stop - 1, end - 1, kinds, scales, attributes) == 0.0
    ):
        stop -= 1
        end -= 1

    for j in range(end - begin + 1):
        row[j] = j

    for i in range(start, stop):
        diagonal = row[0]
        left = row[0] = diagonal + 1.0
        for j in range(begin, end):
            above = row[j - begin + 1]
            left = min(left + 1.0, above + 1.0, diagonal + _layer(i, j, kinds, scales, attributes))
            row[j - begin + 1] = left
            diagonal = above

    distance: float = row[end - begin]
    return distance


@compiled
def _layer(i: int, j: int, kinds: Integers, scales: Floats, attributes: Floats) -> float:
    """Return d_l."""
    if kinds[i] != kinds[j]:
        return 1.0

    total = 0.0
    for f in range(attributes.shape[1]):
        x = attributes[i, f]
        y = attributes[j, f]
        if x != y:
            total += abs(x - y) / max(x, y)

    distance: float = scales[i] * total
    return distance


@compiled
def _skips(start: int, stop: int, begin: int, end: int, skips: Integers, room: Workspace) -> float:
    """Return D_s by eq. (7)."""
    if stop - start > end - begin:
        start, stop, begin, end = begin, end, start, stop

    rows, columns = _differing(start, stop, begin, end, skips, room.unshared)
    for i in range(rows):
        for j in range(columns):
            room.cost[i, j] = _skip(room.unshared[0, i], room.unshared[1, j], skips)

    return _assign(rows, columns, room) + columns - rows


@compiled
def _differing(
    start: int, stop: int, begin: int, end: int, skips: Integers, unshared: Integers
) -> tuple[int, int]:
    """List the skips that only the first, and only the second network has; return their numbers."""
    i = start
    j = begin
    rows = 0
    columns = 0
    while i < stop or j < end:
        order = 1 if i == stop else -1 if j == end else _compare(i, j, skips)
        if order < 0:
            unshared[0, rows] = i
            rows += 1

        if order > 0:
            unshared[1, columns] = j
            columns += 1

        i += order <= 0
        j += order >= 0

    return rows, columns


@compiled
def _compare(i: int, j: int, skips: Integers) -> int:
    for f in range(3):
        if skips[i, f] != skips[j, f]:
            return -1 if skips[i, f] < skips[j, f] else 1

    return 0


@compiled
def _skip(i: int, j: int, skips: Integers) -> float:
    """Return d_s of two skips that are not equal, by eq. (8)."""
    if skips[i, 0] != skips[j, 0]:
        return 1.0

    apart = abs(skips[i, 1] - skips[j, 1]) + abs(skips[i, 2] - skips[j, 2])
    distance: float = apart / (max(skips[i, 1], skips[j, 1]) + max(skips[i, 2], skips[j, 2]))
    return distance


@compiled
def _assign(rows: int, columns: int, room: Workspace) -> float:
    """Return the least cost of an assignment of every row to a distinct column; rows <= columns."""
    match = room.match
    before = room.before
    room.potential[:, : columns + 1] = 0.0
    match[: columns + 1] = 0
    for i in range(1, rows + 1):
        match[0] = i
        j = _augment(columns, room)
        while j:
            match[j] = match[before[j]]
            j = before[j]

    total = 0.0
    for j in range(1, columns + 1):
        if match[j]:
            total += room.cost[match[j] - 1, j - 1]

    return total


@compiled
def _augment(columns: int, room: Workspace) -> int:
    """Find the shortest path to a free column, update potentials, and return the column."""
    slack = room.slack
    done = room.done
    match = room.match
    of_rows = room.potential[0]
    of_columns = room.potential[1]
    slack[: columns + 1] = np.inf
    done[: columns + 1] = False
    column = 0
    while match[column]:
        done[column] = True
        i = match[column]
        nearest = 0
        least = np.inf
        for j in range(1, columns + 1):
            if not done[j]:
                length = room.cost[i - 1, j - 1] - of_rows[i] - of_columns[j]
                if length < slack[j]:
                    slack[j] = length
                    room.before[j] = column

                if slack[j] < least:
                    least = slack[j]
                    nearest = j

        for j in range(columns + 1):
            if done[j]:
                of_rows[match[j]] += least
                of_columns[j] -= least
            else:
                slack[j] -= least

        column = nearest

    return column
