"""The two random baselines: one samples the space, the other wanders as NASBOT does but chooses blindly."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from archive.agents.base import Agent, History, Suggestion, check_count, draw_new, first_of_pool
from archive.agents.candidates import Ranked, best_new, evaluations_at, evolve
from archive.agents.surrogates.base import Array
from archive.errors import UsageError
from archive.graph import Architecture
from archive.spaces.base import Space


class RandomSearch(Agent):
    """Samples of the space, independent of what is known of it."""

    kind = "random"

    def propose(self, history: History, n: int, rng: np.random.Generator) -> list[Suggestion]:
        """See `Agent.propose`."""
        check_count(n)
        return samples(self.space, n, history.known, rng)


class Rand(Agent):
    """NASBOT's RAND (appendix C.1): its evolutionary optimiser, fed with Unif(0, 1) in place of the acquisition.

    It may reach every network that NASBOT may reach, by the same schedule, and picks among them at random.

    Args:
        space: Where to search.
        n_initial: How many networks of the space's initial pool come first.
    """

    kind = "rand"

    def __init__(self, space: Space, n_initial: int = 10) -> None:
        """Check and keep the settings."""
        super().__init__(space)
        if n_initial < 0:
            raise UsageError(f"n_initial must be >= 0, got {n_initial}")
        self.n_initial = n_initial

    def propose(self, history: History, n: int, rng: np.random.Generator) -> list[Suggestion]:
        """See `Agent.propose`."""
        check_count(n)
        suggestions = first_of_pool(self.space, history, self.n_initial, n)
        taken = {**history.known, **{s.architecture.functional_key: s.architecture for s in suggestions}}
        while len(suggestions) < n:
            found = best_new(wander(self.space, list(taken.values()), rng), taken)
            if found is None:
                # Every line of mutations ends in known networks; what is left, if anything, lies far from them.
                return [*suggestions, *samples(self.space, n - len(suggestions), taken, rng)]
            child = found.candidate
            suggestions.append(Suggestion(child.architecture, parent=child.parent, operations=child.operations))
            taken[child.architecture.functional_key] = child.architecture
        return suggestions


def samples(space: Space, n: int, taken: Collection[str], rng: np.random.Generator) -> list[Suggestion]:
    """Return n networks drawn from the space, new and distinct; fewer where the space is exhausted."""
    return draw_new(lambda: Suggestion(space.sample(rng)), n, taken)


def wander(space: Space, known: Sequence[Architecture], rng: np.random.Generator) -> list[Ranked]:
    """Return networks that NASBOT's schedule reaches from the pool and what is known, in random order."""

    def blind(architectures: Sequence[Architecture]) -> Array:
        return rng.uniform(size=len(architectures))

    start = [*space.initial_pool(), *filter(space.contains, known)]
    return evolve(space, start, blind, evaluations_at(len(known)), rng)
