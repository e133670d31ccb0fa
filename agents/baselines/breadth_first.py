"""Breadth-first search, the baseline without scores of the network-morphism paper.

In the paper it replaces Bayesian optimisation over the same tree of morphisms: "it always searches
a large number of neighbors first", whatever their scores.
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
    first_of_pool,
    keys_of,
)
from archive.agents.baselines.local_search import Neighbourhood
from archive.agents.baselines.random_search import samples
from archive.architecture.networks import architectures_of
from archive.spaces.base import Space
from archive.values import require_at_least


@final
class BreadthFirst(Agent):
    """Expansion of networks in the order of the history, independent of scores.

    The queue is the history: finished evaluations, then pending proposals. The first network with
    an unknown neighbour is expanded, its neighbours in random order. Where all neighbours are
    known, random networks follow.

    Args:
        space: The search space.
        n_initial: Number of roots, networks of the initial pool; the paper has one.
    """

    kind = "bfs"
    info = AgentInfo(
        summary="breadth-first search over all modifications, blind to scores",
        paper="Jin et al., 2019 (Auto-Keras)",
        cost="milliseconds",
        when="baseline of morphism search",
    )

    def __init__(self, space: Space, n_initial: int = 10) -> None:
        """Check and keep the settings."""
        super().__init__(space)
        require_at_least(0, n_initial=n_initial)
        self.n_initial = n_initial
        # A cache of neighbours: it makes later calls faster and changes none of their results.
        self._neighbourhood = Neighbourhood(space)

    def propose(self, history: History, n: int, rng: np.random.Generator) -> list[Suggestion]:
        """See `Agent.propose`."""
        check_count(n)
        suggestions = first_of_pool(self.space, history, self.n_initial, n, rng)
        queue = [
            *architectures_of(history.usable),
            *architectures_of(history.pending),
            *architectures_of(suggestions),
        ]
        taken = {*history.known, *keys_of(suggestions)}
        expanded: set[str] = set()
        # New neighbours extend the queue, so that a large batch also expands its own first members.
        for node in queue:
            if len(suggestions) == n:
                break

            if node.functional_key in expanded or not self.space.contains(node):
                continue

            expanded.add(node.functional_key)
            neighbours = self._neighbourhood.fresh(node, n - len(suggestions), taken, rng)
            suggestions += neighbours
            taken.update(keys_of(neighbours))
            queue += architectures_of(neighbours)

        return [*suggestions, *samples(self.space, n - len(suggestions), taken, rng)]
