"""Rows of a comparison of warm starts: regret of each scenario beside that of the same agent's cold
starts.

| symbol | meaning                                                                                     |
|--------|---------------------------------------------------------------------------------------------|
| w, c   | regret of a warm and of the cold start of one seed after some number of queries             |
| excess | mean over the seeds of w - c, the largest of all numbers of queries from `FROM` on          |
| errors | mean of w - c in standard errors of w - c, the largest likewise                             |
| own    | mean of w - c in standard errors of w, the largest likewise                                 |

With noise the regret is that of the recommended network
(`archive.searches.comparison.regret`), not of the luckiest one: a search that finds many
good networks has more of them to be lucky with.

A warm and a cold start of one seed have the same draws, so that w - c varies less than w where a
source changes little: the largest of thirty such ratios is often above 1 where a few searches
differ by chance. All scenarios of a target have the same cold starts: if these are lucky, all
scenarios seem behind. The rows of controls (`transfer.plan`) show how large the ratios are by
chance.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from archive.agents.transfer.report import read_contributions
from archive.searches.comparison.plan import StudyJob
from archive.searches.comparison.regret import first_best, recommend_curve, regrets, traces
from archive.searches.comparison.standings import in_standard_errors
from tests.benchmarks.transfer.plan import TransferPlan

if TYPE_CHECKING:
    from archive.api import Archive

Floats = NDArray[np.float64]

COLD = "cold"
"""Name of the searches without sources."""

AGAIN = "cold-again-{}"
"""Name of their controls of a number."""

QUERIES = (1, 3, 10, 20, 30, 40)
"""Numbers of queries after which regret is reported."""

FROM = 10
"""Fewest queries at which warm starts are compared with cold ones."""


class Row(NamedTuple):
    """Result of the target studies of a scenario.

    Attributes:
        target: Task of the studies.
        scenario: Name of the scenario, or `cold`, or that of a control.
        seeds: Number of target studies.
        to_best: Median number of queries until the best network; None where half of them never
            found it.
        slowest: The largest number of queries until the best network; None where a study never
            found it.
        regret: Mean regret after some numbers of queries, by number; with noise, of the recommended
            networks.
        excess: The largest amount by which the mean regret is above the cold one's, after `FROM`
            queries or more; None for fewer.
        errors: The largest such amount in standard errors of the differences, see `Excess`.
        own_errors: The largest such amount in standard errors of the mean regret, see `Excess`.
        coupling: Mean of the last estimates of the correlation with the sources; None without
            sources.
    """

    target: str
    scenario: str
    seeds: int
    to_best: float | None
    slowest: int | None
    regret: Mapping[int, float]
    excess: float | None
    errors: float | None
    own_errors: float | None
    coupling: float | None

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {**self._asdict(), "regret": {str(at): value for at, value in self.regret.items()}}


def rows(archive: Archive, plan: TransferPlan) -> list[Row]:
    """Return a row for the cold starts of each target, for each of their controls, and for each
    scenario.

    Those without evaluations are left out.
    """
    results = []
    for task in plan.tasks:
        cold = _searched(archive, plan.cold(task))
        results.append(_row(archive, plan, (task, COLD, ()), cold, cold))
        for number in range(1, plan.controls + 1):
            if again := _searched(archive, plan.repeated(task, number)):
                results.append(_row(archive, plan, (task, AGAIN.format(number), ()), again, cold))

        for scenario in plan.scenarios:
            if scenario.target == task and (
                warm := _searched(archive, jobs := plan.warm(scenario))
            ):
                results.append(_row(archive, plan, (task, scenario.name, jobs), warm, cold))

    return results


class Excess(NamedTuple):
    """How far warm starts are behind cold ones at most, see the head of this module; each at least
    0.

    Attributes:
        points: The excess; None for fewer than `FROM` queries.
        errors: In standard errors of the differences. None for a single seed, and where all seeds
            are behind by the same amount, which has no standard error.
        own: In standard errors of the warm starts; None likewise.
    """

    points: float | None
    errors: float | None
    own: float | None

    @classmethod
    def of(cls, warm: Floats, cold: Floats) -> Excess:
        """Return the excess of regrets, (n, budget) each, of which a row has one seed."""
        warm = warm[:, FROM - 1 :]
        cold = cold[:, FROM - 1 :]
        if not warm.size:
            return cls(None, None, None)

        means = (warm - cold).mean(axis=0)
        points = float(means.max(initial=0.0))
        if len(warm) == 1:
            return cls(points, None, None)

        return cls(points, *(_largest(means, of) for of in (warm - cold, warm)))


def _largest(means: Floats, values: Floats) -> float | None:
    """Return the largest of the positive means in standard errors;

    None if one of them has no standard error.
    """
    behind = means > 0.0
    largest = float(in_standard_errors(means[behind], values[:, behind]).max(initial=0.0))
    return None if math.isnan(largest) else largest


class _Searched(NamedTuple):
    """One study.

    Attributes:
        regret: (budget,) float64, after each number of queries; with noise, of the latest
            recommendation.
        to_best: Number of queries until the best network; infinite where it was never found.
    """

    regret: Floats
    to_best: float


def _searched(archive: Archive, jobs: Sequence[StudyJob]) -> dict[int, _Searched]:
    """Return each study with evaluations, by the position of its seed."""
    by_seed = {}
    for at, (job, trace) in enumerate(zip(jobs, traces(archive, jobs), strict=True)):
        if trace.values:
            incumbent = regrets(job, trace.values, trace.keys)
            shown = (
                recommend_curve(job, trace.values, trace.keys) if job.problem.noise else incumbent
            )
            by_seed[at] = _Searched(shown, first_best(incumbent) or math.inf)

    return by_seed


def _row(
    archive: Archive,
    plan: TransferPlan,
    of: tuple[str, str, Sequence[StudyJob]],
    warm: Mapping[int, _Searched],
    cold: Mapping[int, _Searched],
) -> Row:
    target, scenario, jobs = of
    to_best = [one.to_best for one in warm.values()]
    median = statistics.median(to_best)
    slowest = max(to_best)
    mean = np.mean([one.regret for one in warm.values()], axis=0)
    seeds = [seed for seed in warm if seed in cold]
    excess = Excess.of(*(np.array([side[seed].regret for seed in seeds]) for side in (warm, cold)))
    return Row(
        target=target,
        scenario=scenario,
        seeds=len(warm),
        to_best=median if math.isfinite(median) else None,
        slowest=int(slowest) if math.isfinite(slowest) else None,
        regret={at: float(mean[at - 1]) for at in QUERIES if at <= plan.budget},
        excess=excess.points,
        errors=excess.errors,
        own_errors=excess.own,
        coupling=_coupling(archive, jobs),
    )


def _coupling(archive: Archive, jobs: Sequence[StudyJob]) -> float | None:
    rows = (row for job in jobs for row in read_contributions(archive, job.study.name))
    estimates = [row.coupling for row in rows if row.coupling is not None]
    return float(np.mean(estimates)) if estimates else None
