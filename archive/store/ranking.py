"""Ranking of a study's results: means over replicates, Pareto set, best results.

Replicates are evaluations of one network with equal hyperparameters. They differ if trainings have
noise: the best of several is then the luckiest one, and a Pareto set of single evaluations consists
of lucky ones. So replicates count as one result, with their mean values.

| symbol | meaning                                                                     | shape  |
|--------|-----------------------------------------------------------------------------|--------|
| E_n    | finished evaluations of network n, with equal hyperparameters               |        |
| v_i    | value of evaluation i of an objective, or of another metric                 | scalar |
| v_n    | mean of the finite v_i, i in E_n; v_i itself where all are equal            | scalar |
| Y      | scores of the results v_n: larger is better                                 | (n, M) |
| P      | Pareto set: rows of Y that no other row dominates                           | (k, M) |
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from archive.objectives import sign
from archive.objectives.pareto import Array, front_of
from archive.store.records import Objective, State
from archive.store.snapshots import ranked, violation_of

if TYPE_CHECKING:
    from archive.store.records import Study
    from archive.store.snapshots import ProposalView, Snapshot

Replicates = tuple[str, str]
"""Key of a group of replicates: the network's functional key, and the hyperparameters as text."""


def replicate_key(functional_key: str, hyperparameters: Mapping[str, Any]) -> Replicates:
    """Return the key of the group of an evaluation of a network with these hyperparameters."""
    return functional_key, repr(sorted(hyperparameters.items())) if hyperparameters else ""


def key_of(view: ProposalView) -> Replicates:
    """Return the key of the group that a proposal belongs to."""
    return replicate_key(view.functional_key, view.hyperparameters)


def averaged(views: Iterable[ProposalView]) -> Iterator[tuple[Replicates, ProposalView]]:
    """Yield, after each evaluation, its group and the mean of the group so far.

    The mean is the view of the first evaluation of the group with mean value and mean metrics.
    """
    groups: dict[Replicates, list[ProposalView]] = {}
    for view in views:
        group = groups.setdefault(key := key_of(view), [])
        group.append(view)
        yield key, _mean_of(group)


def _mean_of(group: Sequence[ProposalView]) -> ProposalView:
    if len(group) == 1:
        return group[0]

    names = dict.fromkeys(chain.from_iterable(view.metrics for view in group))
    metrics = {}
    for name in names:
        metrics[name] = _mean([view.metrics[name] for view in group if name in view.metrics])

    values = [view.value for view in group if view.value is not None]
    return replace(group[0], value=_mean(values) if values else None, metrics=metrics)


def _mean(values: Sequence[float]) -> float:
    finite = []
    for value in values:
        if math.isfinite(value):
            finite.append(value)

    if len({*finite}) < 2:
        return finite[0] if finite else values[0]

    return math.fsum(finite) / len(finite)


def pareto_front(snapshot: Snapshot) -> list[ProposalView]:
    """Return P of a study's whole trainings, the best in the first objective first.

    Replicates are represented by their first evaluation, with the mean values.
    """
    views, scores = scored_results(snapshot)
    return [views[index] for index in front_of(scores)]


def scored_results(snapshot: Snapshot) -> tuple[list[ProposalView], Array]:
    """Return the means of a study's whole trainings by `scored`."""
    complete = (view for view in snapshot.proposals if view.state is State.COMPLETE)
    return scored(snapshot.study, dict(averaged(complete)).values())


def scored(study: Study, means: Iterable[ProposalView]) -> tuple[list[ProposalView], Array]:
    """Return the results that meet the constraints and have all objectives, and their scores Y."""
    views = []
    rows = []
    for view in means:
        values = values_of(view, study.objectives)
        if values is not None and not violation_of(study, view):
            views.append(view)
            rows.append(values)

    signs = signs_of(study.objectives)
    return views, signs * np.array(rows).reshape(len(rows), len(signs))


def signs_of(objectives: Sequence[Objective]) -> Array:
    """Return the factors that make larger values of the objectives better: (M,) float64."""
    return np.array([sign(objective.direction) for objective in objectives])


def values_of(view: ProposalView, objectives: Sequence[Objective]) -> tuple[float, ...] | None:
    """Return the values of all objectives of a proposal; None if one is unknown or not finite."""
    values = [view.value, *(view.metrics.get(objective.name) for objective in objectives[1:])]
    finite = []
    for value in values:
        if value is not None and math.isfinite(value):
            finite.append(float(value))

    return tuple(finite) if len(finite) == len(values) else None


def best_results(snapshot: Snapshot, saved: Collection[str], count: int) -> set[str]:
    """Return the ids of the best results of a study, the Pareto set included.

    Args:
        snapshot: The study with its proposals.
        saved: Ids of the results with weights; others take no place of the `count` best.
        count: Number of results; 0 for none, not even the Pareto set.
    """
    if not count:
        return set()

    best = [view.id for view in ranked(snapshot.study, snapshot.proposals) if view.id in saved][
        :count
    ]
    if not snapshot.study.further:
        return set(best)

    return {*best, *(view.id for view in pareto_front(snapshot))}
