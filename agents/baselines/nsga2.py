"""NSGA-II: evolution by Pareto rank and crowding distance (Deb et al., 2002).

| symbol | meaning                                                                                   |
|--------|-------------------------------------------------------------------------------------------|
| N      | networks in the population                                                                |
| rank   | number of the nondominated front of a network, from 0: those without it, the next one, …  |
| d      | crowding distance: mean side of the box between the neighbours of a network on its front, |
|        | in units of the range of each objective; infinite at the ends of a front (section III-B)  |

The population is the N best networks of all evaluated ones by (rank, -d), as after the paper's
elitist replacement (section III-C) with one child a generation. A parent wins a binary tournament
by the same order. Networks that do not meet the constraints of the study come after all others, by
their violation (section VI). Networks have no common crossover, so that a child is a mutation of
its parent.
"""

from __future__ import annotations

from typing import final

import numpy as np

from archive.agents.base import (
    Agent,
    AgentInfo,
    History,
    Suggestion,
    check_count,
    draw_new,
    first_of_pool,
    keys_of,
)
from archive.agents.baselines.random_search import samples
from archive.agents.constraints.slacks import penalise
from archive.agents.objectives.goals import points
from archive.agents.surrogates.base import Array
from archive.architecture.graph import Architecture
from archive.objectives import pareto
from archive.spaces.base import Space
from archive.values import require_at_least


@final
class Nsga2(Agent):
    """Mutations of the winners of binary tournaments by Pareto rank and crowding distance.

    With one objective the rank orders the population by score.

    Args:
        space: The search space.
        population: N.
        n_initial: Evaluations before the first tournament, of the space's initial pool and then at
            random.

    Raises:
        UsageError: A setting is out of range.
    """

    kind = "nsga2"
    info = AgentInfo(
        summary="evolution by Pareto rank and crowding distance",
        paper="Deb et al., 2002",
        cost="milliseconds",
        when="several objectives: baseline; cheap evaluations, many at once",
    )
    several_objectives = True
    uses_constraints = True

    def __init__(self, space: Space, population: int = 20, n_initial: int = 10) -> None:
        """Check and keep the settings."""
        super().__init__(space)
        require_at_least(1, population=population)
        require_at_least(0, n_initial=n_initial)
        self.population = population
        self.n_initial = n_initial

    def propose(self, history: History, n: int, rng: np.random.Generator) -> list[Suggestion]:
        """See `Agent.propose`."""
        check_count(n)
        suggestions = first_of_pool(self.space, history, self.n_initial, n, rng)
        taken = {*history.known, *keys_of(suggestions)}
        alive = self._population(history)
        if alive:
            issued = len(history.usable) + len(history.pending) + len(suggestions)
            missing = min(max(self.n_initial - issued, 0), n - len(suggestions))
            suggestions += samples(self.space, missing, taken, rng)
            taken |= keys_of(suggestions)
            suggestions += draw_new(lambda: self._child(alive, rng), n - len(suggestions), taken)
            taken |= keys_of(suggestions)

        return [*suggestions, *samples(self.space, n - len(suggestions), taken, rng)]

    def _population(self, history: History) -> list[Architecture]:
        """Return the population, the best first."""
        observations, scores = points(history)
        if history.constraints is not None:
            scores = penalise(scores, history.constraints.violations(observations))

        ordered = (observations[row].architecture for row in order_by_crowding(scores))
        return list(filter(self.space.contains, ordered))[: self.population]

    def _child(self, alive: list[Architecture], rng: np.random.Generator) -> Suggestion:
        # The population is in the order of the tournament: the smaller position wins.
        parent = alive[int(rng.integers(len(alive), size=2).min())]
        mutation = self.space.mutate(parent, rng)
        return Suggestion(mutation.child, parent=parent, operations=mutation.operations)


def order_by_crowding(scores: Array) -> list[int]:
    """Return the positions of n networks by rank, then by crowding distance, the best first.

    Args:
        scores: (n, M) float64, larger is better, finite.
    """
    if not len(scores):
        return []

    ranks = pareto.ranks(scores)
    distances = np.zeros(len(scores))
    for rank in np.unique(ranks):
        front = np.flatnonzero(ranks == rank)
        distances[front] = crowding_distances(scores[front])

    order: list[int] = np.lexsort((-distances, ranks)).tolist()
    return order


def crowding_distances(scores: Array) -> Array:
    """Return d of the networks of one front: (n, M) to (n,) float64."""
    n, objectives = scores.shape
    distances = np.zeros(n)
    for objective in range(objectives):
        order = np.argsort(scores[:, objective], kind="stable")
        column = scores[order, objective]
        spread = column[-1] - column[0]
        distances[order[[0, -1]]] = np.inf
        if spread > 0.0 and n > 2:
            distances[order[1:-1]] += (column[2:] - column[:-2]) / (spread * objectives)

    return distances
