"""Local search, a strong baseline on small spaces (White et al., 2020; Ottelander et al., 2020).

    symbol   meaning                                                              here
    v_i      current network of the climb                                         `current`
    N(v_i)   all networks one modification away                                   `Neighbourhood`

A climb starts at the best of some random networks. In the paper's Algorithm 1 all of N(v_i) is
evaluated, then v_{i+1} is the best of it; in its variant "query until lower" v_{i+1} is the first
that is better. Where none is better, v_i is a local optimum, and the next climb starts.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Sequence
from typing import final

import numpy as np

from archive.agents.base import (
    Agent,
    AgentInfo,
    History,
    Observation,
    Suggestion,
    check_count,
    first_of_pool,
    keys_of,
    members_among,
)
from archive.agents.baselines.random_search import samples
from archive.architecture.graph import Architecture
from archive.spaces.base import Mutation, Space
from archive.values import require_at_least


@final
class LocalSearch(Agent):
    """Evaluation of the neighbours of the best network of the current climb.

    Climbs are reconstructed from the history: a climb's evaluations end with the last neighbour of
    its local optimum, later ones belong to the next climb. Evaluations of other agents count as its
    own.

    Args:
        space: The search space.
        n_initial: Number of networks among which every climb selects its start: the initial pool
            first, then random networks. Ten in the authors' code.
        full: Whether all neighbours are evaluated before the search moves, as in Algorithm 1.
    """

    kind = "local-search"
    info = AgentInfo(
        summary="all neighbours of the best network, and a new start at every local optimum",
        paper="White et al., 2020",
        cost="milliseconds",
        when="small spaces with little noise; a strong, simple baseline",
    )
    joint = True

    def __init__(self, space: Space, n_initial: int = 10, full: bool = False) -> None:
        """Check and keep the settings."""
        super().__init__(space)
        require_at_least(0, n_initial=n_initial)
        self.n_initial = n_initial
        self.full = full
        # A cache of neighbours: it makes later calls faster and changes none of their results.
        self._neighbourhood = Neighbourhood(space)

    def propose(self, history: History, n: int, rng: np.random.Generator) -> list[Suggestion]:
        """See `Agent.propose`."""
        check_count(n)
        suggestions = first_of_pool(self.space, history, self.n_initial, n, rng)
        taken = {*history.known, *keys_of(suggestions)}
        observations = members_among(self.space, history.usable)
        begin = 0
        while len(suggestions) < n and begin < len(observations):
            climb = observations[begin:]
            if begin and len(climb) + len(history.pending) < self.n_initial:
                break

            neighbours, end = self._climb(climb, n - len(suggestions), taken, rng)
            suggestions += neighbours
            taken.update(keys_of(neighbours))
            begin += end

        # A new climb, or no evaluation is finished, or all reachable networks are known.
        return [*suggestions, *samples(self.space, n - len(suggestions), taken, rng)]

    def _climb(
        self, climb: Sequence[Observation], n: int, taken: set[str], rng: np.random.Generator
    ) -> tuple[list[Suggestion], int]:
        """Return up to n unknown neighbours; of fewer, also the evaluations of the climb."""
        starts = climb[: max(self.n_initial, 1)] if self.full else climb
        current = max(starts, key=lambda observation: observation.score)
        while True:
            neighbours = self._neighbourhood.fresh(current.architecture, n, taken, rng)
            if len(neighbours) == n:
                return neighbours, 0

            around = {m.child.functional_key for m in self._neighbourhood.all(current.architecture)}
            around.add(current.architecture.functional_key)
            near: list[Observation] = []
            end = 0
            for position, observation in enumerate(climb, start=1):
                if observation.architecture.functional_key in around:
                    near.append(observation)
                    end = position

            best = max(near, key=lambda observation: observation.score)
            if neighbours or best.score <= current.score:
                return neighbours, max(end, len(starts) if self.full else end)

            current = best


_LAYERS = 10
"""Largest number of layers for which all neighbours are listed: a cell's take milliseconds, and
the thousand of a network of 20 layers take a second."""
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
        """Return up to n distinct neighbours with a functional key that is not taken.

        All neighbours of a small network are equally likely. Neighbours of a large one are drawn by the
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
        for index in rng.permutation(len(every)):
            if len(suggestions) >= n:
                break

            _add(suggestions, every[index], architecture, taken)

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
