"""Random baselines: samples of the space, and NASBOT's schedule with a random acquisition.

`Pooled` is the base of agents that begin with networks of the space's initial pool.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from archive.agents.acquisition.evolution import Ranked, best_new, evaluations_at, evolve
from archive.agents.base import (
    Agent,
    AgentInfo,
    History,
    Suggestion,
    by_key,
    check_count,
    draw_new,
    first_of_pool,
    keys_of,
)
from archive.agents.surrogates.base import Array
from archive.architecture.graph import Architecture
from archive.spaces.base import Space
from archive.values import require_at_least


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

        taken = {**history.known, **by_key(suggestion.architecture for suggestion in first)}
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


class RandomSearch(Agent):
    """Samples of the space, independent of the observations."""

    kind = "random"
    info = AgentInfo(
        summary="independent samples of the space",
        paper="Li and Talwalkar, 2019",
        cost="milliseconds",
        when="baseline of everything; an archive without bias",
    )
    joint = True
    several_objectives = True
    uses_constraints = True

    def propose(self, history: History, n: int, rng: np.random.Generator) -> list[Suggestion]:
        """See `Agent.propose`."""
        check_count(n)
        return samples(self.space, n, history.known, rng)


class Rand(Pooled):
    """NASBOT's RAND (appendix C.1): its optimiser with a random acquisition, Unif(0, 1).

    It reaches the same networks as NASBOT by the same schedule, and selects among them at random.

    Args:
        space: The search space.
        n_initial: Number of networks of the space's initial pool that come first.
    """

    kind = "rand"
    info = AgentInfo(
        summary="NASBOT's schedule with a random acquisition",
        paper="Kandasamy et al., 2018 (NASBOT)",
        cost="the mutations of NASBOT",
        when="random baseline of NASBOT",
    )

    def beyond(
        self, history: History, n: int, taken: Mapping[str, Architecture], rng: np.random.Generator
    ) -> list[Suggestion]:
        """See `Pooled.beyond`."""
        suggestions: list[Suggestion] = []
        unavailable = dict(taken)
        while len(suggestions) < n:
            best = best_new(wander(self.space, list(unavailable.values()), rng), unavailable)
            if best is None:
                # Mutations may reach a part of the space only: the remaining networks are drawn at
                # random.
                return [*suggestions, *samples(self.space, n - len(suggestions), unavailable, rng)]

            child = best.candidate
            suggestions.append(
                Suggestion(child.architecture, parent=child.parent, operations=child.operations)
            )
            unavailable[child.architecture.functional_key] = child.architecture

        return suggestions


def samples(
    space: Space, n: int, taken: Collection[str], rng: np.random.Generator
) -> list[Suggestion]:
    """Return n new, distinct networks of the space; fewer where it is exhausted."""
    drawn = draw_new(lambda: Suggestion(space.sample(rng)), n, taken)
    members = space.members() if len(drawn) < n else None
    if members is None:
        return drawn

    # Random draws hardly ever find the last networks of a space, hence they are listed.
    unavailable = {*taken, *keys_of(drawn)}
    left = [network for network in members if network.functional_key not in unavailable]
    order = rng.permutation(len(left))[: n - len(drawn)].tolist()
    return [*drawn, *(Suggestion(left[index]) for index in order)]


def wander(space: Space, seen: Sequence[Architecture], rng: np.random.Generator) -> list[Ranked]:
    """Return networks that NASBOT's schedule reaches from the pool, in random order."""

    def blind(architectures: Sequence[Architecture]) -> Array:
        return rng.uniform(size=len(architectures))

    start = [*space.initial_pool(rng), *filter(space.contains, seen)]
    return evolve(space, start, blind, evaluations_at(len(seen)), rng)
