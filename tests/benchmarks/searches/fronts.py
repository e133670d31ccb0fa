"""Hypervolume of searches for several objectives, as a share of that of the whole table.

The first objective is the task's, the others are costs of its table, to minimise. The reference
point is the worst value of each objective in the table. Shares are those of the noise-free values
of the evaluated networks. A network without a finite value of each objective adds nothing to a
hypervolume.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from archive.agents.base import Agent, History
from archive.agents.objectives.goals import Goals
from archive.agents.study_setup import capable
from archive.agents.surrogates.base import Array
from archive.architecture.graph import Architecture
from archive.errors import UnknownNameError, UsageError
from archive.objectives import check as check_objectives
from archive.objectives import pareto
from archive.objectives.pareto import nondominated
from archive.searches.comparison.plan import Contestant
from archive.store.records import Objective
from tests.benchmarks.searches.costed_table import CostedTable, evaluations

QUERIES = (20, 40, 50, 60, 100)
"""Numbers of evaluations that a row reports, as far as the budget reaches."""


@dataclass(frozen=True)
class FrontRow:
    """Shares of one contestant.

    Attributes:
        agent: The contestant.
        shares: Number of evaluations to the share of the hypervolume in [0, 1] of each seed.
        seconds: Processor time of a search, mean over the seeds.
    """

    agent: str
    shares: dict[int, list[float]]
    seconds: float

    def median(self, queries: int) -> float:
        """Return the median share after so many evaluations."""
        return statistics.median(self.shares[queries])

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            **asdict(self),
            "shares": {str(queries): shares for queries, shares in self.shares.items()},
        }


class FrontComparison:
    """Searches of a table for its value and some of its costs.

    Args:
        table: The table.
        costs: Names of the costs.

    Raises:
        UnknownNameError: The table has no such cost.
        UsageError: There are no costs, no study can have these objectives, or the hypervolume of
            the table is 0.
    """

    def __init__(self, table: CostedTable, costs: Sequence[str]) -> None:
        """Name the objectives."""
        for name in costs:
            if name not in table.costs:
                raise UnknownNameError("cost", name, tuple(table.costs))

        if not costs:
            raise UsageError("a front needs one or more costs beside the value, got none")

        problem = table.problem
        objectives = (
            Objective(problem.objective, problem.direction),
            *(Objective(name, "minimise") for name in costs),
        )
        check_objectives(objectives)
        self.table = table
        self.goals = Goals(objectives, table.costs)
        if not len(self.scores) or not self._volume:
            names = ", ".join(each.name for each in objectives)
            raise UsageError(
                f"a share of the hypervolume needs networks that differ in each of {names}; of "
                f"{problem.label}, "
                f"{len(self.scores)} have a value of each, and their hypervolume is 0"
            )

    @cached_property
    def scores(self) -> Array:
        """Scores of all networks with every objective: (n, M) float64."""
        scores = self._scores(self.table.members)
        return scores[np.isfinite(scores).all(axis=1)]

    @property
    def front(self) -> int:
        """Number of networks on the Pareto front of the table."""
        return int(nondominated(self.scores).sum())

    def row(self, contestant: Contestant, seeds: int, budget: int) -> FrontRow:
        """Search with each seed.

        Raises:
            UsageError: An agent does not search for several objectives.
        """
        agents = contestant.agents(self.table.space)
        for agent in agents:
            if not agent.several_objectives:
                raise UsageError(
                    f"the agent {agent.kind} searches for one objective: choose one of {_names()}"
                )

        begin = time.process_time()
        searches = [self._search(agents, seed, budget) for seed in range(seeds)]
        seconds = (time.process_time() - begin) / seeds
        reached = [pareto.history(scores, self._reference) / self._volume for scores in searches]
        counts = sorted({*(count for count in QUERIES if count < budget), budget})
        return FrontRow(
            contestant.name,
            {
                count: [float(share[min(count, len(share)) - 1]) for share in reached]
                for count in counts
            },
            seconds,
        )

    def _search(self, agents: Sequence[Agent], seed: int, budget: int) -> Array:
        """Return the noise-free scores in the order of the evaluations: (budget, M) float64."""
        past = evaluations(
            agents,
            self.table.problem,
            seed,
            budget,
            lambda _, seen: History(seen, goals=self.goals),
        )
        return self._scores([seen[-1].architecture for seen in past])

    def _scores(self, networks: Sequence[Architecture]) -> Array:
        """Return the noise-free scores of networks, NaN or infinite where the table has no value:

        (n, M) float64.
        """
        scores = self.goals.known_scores(networks)
        scores[:, 0] = self.table.scores(networks)
        return scores

    @cached_property
    def _reference(self) -> Array:
        worst: Array = self.scores.min(axis=0)
        return worst

    @cached_property
    def _volume(self) -> float:
        return pareto.hypervolume(self.scores, self._reference)


def _names() -> str:
    return ", ".join(capable())
