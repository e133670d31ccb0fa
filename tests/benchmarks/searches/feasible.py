"""Evaluations until the best network of a table that meets constraints.

A bound on a known cost restricts the space. A measured quantity is learnt from the results. A
search that does not find the best network counts as its budget. A network without a value in the
table is never the best one.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from archive.agents.base import Agent, History, Observation
from archive.agents.constraints.slacks import StudyConstraints, adapt
from archive.architecture.graph import Architecture
from archive.constraints import Constraint, parse
from archive.constraints import check as check_constraints
from archive.errors import UnknownNameError, UsageError
from archive.searches.comparison.plan import Contestant
from archive.spaces.constrained import constrain
from archive.store.records import Result
from tests.benchmarks.searches.costed_table import CostedTable, evaluations


@dataclass(frozen=True)
class FeasibleRow:
    """Searches of one contestant.

    Attributes:
        agent: The contestant.
        budget: Evaluations of a search that does not find the best network.
        queries: Evaluations until the best network of each seed; None where it was not found.
        infeasible: Results that did not meet the constraints, mean over the seeds.
        seconds: Processor time of a search, mean over the seeds.
    """

    agent: str
    budget: int
    queries: list[int | None]
    infeasible: float
    seconds: float

    @property
    def median(self) -> float:
        """Median of the evaluations, where a search that found nothing counts as the budget."""
        return statistics.median(self.budget if count is None else count for count in self.queries)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {**asdict(self), "median": self.median}


class FeasibleComparison:
    """Searches of a table under constraints.

    Args:
        table: The table.
        constraints: Texts `NAME<=NUMBER`, or `NAME@SHARE`: an upper bound that this share of the
            networks with a finite cost meets.
        measured: Names of quantities that agents learn from the results.

    Raises:
        UnknownNameError: The table has no such quantity.
        UsageError: A text is no constraint, or no study can have these constraints.
    """

    def __init__(
        self, table: CostedTable, constraints: Sequence[str], measured: Collection[str] = ()
    ) -> None:
        """Read the constraints."""
        self.table = table
        limits = tuple(self._limit(text) for text in constraints)
        check_constraints(limits)
        for name in [*(one.name for one in limits), *measured]:
            if name not in table.costs:
                raise UnknownNameError("cost", name, tuple(table.costs))

        known = {name: cost for name, cost in table.costs.items() if name not in measured}
        self.constraints = StudyConstraints(limits, known)

    @cached_property
    def feasible(self) -> int:
        """Number of networks that meet the constraints."""
        return len(self._members)

    @cached_property
    def best(self) -> frozenset[str]:
        """Functional keys of the best networks that meet the constraints."""
        scores = self.table.scores(self._members)
        known = scores[np.isfinite(scores)]
        if not known.size:
            limits = " and ".join(map(str, self.constraints.constraints))
            which = "that meets the constraints has a value" if self._members else f"meets {limits}"
            raise UsageError(f"no network of {self.table.problem.label} {which}")

        best = np.flatnonzero(scores == known.max()).tolist()
        return frozenset(self._members[at].functional_key for at in best)

    @cached_property
    def _members(self) -> Sequence[Architecture]:
        return (
            constrain(self.table.space, self.constraints.constraints, self.table.costs).members()
            or ()
        )

    def row(self, contestant: Contestant, seeds: int, budget: int) -> FeasibleRow:
        """Search with each seed until the best network is found.

        Raises:
            UsageError: No network with a value meets the constraints.
        """
        best = self.best
        space = constrain(self.table.space, self.constraints.constraints, self.constraints.known)
        agents = contestant.agents(space)
        begin = time.process_time()
        searches = [self._search(agents, best, seed, budget) for seed in range(seeds)]
        seconds = (time.process_time() - begin) / seeds
        queries = [count for count, _ in searches]
        infeasible = [wrong for _, wrong in searches]
        return FeasibleRow(contestant.name, budget, queries, statistics.mean(infeasible), seconds)

    def _search(
        self, agents: Sequence[Agent], best: Collection[str], seed: int, budget: int
    ) -> tuple[int | None, int]:
        """Return the evaluations until one of the best networks, and how many did not meet the
        constraints.
        """
        constraints = self.constraints
        wrong = 0

        def history(agent: Agent, past: tuple[Observation, ...]) -> History:
            return adapt(agent, History(past, constraints=constraints))

        for seen in evaluations(agents, self.table.problem, seed, budget, history, self._measured):
            wrong += int(not constraints.met(seen[-1:])[0])
            if seen[-1].architecture.functional_key in best:
                return len(seen), wrong

        return None, wrong

    def _measured(self, result: Result) -> tuple[float, ...]:
        metrics = {self.table.problem.objective: result.value, **result.metrics}
        constraints = self.constraints
        return tuple(
            metrics.get(constraints.constraints[at].name, math.nan) for at in constraints.measured
        )

    def _limit(self, text: str) -> Constraint:
        name, separator, share = text.partition("@")
        if not separator:
            return parse(text)

        if name not in self.table.costs:
            raise UnknownNameError("cost", name, tuple(self.table.costs))

        try:
            at = float(share)
        except ValueError:
            at = math.nan

        if not 0.0 < at <= 1.0:
            raise UsageError(f"the share of a bound {name}@SHARE must be in (0, 1], got {share!r}")

        values = self.table.costs[name](self.table.members)
        known = values[np.isfinite(values)]
        if not known.size:
            raise UsageError(
                f"no network of {self.table.problem.label} has a finite {name}, so "
                "a share has no bound"
            )

        return Constraint(name, "<=", float(np.quantile(known, at, method="lower")))
