"""Noise-free regret of recommended networks after some queries of a search with noise.

The recommendation is the one of `archive study best` (`archive.agents.recommendation`): the
greatest posterior mean of the evaluations so far. The incumbent of
`archive.searches.comparison.regret` is the luckiest network instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from archive.agents.base import Observation
from archive.agents.recommendation import recommend
from archive.architecture.graph import Architecture
from archive.searches.comparison.plan import Problem, StudyJob
from archive.spaces.base import Space
from archive.store.records import sign

QUERIES = (50, 100, 150, 200)
"""Numbers of queries after which regret is reported."""

FIRST = 5
EVERY = 5
"""Queries of a curve after which the recommendation is computed: each of the first ones, then every
fifth."""

Evaluated = tuple[StudyJob, Sequence[float], Sequence[str]]
"""A study, the values of its evaluations, and the functional keys of their networks."""


def queries_of(budget: int) -> tuple[int, ...]:
    """Return the numbers of queries of a report: `QUERIES` below the budget, and the budget."""
    return (*(queries for queries in QUERIES if queries < budget), budget)


class Recommended(NamedTuple):
    """The recommendation of one study after some queries.

    Attributes:
        regret: Noise-free regret of the network.
        within: Whether its noise-free value is in its interval of 95 %; None where no model could
            be fitted.
    """

    regret: float
    within: bool | None


def recommend_by_seed(
    studies: Sequence[Evaluated], queries: Sequence[int]
) -> dict[int, dict[int, Recommended]]:
    """Return the recommendations of the studies by number of queries, then by seed; empty without
    noise.

    Args:
        studies: Studies of one problem.
        queries: Numbers of queries; a study with fewer evaluations is left out.
    """
    problem = studies[0][0].problem
    if not problem.noise or problem.truth is None:
        return {}

    space = problem.search_space()
    networks = {member.functional_key: member for member in space.members() or ()}
    recommendations: dict[int, dict[int, Recommended]] = {}
    for number in queries:
        by_seed: dict[int, Recommended] = {}
        for job, values, keys in studies:
            if len(values) >= number:
                by_seed[job.seed] = _recommend(
                    problem, space, networks, values[:number], keys[:number]
                )

        recommendations[number] = by_seed

    return recommendations


def recommend_curve(
    job: StudyJob, values: Sequence[float], keys: Sequence[str]
) -> NDArray[np.float64]:
    """Return the regret of the latest recommendation after 1 … budget queries, (budget,) float64.

    The recommendation is computed after some of the queries: see `EVERY`. A study that ended early
    keeps its last one.

    Args:
        job: A study of a problem with noise.
        values: Values of its evaluations, at least one.
        keys: Functional keys of their networks.
    """
    space = job.problem.search_space()
    networks = {member.functional_key: member for member in space.members() or ()}
    curve = np.empty(job.budget)
    for number in range(1, min(job.budget, len(values)) + 1):
        if number <= FIRST or number % EVERY == 0 or number == len(values):
            recommendation = _recommend(
                job.problem, space, networks, values[:number], keys[:number]
            )
            curve[number - 1 :] = recommendation.regret

    return curve


def _recommend(
    problem: Problem,
    space: Space,
    networks: Mapping[str, Architecture],
    values: Sequence[float],
    keys: Sequence[str],
) -> Recommended:
    assert problem.truth is not None
    better = sign(problem.direction)
    # Each query of a table with noise has another seed.
    observations = []
    for number, (key, value) in enumerate(zip(keys, values, strict=True)):
        observations.append(Observation(networks[key], better * value, str(number), seed=number))

    best = recommend(space, observations).ranked[0]
    value = problem.truth(best.architecture.functional_key)[0]
    within = None
    if best.low is not None and best.high is not None:
        within = best.low <= better * value <= best.high

    return Recommended(problem.regret(value), within)
