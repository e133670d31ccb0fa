"""Results of a comparison's studies: regret by queries, queries to the best, seconds, repeats.

| symbol | meaning                                                                                                |
|--------|--------------------------------------------------------------------------------------------------------|
| q      | queries: evaluations of a study so far, its random starts included                                     |
| r(q)   | regret: difference of the incumbent's value from the best of the table, in the problem's unit          |
| t(q)   | test accuracy of the incumbent, where the table has one                                                |

The incumbent is the network with the best of the first q values. With noise it is the luckiest one: regret and test
accuracy are those of its noise-free value.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from archive.agents.benchmarks.search.plan import StudyJob
from archive.agents.benchmarks.search.recommended import queries_of, recommended_regrets
from archive.agents.benchmarks.search.shares import Share, maker, shares

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
        makers: (q,) proposer of each value; see `archive.agents.benchmarks.search.shares`.
    """

    values: tuple[float, ...] = ()
    seconds: tuple[float, ...] = ()
    repeats: int = 0
    agents: frozenset[str] = frozenset()
    makers: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()


class Regret(NamedTuple):
    """Mean over seeds and its standard error, NaN for a single seed."""

    mean: float
    error: float


@dataclass(frozen=True)
class ContestantResult:
    """Result of one contestant on one problem.

    Attributes:
        contestant: Its name.
        problem: Label of the problem.
        protocol: Protocol of the problem.
        unit: Unit of regret.
        seeds: Number of studies.
        curve: (budget, 2) float64: mean regret after 1, 2, … queries, and its standard error.
        recommended: With noise: noise-free regret of the network that `archive study best` recommends, by the numbers
            of `queries`; empty without noise.
        tests: (budget, 2) float64: mean test accuracy of the incumbent and its standard error, in the unit of regret;
            None if the table has no test accuracy.
        to_best: Queries until the best value, by seed; None where it was not found.
        seconds: Median processor time of a call of the agent.
        seconds_at_end: Median of the last tenth of each study's calls, when the history is longest.
        repeats: Number of proposals of networks that were proposed before in their study, over all studies.
        shares: Share of each agent of a team; empty for a single agent.
    """

    contestant: str
    problem: str
    protocol: str
    unit: str
    seeds: int
    curve: Floats
    to_best: tuple[int | None, ...]
    seconds: float | None
    seconds_at_end: float | None
    repeats: int
    shares: tuple[Share, ...] = ()
    tests: Floats | None = None
    recommended: Mapping[int, Regret] = field(default_factory=dict)

    def test(self, queries: int) -> Regret | None:
        """Return the test accuracy of the incumbent after so many queries; None if the table has none."""
        return None if self.tests is None else Regret(*map(float, self.tests[queries - 1]))

    def regret(self, queries: int) -> Regret:
        """Return the regret after so many queries."""
        return Regret(*map(float, self.curve[queries - 1]))

    @property
    def queries(self) -> tuple[int, ...]:
        """Numbers of queries after which regret is reported: `QUERIES` up to the budget, and the budget."""
        return queries_of(len(self.curve))

    @property
    def queries_to_best(self) -> float | None:
        """Median over seeds; None where half of them or more never found it."""
        median = statistics.median(math.inf if queries is None else queries for queries in self.to_best)
        return median if math.isfinite(median) else None

    @property
    def never(self) -> int:
        """Number of seeds that never found the best."""
        return self.to_best.count(None)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "agent": self.contestant,
            "task": self.problem,
            "protocol": self.protocol,
            "unit": self.unit,
            "seeds": self.seeds,
            "regret": {str(queries): self.regret(queries)._asdict() for queries in self.queries},
            "test": {str(at): test._asdict() for at in self.queries if (test := self.test(at)) is not None},
            "recommended": {str(at): one._asdict() for at, one in self.recommended.items()},
            "queries_to_best": self.queries_to_best,
            "never_found_best": self.never,
            "queries_to_best_by_seed": list(self.to_best),
            "seconds_per_call": self.seconds,
            "seconds_per_call_at_end": self.seconds_at_end,
            "repeats": self.repeats,
            "shares": [share.as_dict() for share in self.shares],
        }


