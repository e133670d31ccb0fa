"""Pareto set and hypervolume of the results of a study with several objectives.

| symbol | meaning                                                                       | shape  |
|--------|-------------------------------------------------------------------------------|--------|
| Y, P   | scores of the results, and their Pareto set (`archive.store.ranking`)         | (n, M) |
| r      | reference point                                                               | (M,)   |
| H      | hypervolume: volume of the union over P of the boxes between r and a row of P | scalar |

H = vol(union of [r, p], p in P), in the product of the objectives' units (Zitzler and Thiele,
1998). Reports have the worst value of each objective among the results as r, so that no result is
left out and no choice is needed; H then compares stages of one study. Two studies are compared with
a reference point that is given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from archive.errors import UsageError
from archive.store.ranking import averaged, front_of, key_of, nondominated, scored, values_of
from archive.store.records import Objective, State, sign
from archive.store.snapshots import violation_of

if TYPE_CHECKING:
    from archive.store.records import Study
    from archive.store.snapshots import ProposalView, Snapshot

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ParetoSet:
    """Pareto set of a study, with the hypervolume that it has reached.

    Attributes:
        objectives: The objectives.
        proposals: Proposals of the Pareto set, the best in the first objective first; of replicates
            the first one.
        values: Their values of each objective, in the objectives' units; of replicates the means.
        reference: The reference point, in the objectives' units.
        hypervolume: Hypervolume of all results.
        history: Number of a proposal and hypervolume of the results up to it, in the order of the
            proposals. It decreases where a replicate lowers the mean of a network in the Pareto
            set.
        left_out: Number of results that meet the constraints, without a finite value of every
            objective.
        evaluations: Number of evaluations that the values of each proposal are the means of.
    """

    objectives: tuple[Objective, ...]
    proposals: tuple[ProposalView, ...]
    values: tuple[tuple[float, ...], ...]
    reference: tuple[float, ...]
    hypervolume: float
    history: tuple[tuple[int, float], ...]
    left_out: int
    evaluations: tuple[int, ...]


def pareto_set(snapshot: Snapshot, reference: Sequence[float] | None = None) -> ParetoSet | None:
    """Return the Pareto set of a study's whole trainings; None before the first result with all
    objectives.

    Results that do not meet the study's constraints are left out, of the hypervolume as well. Of
    replicates the mean quantities must meet them.

    Args:
        snapshot: The study with its proposals.
        reference: Reference point in the objectives' units; None for the worst values among the
            results.

    Raises:
        UsageError: The reference point is not one finite number for each objective.
    """
    study = snapshot.study
    objectives = snapshot.study.objectives
    signs = np.array([sign(objective.direction) for objective in objectives])
    point = None if reference is None else _point(reference, objectives)
    complete = [view for view in snapshot.proposals if view.state is State.COMPLETE]
    means = list(averaged(complete))
    latest = dict(means)
    counts = Counter(key for key, _ in means)
    met = sum(not violation_of(study, view) for view in latest.values())
    views, scores = scored(study, latest.values())
    if not views:
        return None

    worst = scores.min(axis=0) if point is None else signs * point
    stages = [(key, _scores(study, view, signs)) for key, view in means]
    reached = []
    for view, volume in zip(complete, volumes(stages, worst), strict=True):
        if volume is not None:
            reached.append((view.number, volume))

    front = front_of(scores)
    return ParetoSet(
        objectives,
        tuple(views[index] for index in front),
        tuple(tuple((signs * scores[index]).tolist()) for index in front),
        tuple((signs * worst).tolist()),
        reached[-1][1],
        tuple(reached),
        met - len(views),
        tuple(counts[key_of(views[index])] for index in front),
    )


def _point(reference: Sequence[float], objectives: Sequence[Objective]) -> Array:
    """Return a reference point as an array: (M,) float64."""
    try:
        point: Array = np.array(reference, np.float64)
    except (TypeError, ValueError):
        point = np.empty(0)

    if point.shape != (len(objectives),) or not np.isfinite(point).all():
        names = ", ".join(objective.name for objective in objectives)
        raise UsageError(
            f"the reference point needs a finite number for each of {names}, got {reference!r:.80}"
        )

    return point


def _scores(study: Study, view: ProposalView, signs: Array) -> Array | None:
    """Return the scores of a result, (M,) float64;

    None where it violates a constraint, or lacks an objective.
    """
    values = None if violation_of(study, view) else values_of(view, study.objectives)
    return None if values is None else signs * np.array(values)


def volumes(
    stages: Sequence[tuple[Hashable, Array | None]], reference: Array
) -> list[float | None]:
    """Return the hypervolume after each evaluation; None where it neither adds nor changes a row of
    Y.

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

    reached = []
    for volume in volumes(stages, reference):
        reached.append(0.0 if volume is None else volume)

    return np.maximum.accumulate(np.array(reached, np.float64))


def find_front(costs: NDArray[np.float64], scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the positions on the front, from the cheapest to the best; of equal points, the first
    one only.

    A point is on the front if no other is at least as cheap and at least as good, and better in one
    of both. O(n log n).

    Args:
        costs: (n,), smaller is better; no NaN.
        scores: (n,), larger is better; no NaN.

    Returns:
        (k,) int64; costs and scores increase strictly along it.
    """
    order = np.lexsort((-scores, costs))
    before = np.concatenate([[-np.inf], np.maximum.accumulate(scores[order])[:-1]])[: len(order)]
    return order[scores[order] > before]
