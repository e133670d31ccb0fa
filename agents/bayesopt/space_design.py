"""Initial design of `archive.agents.bayesopt.portfolio`: networks that reduce the variance over the
whole space.

The design is that of `archive.agents.bayesopt.variance_reduction`, given the networks that are
evaluated or pending. Its reference networks are a sample of a space's members, or random draws and
the initial pool of a space that cannot be listed.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from archive.agents.base import History, Suggestion, distinct
from archive.agents.baselines.random_search import samples
from archive.agents.bayesopt.variance_reduction import alc_design
from archive.architecture.graph import Architecture
from archive.spaces.base import Space

if TYPE_CHECKING:
    from archive.agents.bayesopt.portfolio_members import MemberModel

LISTED = 1000
DRAWN = 100
"""Reference networks: members of a listed space, or draws from another."""


def space_design(
    space: Space, model: MemberModel, history: History, count: int, rng: np.random.Generator
) -> list[Suggestion]:
    """Return a design over the whole space, at most `count` networks.

    Args:
        space: The search space.
        model: Distances and covariance of the networks.
        history: The history. Known networks are left out; the design is given those that have a
            score or are pending.
        count: Number of networks to return.
        rng: Draws the reference networks.
    """
    reference = _reference(space, history.known, rng) if count else []
    if not reference:
        return []

    given = [one.functional for one in history.observed_or_pending]
    functional = [one.functional for one in reference]
    chosen = alc_design(functional, given, count, model.pairwise, model.covariance)
    return [Suggestion(reference[at]) for at in chosen]


def _reference(
    space: Space, taken: Collection[str], rng: np.random.Generator
) -> list[Architecture]:
    members = space.members()
    if members is not None:
        drawn = rng.permutation(len(members))[:LISTED]
        return distinct((members[at] for at in drawn), taken)

    drawn_networks = [one.architecture for one in samples(space, DRAWN, taken, rng)]
    return distinct([*space.initial_pool(rng), *drawn_networks], taken)