def traces(archive: Archive, jobs: Sequence[StudyJob]) -> list[Trace]:
    """Return the traces of the studies; those of studies that do not exist are empty."""
    rows: dict[str, list[tuple[Any, ...]]] = {job.study.name: [] for job in jobs}
    names = list(rows)
    for at in range(0, len(names), AT_ONCE):
        for name, *row in archive.query(READ, {"names": names[at : at + AT_ONCE]}).rows:
            rows[name].append(tuple(row))
    return [_trace(job, rows[job.study.name]) for job in jobs]


def standings(jobs: Sequence[StudyJob], traces: Sequence[Trace]) -> list[ContestantResult]:
    """Return one row a problem and contestant, in the order of the jobs; studies without evaluations are left out."""
    groups: dict[tuple[str, str, str], list[tuple[StudyJob, Trace]]] = {}
    for job, trace in zip(jobs, traces, strict=True):
        if trace.values:
            group = (job.problem.task, job.problem.protocol, job.contestant.name)
            groups.setdefault(group, []).append((job, trace))
    return [_standing(group) for group in groups.values()]


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
    """Return t(1) … t(budget), (budget,) float64; None where the table has no test accuracy of a network."""
    truth = job.problem.truth
    if truth is None:
        return None
    shown = [truth(trace.keys[at])[1] for at in incumbents(job, trace.values)]
    return _continued([job.problem.points * one for one in shown], job.budget) if np.isfinite(shown).all() else None


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
        *(tuple(values), tuple(calls.values()), repeats, frozenset(agents), tuple(makers)), keys=tuple(evaluated)
    )


def _standing(studies: Sequence[tuple[StudyJob, Trace]]) -> ContestantResult:
    job = studies[0][0]
    curves = np.array([regrets(own, trace.values, trace.keys) for own, trace in studies])
    of_tests = [one for own, trace in studies if (one := tests(own, trace)) is not None]
    calls = [trace.seconds for _, trace in studies]
    return ContestantResult(
        contestant=job.contestant.name,
        problem=job.problem.label,
        protocol=job.problem.protocol,
        unit=job.problem.unit,
        seeds=len(curves),
        curve=_summary(curves),
        to_best=tuple(first_best(curve) for curve in curves),
        seconds=_median(one for of_study in calls for one in of_study),
        seconds_at_end=_median(one for of_study in calls for one in of_study[-math.ceil(len(of_study) / 10) :]),
        repeats=sum(trace.repeats for _, trace in studies),
        shares=shares([_regrets_by_maker(own, trace) for own, trace in studies]) if job.contestant.is_team else (),
        tests=_summary(np.array(of_tests)) if len(of_tests) == len(studies) else None,
        recommended=_recommended(studies, queries_of(job.budget)),
    )


def _recommended(studies: Sequence[tuple[StudyJob, Trace]], queries: Sequence[int]) -> dict[int, Regret]:
    columns = recommended_regrets([(job, trace.values, trace.keys) for job, trace in studies], queries)
    return {at: Regret(*map(float, _summary(column[:, None])[0])) for at, column in columns.items()}


def _summary(curves: Floats) -> Floats:
    """Return mean and standard error over the first axis: (n, budget) to (budget, 2); NaN for a single curve."""
    n = len(curves)
    errors = curves.std(axis=0, ddof=1) / math.sqrt(n) if n > 1 else np.full(curves.shape[1], math.nan)
    return np.column_stack([curves.mean(axis=0), errors])


def _regrets_by_maker(job: StudyJob, trace: Trace) -> list[tuple[str, float]]:
    return [(maker, job.problem.regret(value)) for maker, value in zip(trace.makers, trace.values, strict=True)]


def first_best(curve: Floats) -> int | None:
    """Return the first query without regret, from 1; None where there is none."""
    queries = np.flatnonzero(curve <= 0)
    return int(queries[0]) + 1 if len(queries) else None


def _median(values: Iterator[float]) -> float | None:
    known = list(values)
    return statistics.median(known) if known else None


def by_problem(rows: Sequence[ContestantResult]) -> Mapping[tuple[str, str], list[ContestantResult]]:
    """Return the rows of each problem, by label and protocol."""
    problems: dict[tuple[str, str], list[ContestantResult]] = {}
    for row in rows:
        problems.setdefault((row.problem, row.protocol), []).append(row)
    return problems
