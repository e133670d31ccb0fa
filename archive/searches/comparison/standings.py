"""Results of the contestants: regret by queries, queries to the best, seconds, repeats.

Symbols as in `archive.searches.comparison.regret`. Searches of one seed share their random draws,
as far as their agents allow, and their noise. Contestants are therefore compared seed by seed:
such differences vary less than the searches do.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from archive.searches.comparison.plan import StudyJob
from archive.searches.comparison.regret import (
    Recommended,
    Share,
    Trace,
    first_best,
    queries_of,
    recommend_by_seed,
    regrets,
    shares,
    tests,
)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Regret:
    """Regret after a number of queries.

    Attributes:
        mean: Mean over the seeds.
        error: Standard error of the mean.
    """

    mean: float
    error: float | None


@dataclass(frozen=True)
class StandingItem:
    """How one agent searched one task.

    Attributes:
        agent: The agent, with its settings.
        task: The task.
        protocol: How it was measured.
        unit: Unit of the regret.
        seeds: Number of searches.
        regret: By number of queries.
        test: Test accuracy of the best network so far, by number of queries; empty where the table
            has none.
        recommended: With noise: noise-free regret of the network that `archive study best`
            recommends; else empty.
        recommended_within: Share of these networks with their noise-free value in the interval of
            95 %.
        errors: Regret of the first agent of the task less this agent's, in standard errors of the
            differences seed by seed, by number of queries; negative where the first one is
            ahead, null for fewer than two seeds.
        recommended_errors: The same for the recommended networks.
        queries_to_best: Median number of queries until the best network was found.
        never_found_best: Searches that did not find it.
        queries_to_best_by_seed: The same for each seed.
        seconds_per_call: Processor time of a call of the agent, in the mean.
        seconds_per_call_at_end: The same for the last calls.
        repeats: Networks that were proposed again.
        shares: Of each agent, where it is a team.
    """

    agent: str
    task: str
    protocol: str
    unit: str
    seeds: int
    regret: dict[int, Regret]
    test: dict[int, Regret]
    recommended: dict[int, Regret]
    recommended_within: float | None
    errors: dict[int, float | None]
    recommended_errors: dict[int, float | None]
    queries_to_best: float | None
    never_found_best: int
    queries_to_best_by_seed: list[int | None]
    seconds_per_call: float | None
    seconds_per_call_at_end: float | None
    repeats: int
    shares: list[Share]


@dataclass(frozen=True)
class SearchComparison:
    """A comparison of agents on tables.

    Attributes:
        run: Name of the run.
        seeds: Searches of each agent and task.
        budget: Evaluations of a search.
        batch: Proposals asked for at a time.
        starts: Random networks that came first.
        standings: One row an agent and task.
    """

    run: str
    seeds: int
    budget: int
    batch: int
    starts: int
    standings: list[StandingItem]


@dataclass(frozen=True)
class ContestantResult:
    """Result of one contestant on one problem.

    Attributes:
        contestant: Its name.
        problem: Label of the problem.
        protocol: Protocol of the problem.
        unit: Unit of regret.
        curves: Regret after 1, 2, … queries of each study, (budget,) float64, by seed.
        recommendations: With noise: the recommendations of `archive study best` in each study, by
            the numbers of `queries` and then by seed; empty without noise.
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
        return _summarise(np.array(list(self.curves.values())))

    @property
    def recommended(self) -> dict[int, Regret]:
        """Regret of the recommended network, by number of queries; empty without noise."""
        means: dict[int, Regret] = {}
        for queries in self.recommendations:
            column = np.array(list(self._recommended_regrets(queries).values()))
            if len(column):
                means[queries] = Regret(*map(float, _summarise(column[:, None])[0]))

        return means

    @property
    def within(self) -> float | None:
        """Share of recommended networks with their value in the interval of 95 %, or None."""
        values: list[bool] = []
        for by_seed in self.recommendations.values():
            for recommended in by_seed.values():
                if recommended.within is not None:
                    values.append(recommended.within)

        return statistics.mean(values) if values else None

    def errors(self, first: ContestantResult) -> dict[int, float | None]:
        """Return the regret of `first` less this one's, in standard errors, by number of queries.

        Differences are taken seed by seed. Negative where `first` is ahead; None for fewer than two
        seeds.
        """
        errors: dict[int, float | None] = {}
        for queries in self.queries:
            errors[queries] = errors_of(first._regrets(queries), self._regrets(queries))

        return errors

    def recommended_errors(self, first: ContestantResult) -> dict[int, float | None]:
        """Return the same for the recommended networks; empty without noise."""
        errors: dict[int, float | None] = {}
        for queries in self.recommended:
            regrets_of_first = first._recommended_regrets(queries)
            errors[queries] = errors_of(regrets_of_first, self._recommended_regrets(queries))

        return errors

    def _regrets(self, queries: int) -> dict[int, float]:
        return {seed: float(curve[queries - 1]) for seed, curve in self.curves.items()}

    def _recommended_regrets(self, queries: int) -> dict[int, float]:
        by_seed = self.recommendations.get(queries, {})
        return {seed: recommendation.regret for seed, recommendation in by_seed.items()}

    def test(self, queries: int) -> Regret | None:
        """Return the incumbent's test accuracy after so many queries, None if it is unknown."""
        return None if self.tests is None else Regret(*map(float, self.tests[queries - 1]))

    def regret(self, queries: int) -> Regret:
        """Return the regret after so many queries."""
        return Regret(*map(float, self.curve[queries - 1]))

    @property
    def queries(self) -> tuple[int, ...]:
        """Numbers of queries after which regret is reported: `QUERIES` below the budget, and it."""
        return queries_of(len(self.curve))

    @property
    def queries_to_best(self) -> float | None:
        """Median over seeds; None where half of them or more never found it."""
        counts = [queries for queries in self.to_best if queries is not None]
        median = statistics.median([*counts, *[math.inf] * self.never])
        return median if math.isfinite(median) else None

    @property
    def never(self) -> int:
        """Number of seeds that never found the best."""
        return self.to_best.count(None)

    def item(self, first: ContestantResult) -> StandingItem:
        """Return the standing beside the first contestant of the problem."""
        tests = {queries: self.test(queries) for queries in self.queries}
        return StandingItem(
            agent=self.contestant,
            task=self.problem,
            protocol=self.protocol,
            unit=self.unit,
            seeds=self.seeds,
            regret={queries: self.regret(queries) for queries in self.queries},
            test={queries: test for queries, test in tests.items() if test is not None},
            recommended=self.recommended,
            recommended_within=self.within,
            errors=self.errors(first),
            recommended_errors=self.recommended_errors(first),
            queries_to_best=self.queries_to_best,
            never_found_best=self.never,
            queries_to_best_by_seed=list(self.to_best),
            seconds_per_call=self.seconds,
            seconds_per_call_at_end=self.seconds_at_end,
            repeats=self.repeats,
            shares=list(self.shares),
        )


