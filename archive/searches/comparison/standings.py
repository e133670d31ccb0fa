"""Results of the contestants of a comparison: regret by queries, queries to the best, seconds,
repeats.

Symbols are those of `archive.searches.comparison.regret`. Searches of one seed have the same
random draws as far as their agents allow, and the same noise: contestants are compared seed by
seed.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from archive.searches.comparison.paired import errors_of
from archive.searches.comparison.plan import StudyJob
from archive.searches.comparison.recommended import (
    Recommended,
    queries_of,
    recommended_by_seed,
)
from archive.searches.comparison.regret import Trace, first_best, regrets, tests
from archive.searches.comparison.shares import Share, shares

Floats = NDArray[np.float64]


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
        curves: Regret after 1, 2, … queries of each study, (budget,) float64, by seed.
        recommendations: With noise: what `archive study best` recommends in each study, by the
            numbers of `queries` and then by seed; empty without noise.
        tests: (budget, 2) float64: mean test accuracy of the incumbent and its standard error, in
            the unit of regret; None if the table has no test accuracy.
        to_best: Queries until the best value, by seed; None where it was not found.
        seconds: Median processor time of a call of the agent.
        seconds_at_end: Median of the last tenth of each study's calls, when the history is longest.
        repeats: Number of proposals of networks that were proposed before in their study, over all
            studies.
        shares: Share of each agent of a team; empty for a single agent.
    """

    contestant: str
    problem: str
    protocol: str
    unit: str
    curves: Mapping[int, Floats]
    to_best: tuple[int | None, ...]
    seconds: float | None
    seconds_at_end: float | None
    repeats: int
    shares: tuple[Share, ...] = ()
    tests: Floats | None = None
    recommendations: Mapping[int, Mapping[int, Recommended]] = field(default_factory=dict)

    @property
    def seeds(self) -> int:
        """Number of studies."""
        return len(self.curves)

    @cached_property
    def curve(self) -> Floats:
        """Mean regret after 1, 2, … queries, and its standard error, (budget, 2) float64."""
        return _summary(np.array(list(self.curves.values())))

    @property
    def recommended(self) -> dict[int, Regret]:
        """Regret of the recommended network, by number of queries; empty without noise."""
        columns = {
            at: np.array(list(self._recommended_regrets(at).values()))
            for at in self.recommendations
        }
        return {
            at: Regret(*map(float, _summary(column[:, None])[0]))
            for at, column in columns.items()
            if len(column)
        }

    @property
    def within(self) -> float | None:
        """Share of the recommended networks with their value in the interval of 95 %;

        None without intervals.
        """
        every = [
            one.within for by_seed in self.recommendations.values() for one in by_seed.values()
        ]
        known = [within for within in every if within is not None]
        return statistics.mean(known) if known else None

    def errors(self, first: ContestantResult) -> dict[int, float | None]:
        """Return the regret of `first` less this one's, in standard errors of the differences, by
        number of queries.

        Differences are taken seed by seed. Negative where `first` is ahead; None for fewer than two
        seeds.
        """
        return {at: errors_of(first._regrets(at), self._regrets(at)) for at in self.queries}

    def recommended_errors(self, first: ContestantResult) -> dict[int, float | None]:
        """Return the same for the recommended networks; empty without noise."""
        return {
            at: errors_of(first._recommended_regrets(at), self._recommended_regrets(at))
            for at in self.recommended
        }

    def _regrets(self, queries: int) -> dict[int, float]:
        return {seed: float(curve[queries - 1]) for seed, curve in self.curves.items()}

    def _recommended_regrets(self, queries: int) -> dict[int, float]:
        return {seed: one.regret for seed, one in self.recommendations.get(queries, {}).items()}

    def test(self, queries: int) -> Regret | None:
        """Return the test accuracy of the incumbent after so many queries;

        None if the table has none.
        """
        return None if self.tests is None else Regret(*map(float, self.tests[queries - 1]))

    def regret(self, queries: int) -> Regret:
        """Return the regret after so many queries."""
        return Regret(*map(float, self.curve[queries - 1]))

    @property
    def queries(self) -> tuple[int, ...]:
        """Numbers of queries after which regret is reported:

        `QUERIES` up to the budget, and the budget.
        """
        return queries_of(len(self.curve))

    @property
    def queries_to_best(self) -> float | None:
        """Median over seeds; None where half of them or more never found it."""
        median = statistics.median(
            math.inf if queries is None else queries for queries in self.to_best
        )
        return median if math.isfinite(median) else None

    @property
    def never(self) -> int:
        """Number of seeds that never found the best."""
        return self.to_best.count(None)

    def as_dict(self, first: ContestantResult) -> dict[str, Any]:
        """Return everything as plain values, beside the first contestant of the problem."""
        return {
            "agent": self.contestant,
            "task": self.problem,
            "protocol": self.protocol,
            "unit": self.unit,
            "seeds": self.seeds,
            "regret": {str(queries): self.regret(queries)._asdict() for queries in self.queries},
            "test": {
                str(at): test._asdict()
                for at in self.queries
                if (test := self.test(at)) is not None
            },
            "recommended": {str(at): one._asdict() for at, one in self.recommended.items()},
            "recommended_within": self.within,
            "errors": {str(at): one for at, one in self.errors(first).items()},
            "recommended_errors": {
                str(at): one for at, one in self.recommended_errors(first).items()
            },
            "queries_to_best": self.queries_to_best,
            "never_found_best": self.never,
            "queries_to_best_by_seed": list(self.to_best),
            "seconds_per_call": self.seconds,
            "seconds_per_call_at_end": self.seconds_at_end,
            "repeats": self.repeats,
            "shares": [share.as_dict() for share in self.shares],
        }


