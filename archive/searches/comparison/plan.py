"""Plan of a comparison: contestants on problems, one study of the archive for each pair and seed.

A contestant is an agent with settings, or a team of agents that take turns on one study:

    tw                                  an agent with its defaults
    tw:preset=paper,n_initial=5         with settings
    tw+bananas:kappa=1.0+local-search   a team: each agent sees all evaluations of the study
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from archive import spaces
from archive.agents.base import Agent
from archive.agents.registry import ConfiguredAgent, configured
from archive.architecture.graph import Architecture
from archive.errors import UsageError
from archive.spaces.base import Space
from archive.store.records import Direction, Result, Study
from archive.values import require_at_least

STARTER = "random"
"""The agent that draws the random starts of a study."""


PEERS = {"optuna-tpe": "tpe", "optuna-gp": "gp-optuna"}
"""Aliases of agents: the names of their libraries."""


@dataclass(frozen=True)
class Contestant:
    """One or several agents that search a study.

    Attributes:
        name: The requested name, with the settings.
        members: One agent, or the agents of a team, in the order of their turns.
    """

    name: str
    members: tuple[ConfiguredAgent, ...]

    @property
    def kind(self) -> str:
        """Names of the agents in the registry, joined with a plus."""
        return "+".join(member.kind for member in self.members)

    @property
    def is_team(self) -> bool:
        """Whether there are several agents."""
        return len(self.members) > 1

    def agents(self, space: Space) -> tuple[Agent, ...]:
        """Return the agents, to search a space."""
        return tuple(member.make(space) for member in self.members)


def contestant(text: str) -> Contestant:
    """Return the contestant of a text: `AGENT`, `AGENT:NAME=VALUE,NAME=VALUE` or `AGENT+AGENT`.

    A value that is not JSON is a string. Equal settings in another order are the same contestant.

    Raises:
        UsageError: A setting is not written `NAME=VALUE`.
        UnknownNameError: There is no such agent.
    """
    # A plus between two agents is followed by a name; others belong to a value, such as 1e+3.
    names, members = zip(*map(_member, re.split(r"\+(?=[a-z])", text)), strict=True)
    return Contestant("+".join(names), members)


def _member(text: str) -> tuple[str, ConfiguredAgent]:
    name, separator, rest = text.partition(":")
    agent = configured(PEERS.get(name, name) + separator + rest)
    return agent.name.replace(agent.kind, name, 1), agent


@dataclass(frozen=True)
class Problem:
    """A task with known results; picklable.

    Attributes:
        label: Short name.
        task: Name of the task, as studies record it.
        protocol: Name of the protocol.
        space: Name of the space.
        space_config: The space's settings.
        objective: Name of the value.
        direction: Which values are better.
        best: Best value of the table; NaN without a table.
        size: Number of networks with a value; 0 without a table.
        points: Factor of a difference of values: 100 converts fractions to accuracy points.
        unit: Unit of the product.
        answer: Evaluation of a network; raises TrainingError where it has no value. With noise, it
            takes the identity of the query as `query`.
        noise: Standard deviation of the noise of an evaluation, in the unit of the values; 0 for
            none.
        truth: Noise-free value and test accuracy (NaN if unknown) of a network by its functional
            key; None if unknown.
    """

    label: str
    task: str
    protocol: str
    space: str
    space_config: Mapping[str, Any]
    objective: str
    direction: Direction
    best: float
    size: int
    points: float
    unit: str
    answer: Callable[..., Result]
    noise: float = 0.0
    truth: Callable[[str], tuple[float, float]] | None = None

    def evaluate(self, architecture: Architecture, query: str) -> Result:
        """Return the result of a query; with noise, another one for each query.

        Raises:
            TrainingError: The network has no value.
        """
        return self.answer(architecture, query=query) if self.noise else self.answer(architecture)

    def search_space(self) -> Space:
        """Return the space."""
        return spaces.get(self.space, **self.space_config)

    def regret(self, value: float) -> float:
        """Return the difference of a value from the best one, in units of `unit`."""
        return self.points * (
            self.best - value if self.direction == "maximise" else value - self.best
        )


def table_problem(name: str) -> Problem:
    """Return a tabular task as the problem of a comparison.

    Raises:
        UsageError: The task is not tabular, or its column has no values.
    """
    from archive.trainer.tasks import registry
    from archive.trainer.tasks.tabular import TabularTask

    task = registry.get(name)
    if not isinstance(task, TabularTask):
        raise UsageError(f"a comparison needs a tabular task, got {name!r}")

    reading = task.protocol()
    values = task.scale * task.table.column(reading.column)
    finite = values[np.isfinite(values)]
    if not finite.size:
        raise UsageError(f"the column {reading.column!r} of {name!r} has no values")

    space = task.search_space()
    is_accuracy = task.metric == "accuracy"
    # A user's table may have its accuracies in percent.
    is_fraction = is_accuracy and bool((abs(finite) <= 1.0).all())
    return Problem(
        label=task.label,
        task=task.name,
        protocol=reading.name,
        space=space.name,
        space_config=space.config,
        objective=task.objective,
        direction=task.direction,
        best=float(finite.max() if task.direction == "maximise" else finite.min()),
        size=int(finite.size),
        points=100.0 if is_fraction else 1.0,
        unit="accuracy points" if is_accuracy else f"in {reading.column}",
        answer=partial(task.answer, protocol=reading.name),
        noise=task.noise,
        truth=partial(task.truth, protocol=reading.name),
    )


@dataclass(frozen=True)
class StudyJob:
    """One study of a comparison: a contestant on a problem, with one seed.

    Attributes:
        contestant: The searching agents.
        problem: The task with its known results.
        seed: Seed of the study: contestants of one seed have the same random starts.
        budget: Total number of evaluations, the starts included.
        batch: Proposals of one call, made with the results of all earlier ones; agents of a team
            take turns.
        starts: Number of random networks that come first; 0 for the agent's own initial design.
        run: Name of the run; a new name starts new studies.
        until_best: Whether the search ends with the best network of the table, which no later one
            can exceed.
        warm: Kind of the warm-start sources, as a part of the study's name; empty for a cold start.
        sources: Names of the source studies, which must exist before the search.
    """

    contestant: Contestant
    problem: Problem
    seed: int
    budget: int
    batch: int
    starts: int
    run: str
    until_best: bool = False
    warm: str = ""
    sources: tuple[str, ...] = ()

    def is_finished(self, values: Sequence[float]) -> bool:
        """Return whether a study with evaluations of these values is complete."""
        if len(values) >= self.budget:
            return True

        # With noise, a value above the best one says nothing.
        return (
            self.until_best
            and not self.problem.noise
            and any(self.problem.regret(value) <= 0 for value in values)
        )

    def turn(self, total: int) -> int:
        """Return the position of the team's next agent after so many proposals."""
        # It depends on the archive alone, so that a continued search calls the same agent.
        return max(total - self.starts, 0) // self.batch % len(self.contestant.members)

    @property
    def study(self) -> Study:
        """The record of the new study."""
        problem = self.problem
        where = f"{problem.label}@{problem.protocol}"
        searched = f"{where}/{self.contestant.name}"
        name = f"bench/{self.run}/{searched}/starts{self.starts}/batch{self.batch}/seed{self.seed}"
        return Study(
            name=f"{name}/warm-{self.warm}" if self.warm else name,
            task=problem.task,
            protocol=problem.protocol,
            space=problem.space,
            objective=problem.objective,
            direction=problem.direction,
            budget=self.budget,
            config={
                "agent": self.contestant.kind,
                "batch": self.batch,
                "starts": self.starts,
                "run": self.run,
            },
            space_config=problem.space_config,
            seed=self.seed,
        )