def standings(jobs: Sequence[StudyJob], traces: Sequence[Trace]) -> list[ContestantResult]:
    """Return one row per problem and contestant, in the order of the jobs.

    Studies without evaluations are left out.
    """
    groups: dict[tuple[str, str, str], list[tuple[StudyJob, Trace]]] = {}
    for job, trace in zip(jobs, traces, strict=True):
        if trace.values:
            group = (job.problem.task, job.problem.protocol, job.contestant.name)
            groups.setdefault(group, []).append((job, trace))

    return list(map(_standing, groups.values()))


def _standing(studies: Sequence[tuple[StudyJob, Trace]]) -> ContestantResult:
    first = studies[0][0]
    curves: dict[int, Floats] = {}
    accuracies: list[Floats] = []
    calls: list[float] = []
    last_calls: list[float] = []
    for job, trace in studies:
        curves[job.seed] = regrets(job, trace.values, trace.keys)
        accuracy = tests(job, trace)
        if accuracy is not None:
            accuracies.append(accuracy)

        calls += trace.seconds
        last_calls += trace.seconds[-math.ceil(len(trace.seconds) / 10) :]

    team: tuple[Share, ...] = ()
    if first.contestant.is_team:
        team = shares([_regrets_by_maker(job, trace) for job, trace in studies])

    return ContestantResult(
        contestant=first.contestant.name,
        problem=first.problem.label,
        protocol=first.problem.protocol,
        unit=first.problem.unit,
        curves=curves,
        to_best=tuple(map(first_best, curves.values())),
        seconds=statistics.median(calls) if calls else None,
        seconds_at_end=statistics.median(last_calls) if last_calls else None,
        repeats=sum(trace.repeats for _, trace in studies),
        shares=team,
        tests=_summarise(np.array(accuracies)) if len(accuracies) == len(studies) else None,
        recommendations=recommend_by_seed(
            [(job, trace.values, trace.keys) for job, trace in studies], queries_of(first.budget)
        ),
    )


def _summarise(curves: Floats) -> Floats:
    """Return mean and standard error over the first axis: (n, budget) to (budget, 2).

    The error of a single curve is NaN.
    """
    n = len(curves)
    errors = np.full(curves.shape[1], math.nan)
    if n > 1:
        errors = curves.std(axis=0, ddof=1) / math.sqrt(n)

    return np.column_stack([curves.mean(axis=0), errors])


def _regrets_by_maker(job: StudyJob, trace: Trace) -> list[tuple[str, float]]:
    return list(zip(trace.makers, map(job.problem.regret, trace.values), strict=True))


def by_problem(
    rows: Sequence[ContestantResult],
) -> Mapping[tuple[str, str], list[ContestantResult]]:
    """Return the rows of each problem, by label and protocol."""
    problems: dict[tuple[str, str], list[ContestantResult]] = {}
    for row in rows:
        problems.setdefault((row.problem, row.protocol), []).append(row)

    return problems


def in_standard_errors(means: Floats, values: Floats) -> Floats:
    """Return means in standard errors of the means of values, of n >= 2 seeds each.

    Args:
        means: (m,) float64.
        values: (n, m) float64.

    Returns:
        (m,) float64. Where all n values are equal but for rounding, there is no standard error: the
        result is then 0 for a mean of 0, and NaN for another one.
    """
    equal = np.isclose(values, values[0], rtol=1e-9, atol=1e-12).all(axis=0)
    errors = values.std(axis=0, ddof=1) / math.sqrt(len(values))
    ratios = np.where(np.abs(means) < 1e-9, 0.0, np.nan)
    divided: Floats = np.divide(means, errors, out=ratios, where=~equal)
    return divided


def errors_of(first: Mapping[int, float], second: Mapping[int, float]) -> float | None:
    """Return the mean of `first - second` in standard errors of the differences.

    Args:
        first: Value of each search, by seed.
        second: Values of another series. Seeds that only one series has are left out.

    Returns:
        Negative where the first values are smaller. None for fewer than two seeds, and where all
        differences are equal but not 0, so that they have no standard error.
    """
    differences = np.array([first[seed] - second[seed] for seed in first if seed in second])
    if len(differences) < 2:
        return None

    ratio = float(in_standard_errors(differences.mean(keepdims=True), differences[:, None])[0])
    return None if math.isnan(ratio) else ratio
