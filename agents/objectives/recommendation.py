"""Recommended Pareto set of a study whose results have noise: by posterior means, as with one
objective.

| symbol      | meaning                                                                              | shape  |
|-------------|--------------------------------------------------------------------------------------|--------|
| k           | networks of the study whose mean results meet its constraints                        | scalar |
| mu_nj, s_nj | posterior mean and standard deviation of the noise-free score of network n for       | (k, M) |
|             | objective j                                                                          |        |
| P           | networks whose mu no other one dominates                                             | (p, M) |
| 95 %        | mu - 1.96 s to mu + 1.96 s, of each objective alone                                  |        |

Each objective has a separate model, that of `archive.agents.recommendation`. Known costs and
objectives without noise keep their values, without uncertainty. If there are more than `front.MOST`
networks, those of the first nondomination ranks by their means are estimated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from archive.agents.kept_estimates import EstimatesFile
from archive.agents.objectives.front import first_ranks
from archive.agents.objectives.goals import Goals
from archive.agents.observations import evaluation_key, is_noisy, is_score
from archive.agents.recommendation import recommend
from archive.agents.transfer.source_tasks import observation, split
from archive.constraints import NO_COSTS, KnownCosts
from archive.errors import ArchiveError
from archive.spaces import stored_spaces
from archive.store.ranking.pareto_front import front_of, scored
from archive.store.ranking.replicates import Replicates, averaged, key_of
from archive.store.records import State

if TYPE_CHECKING:
    from archive.agents.base import Observation
    from archive.api import Archive
    from archive.architecture.graph import Architecture
    from archive.spaces.base import Space
    from archive.store.records import Evaluation, Study
    from archive.store.snapshots import ProposalView, Snapshot


@dataclass(frozen=True)
class Estimate:
    """Estimate of a network's noise-free score for one objective, larger is better.

    Attributes:
        score: The posterior mean; without noise the score itself.
        low: Lower end of its 95 % interval; None where no model could be fitted.
        high: Upper end.
        evaluations: Number of evaluations of the network that have the objective.
    """

    score: float
    low: float | None
    high: float | None
    evaluations: int


@dataclass(frozen=True)
class RecommendedSet:
    """The recommended Pareto set, the best in the first objective first.

    Attributes:
        proposals: The first evaluation of each network in the study, with the means over its
            replicates.
        estimates: The estimates of each network, one for each objective.
        noises: Estimated standard deviation of an evaluation's noise in each objective, in score
            units: 0 without noise, None where no model could be fitted.
    """

    proposals: tuple[ProposalView, ...]
    estimates: tuple[tuple[Estimate, ...], ...]
    noises: tuple[float | None, ...]


def of_snapshot(
    archive: Archive,
    snapshot: Snapshot,
    costs_of: Callable[[Study], KnownCosts] = lambda _: NO_COSTS,
    unknown: Callable[[ArchiveError], object] = lambda error: None,
) -> RecommendedSet | None:
    """Return the recommended Pareto set of a study, with the evaluations of its sources as further
    data.

    Args:
        archive: The archive of the study.
        snapshot: The study with its proposals.
        costs_of: Returns the known costs of a study's networks; only called for a study with noise.
        unknown: Called with the reason why the space of a study with noise is not known here.

    Returns:
        The set. None for a study with one objective, without noise in any objective, or without a
        result that can be estimated.
    """
    study = snapshot.study
    goals = Goals(snapshot.study.objectives)
    evaluations = archive.studies.history(study.name) if study.further else []
    observations = _observations(evaluations, study)
    if not any(is_noisy(_scored(observations, goals, at)) for at in range(len(goals.objectives))):
        return None

    try:
        space = stored_spaces.of_record(
            study.space, study.space_config, archive.connection.settings.home
        )
    except ArchiveError as error:
        unknown(error)
        return None

    views = {key_of(view): view for view in _candidates(snapshot)}
    if not views:
        return None

    files = [
        EstimatesFile(archive.connection.settings.home, study.name, each.name)
        for each in study.objectives
    ]
    return _recommended(space, observations, Goals(study.objectives, costs_of(study)), views, files)


def _observations(evaluations: Sequence[Evaluation], study: Study) -> list[Observation]:
    goals = Goals(study.objectives)
    own = [
        each for each in split(evaluations, study)[0] if not each.partial and is_score(each.score)
    ]
    return [
        replace(observation(each, each.score), further=goals.further_scores(each)) for each in own
    ]


def _scored(observations: Sequence[Observation], goals: Goals, at: int) -> list[Observation]:
    """Return the observations that have a finite score for an objective, with this score as
    theirs.
    """
    pairs = zip(observations, goals.scores(observations)[:, at].tolist(), strict=True)
    return [replace(one, score=score) for one, score in pairs if is_score(score)]


def _candidates(snapshot: Snapshot) -> list[ProposalView]:
    """Return the mean results that meet the constraints, by proposal; of many, those of the first
    ranks.
    """
    complete = (view for view in snapshot.proposals if view.state is State.COMPLETE)
    views, scores = scored(snapshot.study, dict(averaged(complete)).values())
    return [views[at] for at in first_ranks(scores)]


def _recommended(
    space: Space,
    observations: Sequence[Observation],
    goals: Goals,
    views: Mapping[Replicates, ProposalView],
    files: Sequence[EstimatesFile],
) -> RecommendedSet | None:
    known = {evaluation_key(one): one.architecture for one in observations}
    networks = {key: known[key] for key in views if key in known}
    columns, noises = zip(
        *(_column(space, observations, goals, at, networks, file) for at, file in enumerate(files)),
        strict=True,
    )
    keys = [key for key in networks if all(key in column for column in columns)]
    estimates = [tuple(column[key] for column in columns) for key in keys]
    scores = np.array([[one.score for one in row] for row in estimates]).reshape(
        len(keys), len(columns)
    )
    best = front_of(scores)
    if not len(best):
        return None

    return RecommendedSet(
        tuple(views[keys[at]] for at in best), tuple(estimates[at] for at in best), noises
    )


def _column(
    space: Space,
    observations: Sequence[Observation],
    goals: Goals,
    at: int,
    networks: Mapping[Replicates, Architecture],
    file: EstimatesFile,
) -> tuple[dict[Replicates, Estimate], float | None]:
    """Return the estimates of networks for one objective, and the standard deviation of its
    noise.
    """
    if at not in goals.learnt:
        values = goals.known_scores(list(networks.values()))[:, at].tolist()
        known = zip(networks, values, strict=True)
        return {
            key: Estimate(value, value, value, 1) for key, value in known if math.isfinite(value)
        }, 0.0

    observed = _scored(observations, goals, at)
    among = {functional for functional, _ in networks}
    recommendations = recommend(space, observed, among, file)
    estimates = (
        Estimate(one.score, one.low, one.high, len(one.evaluations))
        for one in recommendations.ranked
    )
    keys = (evaluation_key(one.evaluations[0]) for one in recommendations.ranked)
    return dict(zip(keys, estimates, strict=True)), recommendations.noise
