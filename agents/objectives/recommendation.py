"""Recommended Pareto set of a study with noisy results, by posterior means.

| symbol      | meaning                                                                        | shape  |
|-------------|--------------------------------------------------------------------------------|--------|
| k           | networks of the study that meet its constraints by their mean results          | scalar |
| mu_nj, s_nj | posterior mean and standard deviation of the noise-free score of network n for | (k, M) |
|             | objective j                                                                    |        |
| P           | networks with a mu that no other mu dominates                                  | (p, M) |
| 95 %        | mu - 1.96 s to mu + 1.96 s, of each objective alone                            |        |

Each objective has a separate model (`archive.agents.recommendation`). Known costs and objectives
without noise keep their values, without uncertainty. Of more than `front.MOST` networks, the first
nondomination ranks by means are estimated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from archive.agents.objectives.front import first_ranks
from archive.agents.objectives.goals import Goals
from archive.agents.observations import evaluation_key, is_noisy, is_score
from archive.agents.recommendation import EstimatesFile, recommend
from archive.agents.transfer.source_tasks import observation, split
from archive.architecture.networks import take
from archive.constraints import NO_COSTS, KnownCosts
from archive.errors import ArchiveError
from archive.objectives.pareto import front_of
from archive.spaces import stored_spaces
from archive.store.ranking import Replicates, key_of, scored_results

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
    """Return the recommended Pareto set of a study; evaluations of its sources are further data.

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
    columns = map(partial(_with_score, observations, goals), range(len(study.objectives)))
    if not any(map(is_noisy, columns)):
        return None

    home = archive.connection.settings.home
    try:
        space = stored_spaces.of_record(study.space, study.space_config, home)
    except ArchiveError as error:
        unknown(error)
        return None

    views = {key_of(view): view for view in _candidates(snapshot)}
    if not views:
        return None

    files = [EstimatesFile(home, study.name, objective.name) for objective in study.objectives]
    return _recommend(space, observations, Goals(study.objectives, costs_of(study)), views, files)


def _observations(evaluations: Sequence[Evaluation], study: Study) -> list[Observation]:
    goals = Goals(study.objectives)
    observations = []
    for evaluation in split(evaluations, study)[0]:
        if not evaluation.partial and is_score(evaluation.score):
            of_first = observation(evaluation, evaluation.score)
            observations.append(replace(of_first, further=goals.further_scores(evaluation)))

    return observations


def _with_score(
    observations: Sequence[Observation], goals: Goals, column: int
) -> list[Observation]:
    """Return the observations with a finite score for an objective, which becomes their score."""
    kept = []
    scores = goals.scores(observations)[:, column].tolist()
    for observed, score in zip(observations, scores, strict=True):
        if is_score(score):
            kept.append(replace(observed, score=score))

    return kept


def _candidates(snapshot: Snapshot) -> list[ProposalView]:
    """Return the mean results that meet the constraints; of many, the first ranks."""
    views, scores = scored_results(snapshot)
    return take(views, first_ranks(scores))


def _recommend(
    space: Space,
    observations: Sequence[Observation],
    goals: Goals,
    views: Mapping[Replicates, ProposalView],
    files: Sequence[EstimatesFile],
) -> RecommendedSet | None:
    architectures = {}
    for observed in observations:
        architectures[evaluation_key(observed)] = observed.architecture

    networks = {key: architectures[key] for key in views if key in architectures}
    columns = []
    noises = []
    for position, file in enumerate(files):
        column, noise = _column(space, observations, goals, position, networks, file)
        columns.append(column)
        noises.append(noise)

    proposals: list[ProposalView] = []
    estimates: list[tuple[Estimate, ...]] = []
    rows: list[list[float]] = []
    for key in networks:
        of_network = [column[key] for column in columns if key in column]
        if len(of_network) == len(columns):
            proposals.append(views[key])
            estimates.append(tuple(of_network))
            rows.append([estimate.score for estimate in of_network])

    scores = np.array(rows, np.float64).reshape(len(rows), len(columns))
    best = front_of(scores)
    if not len(best):
        return None

    return RecommendedSet(tuple(take(proposals, best)), tuple(take(estimates, best)), tuple(noises))


def _column(
    space: Space,
    observations: Sequence[Observation],
    goals: Goals,
    position: int,
    networks: Mapping[Replicates, Architecture],
    file: EstimatesFile,
) -> tuple[dict[Replicates, Estimate], float | None]:
    """Return the estimates of networks for one objective, and the deviation of its noise."""
    column: dict[Replicates, Estimate] = {}
    if position not in goals.learnt:
        values = goals.known_scores(list(networks.values()))[:, position].tolist()
        for key, value in zip(networks, values, strict=True):
            if math.isfinite(value):
                column[key] = Estimate(value, value, value, 1)

        return column, 0.0

    observed = _with_score(observations, goals, position)
    among = {functional for functional, _ in networks}
    recommendations = recommend(space, observed, among, file)
    for ranked in recommendations.ranked:
        estimate = Estimate(ranked.score, ranked.low, ranked.high, len(ranked.evaluations))
        column[evaluation_key(ranked.evaluations[0])] = estimate

    return column, recommendations.noise
