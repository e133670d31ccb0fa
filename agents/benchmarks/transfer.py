"""Gain of a warm start: studies with sources from other tasks, compared with the same agent's cold starts.

| scenario      | source of each study                                             | expected effect       |
|---------------|------------------------------------------------------------------|-----------------------|
| `searched`    | a search of the agent on CIFAR-10, 200 evaluations               | helpful               |
| `sampled`     | 50 random cells on CIFAR-10                                      | helpful               |
| `other-space` | 1,000 random cells of NAS-Bench-101                              | helpful               |
| `both`        | the last two together                                            | helpful               |
| `reversed`    | as `searched`, every value with its sign changed                 | misleading            |
| `shuffled`    | as `searched`, the values permuted among the cells               | misleading            |
| `unrelated`   | as `other-space`, the values permuted among the cells            | misleading            |

The target is CIFAR-100 on the cells of NAS-Bench-201. Sources and targets are studies of an archive: after an
interruption, the same run continues.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from archive import agents
from archive.agents.base import Suggestion
from archive.agents.benchmarks.search.contestants import Contestant, contestant
from archive.agents.benchmarks.search.plan import STARTER, Problem, StudyJob
from archive.agents.benchmarks.search.regret import first_best, regrets, traces
from archive.agents.benchmarks.search.run import opened, register
from archive.agents.transfer.report import contributed
from archive.errors import UnknownNameError, UsageError
from archive.store.records import Result

if TYPE_CHECKING:
    from archive.api import Archive

TARGET = "nb201-cifar100"


@dataclass(frozen=True)
class Recipe:
    """Recipe of a source study.

    Attributes:
        task: Task of its evaluations.
        budget: Number of evaluations.
        sampled: Whether its networks are drawn at random; else the agent searches.
        altered: `reversed` or `shuffled` values; empty for those of the table.
    """

    task: str
    budget: int
    sampled: bool
    altered: str = ""


_SEARCHED = Recipe("nb201-cifar10", 200, False)
_SAMPLED = Recipe("nb201-cifar10", 50, True)
_OTHER = Recipe("nb101", 1000, True)

SCENARIOS: Mapping[str, tuple[Recipe, ...]] = MappingProxyType(
    {
        "searched": (_SEARCHED,),
        "sampled": (_SAMPLED,),
        "other-space": (_OTHER,),
        "both": (_SAMPLED, _OTHER),
        "reversed": (replace(_SEARCHED, altered="reversed"),),
        "shuffled": (replace(_SEARCHED, altered="shuffled"),),
        "unrelated": (replace(_OTHER, altered="shuffled"),),
    }
)
"""The recipes of the sources, by scenario."""

COLD = "cold"
"""Name of the searches without sources."""

QUERIES = (1, 3, 10, 20, 40)


@dataclass(frozen=True)
class TransferPlan:
    """A whole comparison of warm starts.

    Attributes:
        contestant: The agent of the targets and of searched sources.
        problem: Returns the problem of a task, by its name.
        scenarios: Names of the scenarios.
        seeds: Number of repetitions, with the seeds 0, 1, …, each with separate sources.
        budget: Most evaluations of a target; it ends with the best network of the table.
        run: Name of the run.
        shrink: Divisor of the budgets of sources, for a quick run.

    Raises:
        UnknownNameError: There is no such scenario.
        UsageError: The agent is a team, or does not learn from other tasks.
    """

    contestant: Contestant
    problem: Callable[[str], Problem]
    scenarios: Sequence[str]
    seeds: int
    budget: int
    run: str
    shrink: int = 1

    def __post_init__(self) -> None:
        """Check the names."""
        for name in self.scenarios:
            if name not in SCENARIOS:
                raise UnknownNameError("scenario", name, SCENARIOS)
        space = self.problem(TARGET).search_space()
        if self.contestant.is_team or not all(agent.transfers for agent in self.contestant.agents(space)):
            raise UsageError(f"a warm start needs one agent that learns from other tasks, got {self.contestant.name!r}")

    def sources(self) -> list[StudyJob]:
        """Return the source studies with unaltered values, each once."""
        recipes = {replace(recipe, altered=""): None for scenario in self.scenarios for recipe in SCENARIOS[scenario]}
        return [self._source(recipe, seed) for seed in range(self.seeds) for recipe in recipes]

    def alterations(self) -> Iterator[tuple[StudyJob, StudyJob, str]]:
        """Yield each source study with altered values, the study that it repeats, and the alteration."""
        for seed in range(self.seeds):
            for scenario in self.scenarios:
                for recipe in SCENARIOS[scenario]:
                    if recipe.altered:
                        plain = self._source(replace(recipe, altered=""), seed)
                        yield self._source(recipe, seed), plain, recipe.altered

    def targets(self, scenario: str) -> list[StudyJob]:
        """Return the target studies of a scenario, or the cold ones, by seed."""
        recipes = () if scenario == COLD else SCENARIOS[scenario]
        problem = self.problem(TARGET)
        return [
            StudyJob(
                *(self.contestant, problem, seed, self.budget, 1, 0, self.run),
                until_best=True,
                warm="" if scenario == COLD else scenario,
                sources=tuple(self._source(recipe, seed).study.name for recipe in recipes),
            )
            for seed in range(self.seeds)
        ]

    def _source(self, recipe: Recipe, seed: int) -> StudyJob:
        problem = self.problem(recipe.task)
        if recipe.altered:
            task = f"{problem.task}-{recipe.altered}"
            problem = replace(problem, task=task, label=f"{problem.label}-{recipe.altered}")
        budget = max(recipe.budget // self.shrink, 1)
        searcher = contestant(STARTER) if recipe.sampled else self.contestant
        # Another seed than the target's, so that source and target have different initial networks.
        return StudyJob(searcher, problem, 1000 + seed, budget, 1, budget if recipe.sampled else 0, self.run)


def alter(archive: Archive, plan: TransferPlan) -> None:
    """Store the sources with altered values, except for existing ones."""
    for job, plain, how in plan.alterations():
        study = opened(archive, job)
        if archive.studies.snapshot(study.name).proposals:
            continue
        seen = archive.studies.evaluations(plain.study.name)
        values = np.array([one.value for one in seen])
        values = -values if how == "reversed" else np.random.default_rng(job.seed).permutation(values)
        suggestions = [Suggestion(one.architecture) for one in seen]
        results = [Result(float(value), {job.problem.objective: float(value)}) for value in values]
        agent = agents.get(STARTER, job.problem.search_space())
        archive.proposals.create(
            study.name, register(archive, agent), suggestions, outcomes=results, after=0, unique=False
        )


class Row(NamedTuple):
    """Result of the target studies of a scenario.

    Attributes:
        scenario: Its name, or `cold`.
        seeds: Number of target studies.
        to_best: Median number of queries until the best network; None where half of them never found it.
        slowest: The largest number of queries until the best network; None where a study never found it.
        regret: Mean regret after some numbers of queries, by number.
        excess: The largest amount by which the mean regret is above the cold one's, after 10 queries or more.
        coupling: Mean of the last estimates of the correlation with the sources; None without sources.
    """

    scenario: str
    seeds: int
    to_best: float | None
    slowest: int | None
    regret: Mapping[int, float]
    excess: float
    coupling: float | None

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {**self._asdict(), "regret": {str(at): value for at, value in self.regret.items()}}


def rows(archive: Archive, plan: TransferPlan) -> list[Row]:
    """Return one row for the cold starts, then one a scenario; studies without evaluations are left out."""
    cold = _curves(archive, plan.targets(COLD))
    rows = [_row(archive, plan, COLD, cold, cold)]
    for scenario in plan.scenarios:
        curves = _curves(archive, plan.targets(scenario))
        if len(curves):
            rows.append(_row(archive, plan, scenario, curves, cold))
    return rows


def _curves(archive: Archive, jobs: Sequence[StudyJob]) -> np.ndarray[Any, np.dtype[np.float64]]:
    curves = [
        regrets(job, trace.values, trace.keys)
        for job, trace in zip(jobs, traces(archive, jobs), strict=True)
        if trace.values
    ]
    return np.array(curves).reshape(len(curves), -1)


def _row(archive: Archive, plan: TransferPlan, scenario: str, curves: Any, cold: Any) -> Row:
    to_best = [first_best(curve) or math.inf for curve in curves]
    median, slowest = statistics.median(to_best), max(to_best)
    mean, beside = curves.mean(axis=0), cold.mean(axis=0)
    return Row(
        scenario=scenario,
        seeds=len(curves),
        to_best=median if math.isfinite(median) else None,
        slowest=int(slowest) if math.isfinite(slowest) else None,
        regret={at: float(mean[at - 1]) for at in QUERIES if at <= plan.budget},
        excess=float((mean - beside)[9:].max(initial=0.0)),
        coupling=None if scenario == COLD else _coupling(archive, plan.targets(scenario)),
    )


def _coupling(archive: Archive, jobs: Sequence[StudyJob]) -> float | None:
    rows = (row for job in jobs for row in contributed(archive, job.study.name))
    estimates = [row.coupling for row in rows if row.coupling is not None]
    return float(np.mean(estimates)) if estimates else None
