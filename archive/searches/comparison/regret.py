"""Searches of a comparison, read from the archive: regret by queries, and shares of a team's agents.

| symbol | meaning                                                                                 |
|--------|-----------------------------------------------------------------------------------------|
| q      | queries: evaluations of a study so far, its random starts included                      |
| r(q)   | regret: difference of the incumbent's value from the best one, in the problem's unit    |
| t(q)   | test accuracy of the incumbent, where the table has one                                 |

The incumbent is the network with the best of the first q values. With noise it is the luckiest one:
its regret and test accuracy are computed from its noise-free value.

An evaluation is an improvement when it is better than all earlier ones of its study. The proposer
of the previous best is another agent, the same agent, or the agent of the random starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from archive.queries.proposals import TRACES_OF_STUDIES
from archive.searches.comparison.plan import StudyJob

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
    """Return the first query without regret, from 1; None where there is none."""
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
