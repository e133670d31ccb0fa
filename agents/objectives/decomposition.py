"""Decomposition of the region that a Pareto front leaves free into disjoint boxes.

| symbol | meaning                                                                               | shape  |
|--------|---------------------------------------------------------------------------------------|--------|
| M      | objectives, all maximised                                                             | scalar |
| Y      | scores of the points                                                                  | (n, M) |
| r      | reference point                                                                       | (M,)   |
| l, u   | lower and upper corners of the boxes; u may be infinite                               | (B, M) |

The boxes [l, u) partition the points above r that no row of Y dominates. The last objective cuts
the region into slabs between the levels of the points; within a slab, only the points at or above
it dominate, and the rest is the problem with one objective less (hypervolume by slicing objectives:
While et al., 2006). Two objectives have k + 1 boxes for k points on the front, and each further one
multiplies them by up to k.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from archive.agents.surrogates.base import Array
from archive.store.ranking.pareto_front import nondominated


def free_boxes(points: Array, reference: Array) -> tuple[Array, Array]:
    """Return l and u.

    Args:
        points: (n, M) float64: Y; dominated rows change nothing, rows that do not exceed the
            reference point neither.
        reference: (M,) float64: r.
    """
    above = points[(points > reference).all(axis=1)]
    boxes = _boxes(above[nondominated(above)], reference.tolist())
    corners = np.array(boxes, np.float64).reshape(len(boxes), 2, len(reference))
    return corners[:, 0], corners[:, 1]


def _boxes(points: Array, reference: list[float]) -> list[tuple[list[float], list[float]]]:
    if len(reference) == 1:
        return [([float(points.max(initial=reference[0]))], [np.inf])]

    levels = [np.inf, *np.unique(points[:, -1])[::-1].tolist(), reference[-1]]
    boxes: list[tuple[list[float], list[float]]] = []
    # Adjacent slabs with the same points on their front are one: a dominated point adds a level,
    # and no box.
    upper = levels[0]
    open_front = np.empty((0, len(reference) - 1))
    for level, lower in pairwise(levels):
        front = _maximal(points[points[:, -1] >= level, :-1])
        if level != np.inf and not np.array_equal(front, open_front):
            boxes += _slab(open_front, reference[:-1], level, upper)
            upper = level
            open_front = front

        if lower == reference[-1]:
            boxes += _slab(open_front, reference[:-1], lower, upper)
            break

    return boxes


def _slab(
    front: Array, reference: list[float], lower: float, upper: float
) -> list[tuple[list[float], list[float]]]:
    """Return the boxes above a front of the other objectives, between two levels of the last
    one.
    """
    return [([*low, lower], [*high, upper]) for low, high in _boxes(front, reference)]


def _maximal(points: Array) -> Array:
    """Return the distinct rows that no other dominates, in lexicographic order."""
    distinct = np.unique(points, axis=0)
    if distinct.shape[1] == 1:
        return distinct[-1:]

    worse: NDArray[np.bool_] = np.all(distinct[:, None, :] <= distinct[None, :, :], axis=2)
    np.fill_diagonal(worse, False)
    maximal: Array = distinct[~worse.any(axis=1)]
    return maximal
