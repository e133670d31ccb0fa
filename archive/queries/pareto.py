"""Pareto set of a study with several objectives, and its hypervolume after each result.

`archive.objectives.pareto` has the notation. The reference point r of a report is the worst value of each
objective among the results, so that no result is left out and no choice is needed; H then compares
stages of one study. Two studies are compared with a reference point that is given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from archive.errors import UsageError
from archive.objectives.pareto import Array, front_of, volumes
from archive.store.ranking import averaged, key_of, scored, signs_of, values_of
from archive.store.records import Objective, State
from archive.store.snapshots import violation_of

if TYPE_CHECKING:
    from archive.store.records import Study
    from archive.store.snapshots import ProposalView, Snapshot


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
    """Return the Pareto set of a study's whole trainings; None without a complete result.

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
    signs = signs_of(objectives)
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
    """Return the scores of a result, (M,) float64; None where `scored` leaves it out."""
    values = None if violation_of(study, view) else values_of(view, study.objectives)
    return None if values is None else signs * np.array(values)
