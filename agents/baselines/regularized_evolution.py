"""Regularized evolution: the oldest network leaves (Real et al., 2019, Algorithm 1).

    symbol   meaning                                                BANANAS   NAS-Bench-101
    P        networks in the population                             30        50
    S        networks in a tournament, drawn with replacement       10        10

A network with one lucky evaluation leaves the population by age; only traits that score well
repeatedly, in its descendants, remain. BANANAS' text removes the worst; its code, like
NAS-Bench-101's, removes the oldest.
"""

from __future__ import annotations

from typing import final

import numpy as np

from archive.agents.base import (
    Agent,
    AgentInfo,
    History,
    Observation,
    Suggestion,
    check_count,
    draw_new,
    first_of_pool,
    keys_of,
    members_among,
)
from archive.agents.baselines.random_search import samples
from archive.spaces.base import Space
from archive.values import require_at_least


@final
class RegularizedEvolution(Agent):
    """Mutations of the winner of a tournament among the last P evaluated networks.

    The population is the last P finished evaluations of the history, by any agent. Before
    `n_initial` evaluations, suggestions are the space's initial pool, then random networks.

    Args:
        space: The search space.
        population: P, BANANAS' by default; 50 in NAS-Bench-101.
        tournament: S.
        n_initial: Evaluations before the first tournament, ten in BANANAS' code, P in Algorithm 1.
    """

    kind = "regularized-evolution"
    info = AgentInfo(
        summary="tournaments in a population from which the oldest is removed",
        paper="Real et al., 2019; settings of BANANAS and NAS-Bench-101",
        cost="milliseconds",
        when="hundreds of cheap, noisy evaluations, many at once",
    )
    joint = True

    def __init__(
        self, space: Space, population: int = 30, tournament: int = 10, n_initial: int = 10
    ) -> None:
        """Check and keep the settings."""
        super().__init__(space)
        require_at_least(1, population=population, tournament=tournament)
        require_at_least(0, n_initial=n_initial)
        self.population = population
        self.tournament = tournament
        self.n_initial = n_initial

    def propose(self, history: History, n: int, rng: np.random.Generator) -> list[Suggestion]:
        """See `Agent.propose`."""
        check_count(n)
        suggestions = first_of_pool(self.space, history, self.n_initial, n, rng)
        taken = {*history.known, *keys_of(suggestions)}
        members = members_among(self.space, history.usable)
        alive = members[-self.population :]
        issued = len(history.usable) + len(history.pending) + len(suggestions)
        if alive:
            missing = max(self.n_initial - issued, 0)
            random = samples(self.space, min(missing, n - len(suggestions)), taken, rng)
            suggestions += random
            taken.update(keys_of(random))
            suggestions += draw_new(lambda: self._child(alive, rng), n - len(suggestions), taken)
            taken.update(keys_of(suggestions))

        # No evaluation is finished, or every mutation of the population is known.
        return [*suggestions, *samples(self.space, n - len(suggestions), taken, rng)]

    def _child(self, alive: list[Observation], rng: np.random.Generator) -> Suggestion:
        entrants = [alive[index] for index in rng.integers(len(alive), size=self.tournament)]
        parent = max(entrants, key=lambda observation: observation.score).architecture
        mutation = self.space.mutate(parent, rng)
        return Suggestion(mutation.child, parent=parent, operations=mutation.operations)
