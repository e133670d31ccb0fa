"""The evolutionary baseline of NASBOT (appendix C.1): the optimiser of the acquisition, fed with real evaluations."""

from __future__ import annotations

import numpy as np

from archive.agents.base import Agent, History, Suggestion, check_count, draw_new, first_of_pool
from archive.agents.candidates import softmax
from archive.agents.random_search import samples
from archive.agents.surrogates.base import Array
from archive.errors import UsageError
from archive.graph import Architecture
from archive.spaces.base import Space


class Evolution(Agent):
    """Mutations of networks that scored well: pi proportional to exp(score / standard deviation of the scores).

    The paper draws `N_mut = 10` parents a generation from the scores of all generations before. Here a suggestion is
    drawn when it is asked for, from all scores that are known by then: with ten suggestions asked for at once the two
    are the same, with fewer this one knows more.

    Args:
        space: Where to search.
        n_initial: How many networks of the space's initial pool come first.
    """

    kind = "evolution"

    def __init__(self, space: Space, n_initial: int = 10) -> None:
        """Check and keep the settings."""
        super().__init__(space)
        if n_initial < 0:
            raise UsageError(f"n_initial must be >= 0, got {n_initial}")
        self.n_initial = n_initial

    def propose(self, history: History, n: int, rng: np.random.Generator) -> list[Suggestion]:
        """See `Agent.propose`."""
        check_count(n)
        first = first_of_pool(self.space, history, self.n_initial, n)
        if len(first) == n:
            return first
        taken = {*history.known, *(suggestion.architecture.functional_key for suggestion in first)}
        return [*first, *self._offspring(history, n - len(first), taken, rng)]

    def _offspring(self, history: History, n: int, taken: set[str], rng: np.random.Generator) -> list[Suggestion]:
        parents, scores = self._parents(history)
        probabilities = softmax(scores)

        def mutant() -> Suggestion:
            parent = parents[rng.choice(len(parents), p=probabilities)]
            mutation = self.space.mutate(parent, rng)
            return Suggestion(mutation.child, parent=parent, operations=mutation.operations)

        found = draw_new(mutant, n, taken)
        taken = taken | {suggestion.architecture.functional_key for suggestion in found}
        return [*found, *samples(self.space, n - len(found), taken, rng)]

    def _parents(self, history: History) -> tuple[list[Architecture], Array]:
        finished = [seen for seen in history.usable if self.space.contains(seen.architecture)]
        if not finished:
            # Nothing is finished yet, so nothing can be selected: every network of the pool is as good.
            pool = self.space.initial_pool()
            return pool, np.zeros(len(pool))
        return [seen.architecture for seen in finished], np.array([seen.score for seen in finished])