def standings(jobs: Sequence[StudyJob], traces: Sequence[Trace]) -> list[ContestantResult]:
    """Return one row a problem and contestant, in the order of the jobs; studies without
    evaluations are left out.
    """
    groups: dict[tuple[str, str, str], list[tuple[StudyJob, Trace]]] = {}
    for job, trace in zip(jobs, traces, strict=True):
        if trace.values:
            group = (job.problem.task, job.problem.protocol, job.contestant.name)
            groups.setdefault(group, []).append((job, trace))

    return [_standing(group) for group in groups.values()]


def _standing(studies: Sequence[tuple[StudyJob, Trace]]) -> ContestantResult:
    job = studies[0][0]
    curves = {own.seed: regrets(own, trace.values, trace.keys) for own, trace in studies}
    of_tests = [one for own, trace in studies if (one := tests(own, trace)) is not None]
    calls = [trace.seconds for _, trace in studies]
    return ContestantResult(
        contestant=job.contestant.name,
        problem=job.problem.label,
        protocol=job.problem.protocol,
        unit=job.problem.unit,
        curves=curves,
        to_best=tuple(map(first_best, curves.values())),
        seconds=_median(one for of_study in calls for one in of_study),
        seconds_at_end=_median(
            one for of_study in calls for one in of_study[-math.ceil(len(of_study) / 10) :]
        ),
        repeats=sum(trace.repeats for _, trace in studies),
        shares=shares([_regrets_by_maker(own, trace) for own, trace in studies])
        if job.contestant.is_team
        else (),
        tests=_summary(np.array(of_tests)) if len(of_tests) == len(studies) else None,
        recommendations=recommended_by_seed(
            [(own, trace.values, trace.keys) for own, trace in studies], queries_of(job.budget)
        ),
    )


def _summary(curves: Floats) -> Floats:
    """Return mean and standard error over the first axis:

    (n, budget) to (budget, 2); NaN for a single curve.
    """
    n = len(curves)
    errors = (
        curves.std(axis=0, ddof=1) / math.sqrt(n) if n > 1 else np.full(curves.shape[1], math.nan)
    )
    return np.column_stack([curves.mean(axis=0), errors])


def _regrets_by_maker(job: StudyJob, trace: Trace) -> list[tuple[str, float]]:
    return [
        (maker, job.problem.regret(value))
        for maker, value in zip(trace.makers, trace.values, strict=True)
    ]


def _median(values: Iterator[float]) -> float | None:
    known = list(values)
    return statistics.median(known) if known else None


def by_problem(
    rows: Sequence[ContestantResult],
) -> Mapping[tuple[str, str], list[ContestantResult]]:
    """Return the rows of each problem, by label and protocol."""
    problems: dict[tuple[str, str], list[ContestantResult]] = {}
    for row in rows:
        problems.setdefault((row.problem, row.protocol), []).append(row)

    return problems