@dataclass(frozen=True)
class ComparisonPlan:
    """A whole comparison.

    Attributes:
        contestants: The compared agents and teams.
        problems: The tasks with known results.
        seeds: Number of repetitions, with the seeds 0, 1, …
        budget: Evaluations of a study.
        batch: Proposals of one call of an agent.
        starts: Number of random networks that come first.
        run: Name of the run.
        until_best: Whether a search ends with the best network of the table.

    Raises:
        UsageError: A number is out of range: a budget below the starts or a batch, or above the
            size of a table without noise, where repeats of a network say nothing; more starts than
            a table has networks.
    """

    contestants: Sequence[Contestant]
    problems: Sequence[Problem]
    seeds: int
    budget: int
    batch: int
    starts: int
    run: str
    until_best: bool = False

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name in ("contestants", "problems"):
            if not getattr(self, name):
                raise UsageError(f"a comparison needs {name}, got none")

        require_at_least(1, seeds=self.seeds, budget=self.budget, batch=self.batch)
        require_at_least(0, starts=self.starts)
        if self.budget < self.starts:
            raise UsageError(
                f"the budget must be at least the {self.starts} random starts, got {self.budget}"
            )

        if self.budget < self.batch:
            raise UsageError(
                f"the budget must be at least one batch of {self.batch}, got {self.budget}"
            )

        for problem in self.problems:
            name, most = (
                ("random starts", self.starts) if problem.noise else ("budget", self.budget)
            )
            if problem.size < most:
                raise UsageError(
                    f"the {name} must be at most the {problem.size:,} networks of "
                    f"{problem.label}, got {most}"
                )

    @cached_property
    def jobs(self) -> tuple[StudyJob, ...]:
        """All studies, seed by seed: an interrupted run has compared contestants on equal seeds."""
        return tuple(self._jobs())

    def agents(self) -> Iterator[tuple[Contestant, Problem, Agent]]:
        """Yield every agent of the contestants on each problem.

        Raises:
            UsageError: An agent cannot search a space, or a setting is invalid.
        """
        for problem in self.problems:
            space = problem.search_space()
            for contestant in self.contestants:
                for agent in contestant.agents(space):
                    yield contestant, problem, agent

    def _jobs(self) -> Iterator[StudyJob]:
        for seed in range(self.seeds):
            for problem in self.problems:
                for contestant in self.contestants:
                    numbers = (seed, self.budget, self.batch, self.starts)
                    yield StudyJob(contestant, problem, *numbers, self.run, self.until_best)
