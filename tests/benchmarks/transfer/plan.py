"""Plan of a comparison of warm starts: source studies, their altered copies, and the studies that
start from them.

Sources and targets are studies of an archive: after an interruption, the same run continues.

A control repeats a cold start. It has the same first `FIRST` networks, as a warm start has that
waits for evidence, and then draws others. Cold starts and controls differ by chance alone. Hence
the difference between them is what chance does to the difference between cold and warm starts. An
agent that chooses without chance after these networks, such as `portfolio` on a table of at most a
thousand networks, repeats its cold starts exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from archive import agents
from archive.agents.base import Suggestion
from archive.agents.transfer.evidence import FIRST
from archive.errors import UsageError
from archive.searches.comparison.plan import STARTER, Contestant, Problem, StudyJob, contestant
from archive.searches.comparison.run import open_study, register, result_of
from archive.store.records import Result
from tests.benchmarks.transfer.scenarios import Scenario, SourceDesign

if TYPE_CHECKING:
    from archive.api import Archive

SEEDS_APART = 10_000
"""Difference between the seeds of a cold start and of its first control, and so on."""


@dataclass(frozen=True)
class TransferPlan:
    """A whole comparison of warm starts.

    Attributes:
        contestant: The agent of the targets and of searched sources.
        problem: Returns the problem of a task, by its name.
        scenarios: The scenarios.
        seeds: Number of repetitions, with the seeds 0, 1, …, each with separate sources.
        budget: Most evaluations of a target; it ends with the best network of the table.
        run: Name of the run.
        shrink: Divisor of the budgets of sources, for a quick run.
        controls: Number of controls of each cold start.

    Raises:
        UsageError: The agent is a team, or does not learn from other tasks; a table without noise
            has fewer networks than a source needs.
    """

    contestant: Contestant
    problem: Callable[[str], Problem]
    scenarios: Sequence[Scenario]
    seeds: int
    budget: int
    run: str
    shrink: int = 1
    controls: int = 0

    def __post_init__(self) -> None:
        """Check the agent, and the sizes of the sources."""
        space = self.problem(self.scenarios[0].target).search_space()
        if self.contestant.is_team or not all(
            agent.transfers for agent in self.contestant.agents(space)
        ):
            raise UsageError(
                "a warm start needs one agent that learns from other tasks, got "
                f"{self.contestant.name!r}"
            )

        for job in self.sources():
            # With noise, a repeat of a network is another evaluation. A problem without a table has
            # size 0.
            if not job.problem.noise and 0 < job.problem.size < job.budget:
                raise UsageError(
                    f"a source of {job.budget} evaluations must be at most the "
                    f"{job.problem.size:,} networks of "
                    f"{job.problem.label}: divide the sizes of all sources with --shrink"
                )

    @property
    def tasks(self) -> list[str]:
        """The tasks of the targets, each once."""
        return list(dict.fromkeys(scenario.target for scenario in self.scenarios))

    def sources(self) -> list[StudyJob]:
        """Return the source studies with unaltered values, each once."""
        designs = {
            replace(design, altered=""): None
            for scenario in self.scenarios
            for design in scenario.sources
        }
        return [self._source(design, seed) for seed in range(self.seeds) for design in designs]

    def alterations(self) -> Iterator[tuple[StudyJob, StudyJob, str]]:
        """Yield each source study with altered values once, the study that it repeats, and the
        alteration.
        """
        designs = {
            design: None
            for scenario in self.scenarios
            for design in scenario.sources
            if design.altered
        }
        for seed in range(self.seeds):
            for design in designs:
                yield (
                    self._source(design, seed),
                    self._source(replace(design, altered=""), seed),
                    design.altered,
                )

    def cold(self, task: str) -> list[StudyJob]:
        """Return the studies of a task without sources, by seed."""
        return [self._target(task, seed) for seed in range(self.seeds)]

    def repeated(self, task: str, number: int) -> list[StudyJob]:
        """Return the controls of a number, from 1 on, of the cold starts of a task, by seed."""
        return [replace(job, seed=number * SEEDS_APART + job.seed) for job in self.cold(task)]

    def control_pairs(self) -> Iterator[tuple[StudyJob, StudyJob]]:
        """Yield each control, and the cold start that it repeats."""
        for task in self.tasks:
            for number in range(1, self.controls + 1):
                yield from zip(self.repeated(task, number), self.cold(task), strict=True)

    def warm(self, scenario: Scenario) -> list[StudyJob]:
        """Return the studies of a scenario, by seed."""
        return [
            replace(
                self._target(scenario.target, seed),
                warm=scenario.name,
                sources=tuple(self._source(design, seed).study.name for design in scenario.sources),
            )
            for seed in range(self.seeds)
        ]

    def targets(self) -> list[StudyJob]:
        """Return all studies of the targets seed by seed: an interrupted run has compared all on
        the same seeds.
        """
        columns = [*map(self.cold, self.tasks), *map(self.warm, self.scenarios)]
        return [job for of_seed in zip(*columns, strict=True) for job in of_seed]

    def _target(self, task: str, seed: int) -> StudyJob:
        problem = self.problem(task)
        return StudyJob(
            self.contestant, problem, seed, self.budget, 1, 0, self.run, until_best=True
        )

    def _source(self, design: SourceDesign, seed: int) -> StudyJob:
        problem = self.problem(design.task)
        if design.altered:
            task = f"{problem.task}-{design.altered}"
            problem = replace(problem, task=task, label=f"{problem.label}-{design.altered}")

        budget = max(design.budget // self.shrink, 1)
        searcher = contestant(design.searcher) if design.searcher else self.contestant
        starts = budget if design.searcher == STARTER else 0
        # Another seed than the target's, so that source and target have different initial networks.
        # Sources of one agent and task that differ in size are different studies.
        return StudyJob(
            searcher, problem, 1000 + seed, budget, 1, starts, f"{self.run}/source-{budget}"
        )


def alter(archive: Archive, plan: TransferPlan) -> None:
    """Store the sources with altered values, except for existing ones."""
    for job, plain, how in plan.alterations():
        study = open_study(archive, job)
        if archive.studies.snapshot(study.name).proposals:
            continue

        seen = archive.studies.evaluations(plain.study.name)
        values = np.array([one.value for one in seen])
        values = (
            -values if how == "reversed" else np.random.default_rng(job.seed).permutation(values)
        )
        suggestions = [Suggestion(one.architecture) for one in seen]
        results = [Result(float(value), {job.problem.objective: float(value)}) for value in values]
        agent = agents.get(STARTER, job.problem.search_space())
        archive.proposals.create(
            study.name,
            register(archive, agent),
            suggestions,
            outcomes=results,
            after=0,
            unique=False,
        )


def copy_starts(archive: Archive, plan: TransferPlan) -> None:
    """Store the first networks of the cold starts in their controls, except for controls that have
    begun.
    """
    for control, cold in plan.control_pairs():
        study = open_study(archive, control)
        if archive.studies.snapshot(study.name).proposals:
            continue

        seen = archive.studies.evaluations(cold.study.name, curves=False)[:FIRST]
        # Only imported evaluations have no number.
        numbered = [(one.architecture, one.number) for one in seen if one.number is not None]
        suggestions = [Suggestion(architecture) for architecture, _ in numbered]
        results = [result_of(cold, architecture, number) for architecture, number in numbered]
        starter = register(archive, agents.get(STARTER, cold.problem.search_space()))
        archive.proposals.create(
            study.name, starter, suggestions, outcomes=results, after=0, unique=False
        )
