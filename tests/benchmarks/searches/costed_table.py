"""A table that answers searches in this process, without an archive.

Agents see the same histories as in `archive search` with one proposal at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from archive.agents.base import Agent, History, Observation
from archive.agents.provenance import generator
from archive.agents.surrogates.base import Array
from archive.architecture.graph import Architecture
from archive.constraints import KnownCosts
from archive.errors import TrainingError
from archive.objectives import sign
from archive.searches.comparison.plan import Problem
from archive.spaces.base import Space
from archive.store.records import Result


@dataclass(frozen=True)
class CostedTable:
    """A task with known results and known costs.

    Attributes:
        problem: The task.
        space: Its space.
        costs: Known costs of the members.
    """

    problem: Problem
    space: Space
    costs: KnownCosts

    @property
    def members(self) -> Sequence[Architecture]:
        """All networks of the table."""
        return self.space.members() or ()

    def scores(self, networks: Sequence[Architecture]) -> Array:
        """Return the noise-free values of networks, larger is better, NaN without one:

        (n,) float64.
        """
        truth = self.problem.truth
        assert truth is not None
        values = np.array([truth(one.functional_key)[0] for one in networks], np.float64)
        return sign(self.problem.direction) * values


def evaluations(
    agents: Sequence[Agent],
    problem: Problem,
    seed: int,
    budget: int,
    history: Callable[[Agent, tuple[Observation, ...]], History],
    measured: Callable[[Result], tuple[float, ...]] = lambda result: (),
) -> Iterator[list[Observation]]:
    """Yield all observations of a search after each evaluation, up to a budget.

    A network of which the table has no value is a failed evaluation: it does not count towards the
    budget.

    Args:
        agents: One agent, or several that take turns.
        problem: The task that answers.
        seed: Seed of the search.
        budget: Evaluations of the search; it ends earlier where an agent has no further suggestion.
        history: What an agent sees of the observations.
        measured: Measured quantities of a result, for `Observation.measured`.
    """
    seen: list[Observation] = []
    failed: list[Architecture] = []
    while len(seen) < budget:
        agent = agents[len(seen) % len(agents)]
        past = replace(history(agent, tuple(seen)), failed=tuple(failed))
        suggestions = agent.propose(past, 1, generator(seed, past))
        if not suggestions:
            return

        network = suggestions[0].architecture
        name = f"search#{len(seen):05d}"
        try:
            # With noise, the answer depends on the name: searches of two seeds have different
            # noise.
            result = problem.evaluate(network, f"seed{seed}/{name}")
        except TrainingError:
            failed.append(network)
            continue

        score = sign(problem.direction) * result.value
        seen.append(Observation(network, score, name, seed=result.seed, measured=measured(result)))
        yield seen
