"""The unknown neighbours of a network: what local search and breadth-first search ask for next."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from archive.agents.base import Suggestion
from archive.architecture.graph import Architecture
from archive.spaces.base import Mutation, Space

# Layers up to which all neighbours are listed: those of a cell take milliseconds, those of a network of 20 layers, of
# which there are a thousand, a second.
_LAYERS = 10
# Draws of one modification before the neighbours of a larger network are listed all the same.
_DRAWS = 40


class Neighbourhood:
    """Neighbours in random order.

    Lists of neighbours are remembered: later calls are faster, and their results the same.

    Args:
        space: What makes the neighbours.
    """

    def __init__(self, space: Space) -> None:
        """Keep the space."""
        self.space = space
        self._listed: dict[Architecture, tuple[Mutation, ...]] = {}

    def all(self, architecture: Architecture) -> tuple[Mutation, ...]:
        """Return every neighbour, in the order of the space."""
        if architecture not in self._listed:
            self._listed[architecture] = tuple(self.space.neighbours(architecture))
        return self._listed[architecture]

    def fresh(
        self, architecture: Architecture, n: int, taken: Collection[str], rng: np.random.Generator
    ) -> list[Suggestion]:
        """Return up to n distinct neighbours whose functional key is not taken.

        Of a small network all neighbours are as likely. Those of a large one are drawn by the space's own random
        mutation, and listed only once it finds no new ones.

        Args:
            architecture: A member of the space.
            n: How many.
            taken: Functional keys.
            rng: Source of randomness.

        Returns:
            n of them; fewer only where there are no more.
        """
        found: dict[str, Suggestion] = {}
        if len(architecture.layers) > _LAYERS and architecture not in self._listed:
            for _ in range(_DRAWS + 4 * n):
                _add(found, self.space.mutate(architecture, rng), architecture, taken)
                if len(found) == n:
                    return list(found.values())
        every = self.all(architecture)
        for at in rng.permutation(len(every)):
            if len(found) >= n:
                break
            _add(found, every[at], architecture, taken)
        return list(found.values())


def _add(found: dict[str, Suggestion], mutation: Mutation, parent: Architecture, taken: Collection[str]) -> None:
    key = mutation.child.functional_key
    # What a table draws for want of a neighbour is none.
    if len(mutation.operations) == 1 and mutation.operations != ("draw",) and key not in taken:
        found.setdefault(key, Suggestion(mutation.child, parent=parent, operations=mutation.operations))
