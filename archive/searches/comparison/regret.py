"""Searches of a comparison, read from the archive: regret by queries, and shares of a team's agents.

| symbol | meaning                                                                                 |
|--------|-----------------------------------------------------------------------------------------|
| q      | queries: evaluations of a study so far, its random starts included                      |
| r(q)   | regret: difference of the incumbent's value from the best one, in the problem's unit    |
| t(q)   | test accuracy of the incumbent, where the table has one                                 |

The incumbent is the network with the best of the first q values. With noise it is the luckiest one:
its regret and test accuracy are computed from its noise-free value. The recommendation is the one
of `archive study best` (`archive.agents.recommendation`): the greatest posterior mean of the
evaluations so far.

An evaluation is an improvement when it is better than all earlier ones of its study. The proposer
of the previous best is another agent, the same agent, or the agent of the random starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from archive.agents.base import Observation
from archive.agents.recommendation import recommend
from archive.architecture.graph import Architecture
from archive.objectives import sign
from archive.queries.proposals import TRACES_OF_STUDIES
from archive.searches.comparison.plan import Problem, StudyJob
from archive.spaces.base import Space

if TYPE_CHECKING:
    from archive.api import Archive


Floats = NDArray[np.float64]

STARTS = "starts"
"""Proposer of the random networks at the start."""

AT_ONCE = 20


class Trace(NamedTuple):
    """Values of one study in the order of evaluation.

    Attributes:
        values: (q,) values of its evaluations, by number; at most the job's budget.
        seconds: Processor time of each call of its agent, the last of them last.
        repeats: Number of proposals of networks that were proposed before.
        agents: Ids of the agents that proposed after the random starts.
        keys: (q,) functional keys of the evaluated networks.
        makers: (q,) proposer of each value.
    """

    values: tuple[float, ...] = ()
    seconds: tuple[float, ...] = ()
    repeats: int = 0
    agents: frozenset[str] = frozenset()
    makers: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()


def traces(archive: Archive, jobs: Sequence[StudyJob]) -> list[Trace]:
    """Return the traces of the studies; a study that does not exist has an empty one."""
    rows: dict[str, list[tuple[Any, ...]]] = {job.study.name: [] for job in jobs}
    names = list(rows)
    for begin in range(0, len(names), AT_ONCE):
        for name, *row in archive.query(
            TRACES_OF_STUDIES, {"names": names[begin : begin + AT_ONCE]}
        ).rows:
            rows[name].append(tuple(row))

    return [_trace(job, rows[job.study.name]) for job in jobs]


def regrets(job: StudyJob, values: Sequence[float], keys: Sequence[str] = ()) -> Floats:
    """Return r(1) … r(budget), (budget,) float64; a study that ended early keeps its last one.

    Args:
        job: The study.
        values: Values of its evaluations.
        keys: Functional keys of the networks, for the noise-free values of a problem with noise.
    """
    problem = job.problem
    if problem.noise and problem.truth is not None:
        curve = [problem.regret(problem.truth(keys[row])[0]) for row in incumbents(job, values)]
    else:
        curve = list(np.minimum.accumulate([problem.regret(value) for value in values]))

    return _extend(curve, job.budget)


def tests(job: StudyJob, trace: Trace) -> Floats | None:
    """Return t(1) … t(budget), (budget,) float64; None where the table lacks a test accuracy."""
    truth = job.problem.truth
    if truth is None:
        return None

    curve = [truth(trace.keys[row])[1] for row in incumbents(job, trace.values)]
    if not np.isfinite(curve).all():
        return None

    return _extend([job.problem.points * accuracy for accuracy in curve], job.budget)


def incumbents(job: StudyJob, values: Sequence[float]) -> list[int]:
    """Return the position of the best of the first 1, 2, … values, the first of equal ones."""
    best: list[int] = []
    for row, value in enumerate(values):
        better = not best or job.problem.regret(value) < job.problem.regret(values[best[-1]])
        best.append(row if better else best[-1])

    return best


def _extend(curve: Sequence[float], budget: int) -> Floats:
    return np.concatenate([curve, np.full(budget - len(curve), curve[-1])])


def _trace(job: StudyJob, rows: Sequence[tuple[Any, ...]]) -> Trace:
    values: list[float] = []
    makers: list[str] = []
    keys: list[str] = []
    evaluated: list[str] = []
    calls: dict[str, float] = {}
    agents = set()
    for number, key, agent, request, seconds, value in rows:
        if len(values) == job.budget:
            break

        keys.append(key)
        if value is not None:
            values.append(value)
            evaluated.append(key)
            makers.append(maker(agent, number, job.starts))

        if number >= job.starts:
            agents.add(agent)
            if seconds is not None:
                calls[request] = seconds

    repeats = len(keys) - len(set(keys))
    return Trace(
        tuple(values),
        tuple(calls.values()),
        repeats,
        frozenset(agents),
        tuple(makers),
        keys=tuple(evaluated),
    )


def first_best(curve: Floats) -> int | None:
    """Return the first query without regret, from 1; None if all have regret."""
    queries = np.flatnonzero(curve <= 0)
    return int(queries[0]) + 1 if len(queries) else None


@dataclass
class Share:
    """The share of one agent of a team.

    Attributes:
        agent: Its id.
        evaluations: Networks that it proposed.
        improvements: How often it found a new best network.
        on_others: How often it improved on another agent's best.
        bests: Studies in which it found the best network.
        known: Results of other agents that it knew, in the mean.
    """

    agent: str
    evaluations: int = 0
    improvements: int = 0
    on_others: int = 0
    bests: int = 0
    known: float = 0.0


def shares(studies: Sequence[Sequence[tuple[str, float]]]) -> tuple[Share, ...]:
    """Return the share of every agent, in the order of their first evaluations.

    Args:
        studies: For each study, proposer and regret of each network, in the order of evaluation.
    """
    by_agent: dict[str, Share] = {}
    for study in studies:
        best = float("inf")
        holder = None
        of_agent: dict[str, int] = {}
        for number, (agent, regret) in enumerate(study):
            share = by_agent.setdefault(agent, Share(agent))
            # A running mean of the evaluations of others until then.
            others = number - of_agent.get(agent, 0)
            share.known += (others - share.known) / (share.evaluations + 1)
            share.evaluations += 1
            of_agent[agent] = of_agent.get(agent, 0) + 1
            if regret < best:
                share.improvements += 1
                share.on_others += holder is not None and holder != agent
                best = regret
                holder = agent

        if holder is not None:
            by_agent[holder].bests += 1

    return tuple(by_agent.values())


def maker(agent: str, number: int, starts: int) -> str:
    """Return the proposer: the agent, or the random starts."""
    return STARTS if number < starts else agent


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
    """Return the recommendations of the studies by number of queries, then by seed.

    Empty without noise.

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
