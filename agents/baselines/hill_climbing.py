"""Hill climbing: children of the best network (SEAS, Elsken et al., 2017, Algorithm 1).

    symbol    meaning                                             SEAS   here
    n_neigh   children of a generation, all of one parent         8      `children`
    n_NM      random morphisms that make a child                  5      `steps`

A baseline of the network-morphism paper: it "only takes one step at a time in morphing the current
best architecture". In SEAS the parent competes with its children, so that the parent's score never
decreases.
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
    members_among,
)
from archive.agents.baselines.random_search import samples
from archive.architecture.graph import Architecture
from archive.spaces.base import Space
from archive.values import require_at_least


@final
class HillClimbing(Agent):
    """Mutations of the best network evaluated before the current generation.

    The number of finished and pending evaluations determines the generation. While proposals of the
    previous generation are pending, the parent is the best finished network.

    Args:
        space: The search space; its random mutation is the morphism.
        children: n_neigh.
        steps: n_NM. SEAS takes 5, on networks of a dozen layers; five steps in a cell of six edges
            are a random cell.
        n_initial: Number of networks of the initial pool that come first; SEAS begins with one
            small network.
    """

    kind = "hill-climbing"
    info = AgentInfo(
        summary="generations of mutations of the best network so far",
        paper="Elsken et al., 2017 (SEAS)",
        cost="milliseconds",
        when="few evaluations near a good network; baseline of morphism search",
    )
    joint = True

    def __init__(
        self, space: Space, children: int = 8, steps: int = 1, n_initial: int = 10
    ) -> None:
        """Check and keep the settings."""
        super().__init__(space)
        require_at_least(1, children=children, steps=steps)
        require_at_least(0, n_initial=n_initial)
        self.children = children
        self.steps = steps
        self.n_initial = n_initial

    def propose(self, history: History, n: int, rng: np.random.Generator) -> list[Suggestion]:
        """See `Agent.propose`."""
        check_count(n)
        suggestions = first_of_pool(self.space, history, self.n_initial, n, rng)
        taken = {*history.known, *keys_of(suggestions)}
        issued = len(history.usable) + len(history.pending) + len(suggestions)
        while len(suggestions) < n:
            generation, issued_children = divmod(max(issued - self.n_initial, 0), self.children)
            count = min(self.children - issued_children, n - len(suggestions))
            parent = self._parent(history, self.n_initial + generation * self.children)
            children = [] if parent is None else self._offspring(parent, count, taken, rng)
            if len(children) < count:
                # No evaluation is finished, or all neighbours of the parent are known, where SEAS
                # would end.
                rest = {*taken, *keys_of(children)}
                children += samples(self.space, count - len(children), rest, rng)

            suggestions += children
            taken.update(keys_of(children))
            issued += len(children)
            if len(children) < count:
                break

        return suggestions

    def _parent(self, history: History, before: int) -> Architecture | None:
        finished = members_among(self.space, history.usable[:before])
        return (
            max(finished, key=lambda observation: observation.score).architecture
            if finished
            else None
        )

    def _offspring(
        self, parent: Architecture, count: int, taken: set[str], rng: np.random.Generator
    ) -> list[Suggestion]:
        def child() -> Suggestion:
            network = parent
            operations: tuple[str, ...] = ()
            for _ in range(self.steps):
                mutation = self.space.mutate(network, rng)
                network = mutation.child
                operations = (*operations, *mutation.operations)

            return Suggestion(network, parent=parent, operations=operations)

        return draw_new(child, count, taken)
