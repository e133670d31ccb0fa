"""The script of the edit distance: the operations of least cost that turn one network into another.

Notation as in `archive.kernels.distances.edit`: A by eq. (6), traced back from its end,
gives the layers; the assignment of eq. (7) gives the skips. Several scripts may have the least
cost. The chosen one exchanges the fewest layers for layers of another kind.

| symbol | meaning                                                    | shape             |
|--------|------------------------------------------------------------|-------------------|
| A      | least costs of turning i layers into j layers, eq. (6)     | (n + 1, n' + 1)   |
| d_s    | cost of turning one skip into another, eq. (8)             | (s, s')           |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from archive.architecture.decoders.vocabulary import NAME as DECODER
from archive.architecture.graph import Architecture
from archive.kernels.differences.base import Change, Difference, DifferencePart, words
from archive.kernels.differences.blocks import block_difference
from archive.kernels.distances.edit import (
    SKIP,
    EditDistance,
    Sequenced,
    prepare_sequence,
    sequence,
)
from archive.words import PARTS

Floats = NDArray[np.float64]
Pair = tuple[int | None, int | None]
Skip = tuple[int, int, int]
"""Kind, u and delta."""
Orders = tuple[list[int], list[int]]
"""Sequences of both networks."""

_MATCH = 0
_REMOVE = 1
_INSERT = 2
_ROUNDING = 1e-12
"""Tolerance of rounding, for sums of the same costs in different orders."""


def edit_difference(
    first: Architecture, second: Architecture, distance: EditDistance
) -> Difference:
    """Return the script of two networks of one space.

    Takes O(n n') time and memory, and O(s^2 s') for the skips.
    """
    if first.space == DECODER:
        return block_difference(first, second, distance.components[0])

    prepared = prepare_sequence(first, distance.layers)
    two = prepare_sequence(second, distance.layers)
    orders = (sequence(first), sequence(second))
    costs = _layer_costs(prepared, two)
    # Positions in the sequences; input and output stand outside of them, and are matched.
    aligned = _align(costs)
    layers: list[Pair] = [(orders[0][0], orders[1][0])]
    for i, j in aligned:
        u = None if i is None else orders[0][i + 1]
        v = None if j is None else orders[1][j + 1]
        layers.append((u, v))

    layers.append((orders[0][-1], orders[1][-1]))
    parts = []
    for (i, j), (u, v) in zip(aligned, layers[1:-1], strict=True):
        cost = 1.0 if i is None or j is None else float(costs[i, j])
        parts.append(_layer_part(first, second, u, v, cost))

    parts += _skip_parts(prepared, two, orders, distance.lam)
    return Difference("edit", distance.components[0], first, second, tuple(parts), tuple(layers))


def _layer_costs(prepared_first: Sequenced, prepared_second: Sequenced) -> Floats:
    """Return d_l of all pairs of layers, (n, n')."""
    x = prepared_first.attributes[:, None, :]
    y = prepared_second.attributes[None, :, :]
    largest = np.maximum(x, y)
    relative = np.abs(x - y) / np.where(largest > 0, largest, 1.0)
    same = prepared_first.kinds[:, None] == prepared_second.kinds[None, :]
    return np.where(same, prepared_first.scales[:, None] * relative.sum(axis=2), 1.0)


def _align(costs: Floats) -> list[Pair]:
    """Return the layers of both sequences, matched, removed and inserted, in order."""
    n, m = costs.shape
    steps = np.empty((n + 1, m + 1), np.int8)
    steps[0] = _INSERT
    steps[:, 0] = _REMOVE
    # Cost and exchanges for layers of another kind.
    above = [(float(j), 0) for j in range(m + 1)]
    for i in range(n):
        row = [(i + 1.0, 0)]
        cost = costs[i].tolist()
        for j in range(m):
            swapped = cost[j] == 1.0
            options = (
                (above[j][0] + cost[j], above[j][1] + swapped),
                (above[j + 1][0] + 1.0, above[j + 1][1]),
                (row[j][0] + 1.0, row[j][1]),
            )
            step = _cheapest(options)
            steps[i + 1, j + 1] = step
            row.append(options[step])

        above = row

    aligned: list[Pair] = []
    i = n
    j = m
    while i or j:
        step = int(steps[i, j])
        i = i - (step != _INSERT)
        j = j - (step != _REMOVE)
        aligned.append((i if step != _INSERT else None, j if step != _REMOVE else None))

    return aligned[::-1]


def _cheapest(options: Sequence[tuple[float, int]]) -> int:
    """Return the move of least cost; of equal ones, the first with the fewest exchanges."""
    least = min(options)[0] + _ROUNDING
    best = None
    for move, (cost, exchanges) in enumerate(options):
        if cost <= least and (best is None or exchanges < options[best][1]):
            best = move

    assert best is not None
    return best


def _layer_part(
    first: Architecture, second: Architecture, u: int | None, v: int | None, cost: float
) -> DifferencePart:
    if u is None:
        assert v is not None
        return DifferencePart("layer", "inserted", (), (v,), cost, "a layer more costs 1")

    if v is None:
        return DifferencePart("layer", "removed", (u,), (), cost, "a layer less costs 1")

    before = first.layers[u]
    after = second.layers[v]
    if cost == 1.0 and before.op != after.op:
        reason = "another operation costs 1"
    elif cost:
        reason = f"{words(before)} → {words(after)}"
    else:
        reason = "" if before == after else "the distance does not compare what differs"

    return DifferencePart(
        "layer", "matched" if before == after else "changed", (u,), (v,), cost, reason
    )


def _skip_parts(x: Sequenced, y: Sequenced, orders: Orders, lam: float) -> list[DifferencePart]:
    """Return the matched, moved, inserted and removed skips.

    The common ones are matched first, as in the solver.
    """
    first: Counter[Skip] = Counter(map(tuple, x.skips.tolist()))
    second: Counter[Skip] = Counter(map(tuple, y.skips.tolist()))
    common = first & second
    parts = []
    for skip in sorted(common.elements()):
        parts.append(_skip_part(skip, skip, orders, 0.0))

    removed = dict(enumerate(sorted((first - common).elements())))
    inserted = dict(enumerate(sorted((second - common).elements())))
    if removed and inserted:
        from scipy.optimize import linear_sum_assignment

        costs = np.empty((len(removed), len(inserted)))
        for i, j in np.ndindex(costs.shape):
            costs[i, j] = _skip_cost(removed[i], inserted[j])

        for i, j in np.stack(linear_sum_assignment(costs), axis=1).tolist():
            cost = lam * float(costs[i, j])
            parts.append(_skip_part(removed.pop(i), inserted.pop(j), orders, cost))

    for skip in removed.values():
        parts.append(_skip_part(skip, None, orders, lam))

    for skip in inserted.values():
        parts.append(_skip_part(None, skip, orders, lam))

    return parts


def _skip_cost(x: Skip, y: Skip) -> float:
    """Return d_s of two skips that are not equal, by eq. (8)."""
    if x[0] != y[0]:
        return 1.0

    apart = abs(x[1] - y[1]) + abs(x[2] - y[2])
    return apart / (max(x[1], y[1]) + max(x[2], y[2]))


def _skip_part(
    before: Skip | None, after: Skip | None, orders: Orders, cost: float
) -> DifferencePart:
    kind = (before or after or (SKIP, 0, 0))[0]
    subject: Literal["skip", "break"] = "skip" if kind == SKIP else "break"
    first = _ends(before, orders[0])
    second = _ends(after, orders[1])
    if before is None or after is None:
        change: Change = "removed" if after is None else "inserted"
        more = "less" if after is None else "more"
        reason = f"a {PARTS[subject].text} {more} has the fixed cost of a skip" if cost else ""
        if cost and subject == "break":
            reason += ": neighbours in the sequence without an edge"

        return DifferencePart(subject, change, first, second, cost, reason)

    if before == after:
        return DifferencePart(subject, "matched", first, second, cost)

    reason = "a skip becomes a gap" if before[0] < after[0] else "a gap becomes a skip"
    if before[0] == after[0]:
        reason = f"from place {before[1]} over {before[2]} → from place {after[1]} over {after[2]}"

    return DifferencePart(subject, "changed", first, second, cost, reason)


def _ends(skip: Skip | None, order: list[int]) -> tuple[int, ...]:
    return () if skip is None else (order[skip[1]], order[skip[1] + skip[2] + 1])
