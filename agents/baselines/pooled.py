"""Base of agents that begin with networks of the space's initial pool."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

import numpy as np

from archive.agents.base import Agent, History, Suggestion, check_count, first_of_pool
from archive.architecture.graph import Architecture
from archive.argument_checks import require_at_least
from archive.spaces.base import Space


class Pooled(Agent):
    """An agent with networks of the initial pool before its own suggestions.

    Args:
        space: The search space.
        n_initial: Number of networks of the space's initial pool that come first.
    """

    def __init__(self, space: Space, n_initial: int = 10) -> None:
        """Check and keep the settings."""
        super().__init__(space)
        require_at_least(0, n_initial=n_initial)
        self.n_initial = n_initial

    def propose(self, history: History, n: int, rng: np.random.Generator) -> list[Suggestion]:
        """See `Agent.propose`."""
        check_count(n)
        first = first_of_pool(self.space, history, self.n_initial, n, rng)
        if len(first) == n:
            return first

        taken = {**history.known, **{s.architecture.functional_key: s.architecture for s in first}}
        return [*first, *self.beyond(history, n - len(first), taken, rng)]

    @abstractmethod
    def beyond(
        self, history: History, n: int, taken: Mapping[str, Architecture], rng: np.random.Generator
    ) -> list[Suggestion]:
        """Return suggestions beyond the initial pool.

        Args:
            history: As in `propose`.
            n: Number of suggestions, at least 1.
            taken: Known networks and suggestions of the pool by `functional_key`, which must not be
                repeated.
            rng: The only source of randomness.
        """
