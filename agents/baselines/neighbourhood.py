"""Unknown neighbours of a network, the suggestions of local search and breadth-first search."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection

import numpy as np

from archive.agents.base import Suggestion
from archive.architecture.graph import Architecture
from archive.spaces.base import Mutation, Space

_LAYERS = 10
"""Largest number of layers for which all neighbours are listed: those of a cell take milliseconds,
the thousand of a network of 20 layers a second."""
_DRAWS = 40
"""Number of draws without a new network after which the neighbours of a larger network are listed,
too."""
_CACHED = 256
"""Number of cached lists. One of a cell has about thirty networks and takes 50 kB."""


class Neighbourhood:
    """Neighbours in random order.

    Lists of neighbours are cached, which changes no result.

    Args:
        space: The search space, which defines the neighbours.
    """

    def __init__(self, space: Space) -> None:
        """Keep the space."""
        self.space = space
        self._listed: OrderedDict[Architecture, tuple[Mutation, ...]] = OrderedDict()

    def all(self, architecture: Architecture) -> tuple[Mutation, ...]:
        """Return every neighbour, in the order of the space."""
        listed = self._listed.pop(architecture, None) or tuple(self.space.neighbours(architecture))
        self._listed[architecture] = listed
        while len(self._listed) > _CACHED:
            self._listed.popitem(last=False)

        return listed

    def fresh(
        self, architecture: Architecture, n: int, taken: Collection[str], rng: np.random.Generator
    ) -> list[Suggestion]:
        """Return up to n distinct neighbours whose functional key is not taken.

        All neighbours of a small network are equally likely. Those of a large one are drawn by the
        space's random mutation, and listed only when it finds no new ones.

        Args:
            architecture: A member of the space.
            n: Number of neighbours.
            taken: Functional keys to leave out.
            rng: Source of randomness.

        Returns:
            n neighbours, or all that exist if they are fewer.
        """
        suggestions: dict[str, Suggestion] = {}
        if len(architecture.layers) > _LAYERS and architecture not in self._listed:
            for _ in range(_DRAWS + 4 * n):
                _add(suggestions, self.space.mutate(architecture, rng), architecture, taken)
                if len(suggestions) == n:
                    return list(suggestions.values())

        every = self.all(architecture)
        for at in rng.permutation(len(every)):
            if len(suggestions) >= n:
                break

            _add(suggestions, every[at], architecture, taken)

        return list(suggestions.values())


def _add(
    suggestions: dict[str, Suggestion],
    mutation: Mutation,
    parent: Architecture,
    taken: Collection[str],
) -> None:
    key = mutation.child.functional_key
    # In a tabular space, a network without neighbours mutates to a random network ("draw"), which
    # is no neighbour.
    if len(mutation.operations) == 1 and mutation.operations != ("draw",) and key not in taken:
        suggestions.setdefault(
            key, Suggestion(mutation.child, parent=parent, operations=mutation.operations)
        )
