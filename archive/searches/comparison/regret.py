"""Searches of a comparison, read from the archive, and their regret by queries.

| symbol | meaning                                                                                                |
|--------|--------------------------------------------------------------------------------------------------------|
| q      | queries: evaluations of a study so far, its random starts included                                     |
| r(q)   | regret: difference of the incumbent's value from the best of the table, in the problem's unit          |
| t(q)   | test accuracy of the incumbent, where the table has one                                                |

The incumbent is the network with the best of the first q values. With noise it is the luckiest one:
regret and test accuracy are those of its noise-free value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from archive.searches.comparison.plan import StudyJob
from archive.searches.comparison.shares import maker

if TYPE_CHECKING:
    from archive.api import Archive

Floats = NDArray[np.float64]

READ = """
UNWIND $names AS name
MATCH (s:Study {name: name})-[:PROPOSED]->(p:Proposal)
OPTIONAL MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
RETURN name, p.number AS number, p.functional_key AS key, p.agent AS agent, p.request AS request,
       p.seconds AS seconds, e.value AS value
ORDER BY name, number
"""
AT_ONCE = 20


class Trace(NamedTuple):
    """Values of one study in the order of evaluation.

    Attributes:
        values: (q,) values of its evaluations, by number; at most the job's budget.
        seconds: Processor time of each call of its agent, the last of them last.
        repeats: Number of proposals of networks that were proposed before.
        agents: Ids of the agents that proposed after the random starts.
        keys: (q,) functional keys of the evaluated networks.
        makers: (q,) proposer of each value; see `archive.searches.comparison.shares`.
    """

    values: tuple[float, ...] = ()
    seconds: tuple[float, ...] = ()
    repeats: int = 0
    agents: frozenset[str] = frozenset()
    makers: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()


def traces(archive: Archive, jobs: Sequence[StudyJob]) -> list[Trace]:
    """Return the traces of the studies; those of studies that do not exist are empty."""
    rows: dict[str, list[tuple[Any, ...]]] = {job.study.name: [] for job in jobs}
    names = list(rows)
    for at in range(0, len(names), AT_ONCE):
        for name, *row in archive.query(READ, {"names": names[at : at + AT_ONCE]}).rows:
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
        shown = [problem.regret(problem.truth(keys[at])[0]) for at in incumbents(job, values)]
    else:
        shown = list(np.minimum.accumulate([problem.regret(value) for value in values]))

    return _continued(shown, job.budget)


def tests(job: StudyJob, trace: Trace) -> Floats | None:
    """Return t(1) … t(budget), (budget,) float64;

    None where the table has no test accuracy of a network.
    """
    truth = job.problem.truth
    if truth is None:
        return None

    shown = [truth(trace.keys[at])[1] for at in incumbents(job, trace.values)]
    return (
        _continued([job.problem.points * one for one in shown], job.budget)
        if np.isfinite(shown).all()
        else None
    )


def incumbents(job: StudyJob, values: Sequence[float]) -> list[int]:
    """Return the position of the best of the first 1, 2, … values, the first of equal ones."""
    best: list[int] = []
    for at, value in enumerate(values):
        better = not best or job.problem.regret(value) < job.problem.regret(values[best[-1]])
        best.append(at if better else best[-1])

    return best


def _continued(shown: Sequence[float], budget: int) -> Floats:
    return np.concatenate([shown, np.full(budget - len(shown), shown[-1])])


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
