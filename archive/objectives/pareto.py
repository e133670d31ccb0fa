"""Pareto dominance: nondominated points, their ranks and their hypervolume.

| symbol | meaning                                                                       | shape  |
|--------|-------------------------------------------------------------------------------|--------|
| Y      | scores of n points for M objectives: larger is better                         | (n, M) |
| P      | Pareto set: rows of Y that no other row dominates                             | (k, M) |
| r      | reference point                                                               | (M,)   |
| H      | hypervolume: volume of the union over P of the boxes between r and a row of P | scalar |

H = vol(union of [r, p], p in P), in the product of the objectives' units (Zitzler and Thiele,
1998).

This module knows arrays alone. Its users:

| module                                     | use                                                |
|--------------------------------------------|----------------------------------------------------|
| `archive.store.ranking`                    | scores of a study's results; P of their means      |
| `archive.queries.pareto`                   | P of a study with H after each result              |
| `archive.agents.objectives.front`          | front of estimated scores, and r, for an agent     |
| `archive.agents.acquisition.ehvi`          | expected improvement of H                          |
| `archive.agents.objectives.recommendation` | P of posterior means                               |
| `archive.agents.baselines.nsga2`           | order by rank and crowding distance                |
| `archive.plots.data.tradeoff`              | front of value and cost                            |

`moocore` is imported by the functions, because commands that list studies load this module.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def front_of(scores: Array) -> NDArray[np.int64]:
    """Return the positions of P among the rows of Y, the best in the first objective first.

    Args:
        scores: (n, M) float64, larger is better; no NaN.

    Returns:
        (k,) int64.
    """
    front = np.flatnonzero(nondominated(scores))
    return front[np.argsort(-scores[front, 0], kind="stable")]


def nondominated(scores: Array) -> NDArray[np.bool_]:
    """Return (n,) whether each row is in the Pareto set; of equal rows, the first one only.

    Args:
        scores: (n, M) float64, larger is better; no NaN.
    """
    import moocore

    if not len(scores):
        return np.zeros(0, np.bool_)

    mask: NDArray[np.bool_] = moocore.is_nondominated(scores, maximise=True, keep_weakly=False)
    return mask


def ranks(scores: Array) -> NDArray[np.int64]:
    """Return the number of the nondominated front of each row, from 0: (n,) int64.

    Rank 1 is the Pareto set of the rows without rank 0, and so on. Equal rows have equal ranks.

    Args:
        scores: (n, M) float64, larger is better; no NaN.
    """
    import moocore

    numbers: NDArray[np.int64] = moocore.pareto_rank(scores, maximise=True)
    return numbers


def find_front(costs: Array, scores: Array) -> NDArray[np.int64]:
    """Return the positions of P for a cost and a score, from the cheapest to the best.

    Args:
        costs: (n,) float64, smaller is better; no NaN.
        scores: (n,) float64, larger is better; no NaN.

    Returns:
        (k,) int64; costs and scores increase strictly along it.
    """
    return front_of(np.column_stack([-costs, scores]))


def volumes(
    stages: Sequence[tuple[Hashable, Array | None]], reference: Array
) -> list[float | None]:
    """Return the hypervolume after each evaluation; None where it changes no row of Y.

    Args:
        stages: The group of each evaluation, and the scores of the group's mean after it, (M,)
            float64; None for a mean that is no row of Y.
        reference: (M,) float64: r.
    """
    groups = dict.fromkeys(group for group, _ in stages)
    row_of = {group: index for index, group in enumerate(groups)}
    # Groups without a row are dominated by every row.
    rows = np.full((len(row_of), len(reference)), -np.inf)
    front: list[int] = []
    reached = list[float | None]()
    volume = 0.0
    for group, row in stages:
        index = row_of[group]
        changed = row is not None or np.isfinite(rows[index]).all()
        rows[index] = -np.inf if row is None else row
        if index in front:
            # Points that it dominated may belong to the front now. Without it, the front would stay
            # as it is.
            front = []
            for other in np.flatnonzero(nondominated(rows)).tolist():
                if np.isfinite(rows[other]).all():
                    front.append(other)

            volume = hypervolume(rows[front], reference)
        elif row is not None and not (rows[front] >= row).all(axis=1).any():
            front = [*np.compress(~(rows[front] <= row).all(axis=1), front).tolist(), index]
            volume = max(volume, hypervolume(rows[front], reference))

        reached.append(volume if changed else None)

    return reached


def hypervolume(scores: Array, reference: Array) -> float:
    """Return H.

    Args:
        scores: (n, M) float64, larger is better; rows that do not exceed the reference point add
            nothing.
        reference: (M,) float64: r.
    """
    import moocore

    return float(moocore.hypervolume(scores, ref=reference, maximise=True)) if len(scores) else 0.0


def history(scores: Array, reference: Array) -> Array:
    """Return the hypervolume of the first 1, 2, … rows: (n,) float64, nondecreasing.

    Args:
        scores: (n, M) float64, larger is better; a row with a NaN or an infinity adds nothing.
        reference: (M,) float64: r.
    """
    stages: list[tuple[Hashable, Array | None]] = []
    for position, row in enumerate(scores):
        stages.append((position, row if np.isfinite(row).all() else None))

    reached = [0.0 if volume is None else volume for volume in volumes(stages, reference)]
    return np.maximum.accumulate(np.array(reached, np.float64))
