"""The model of the measured quantities of constraints, for agents that have no other."""

from __future__ import annotations

from archive.agents.acquisition.listing import Listing
from archive.agents.bayesopt.portfolio_members import defaults, is_cheap, member_model
from archive.agents.surrogates.base import Surrogate
from archive.agents.surrogates.stacking import StackedGP
from archive.spaces.base import Space

TRANSFORM = "standardise"
"""Outcome transform of slacks: linear, since the bound may lie anywhere among the values."""


def default_slacks(space: Space, listing: Listing | None = None) -> Surrogate:
    """Return the stacked Gaussian processes of `archive.agents.bayesopt.portfolio` with cheap
    distances.

    Args:
        space: The search space.
        listing: The networks of a listed space.
    """
    names = [name for name in defaults(space) if is_cheap(name, space)]
    return StackedGP([member_model(name, space, listing).surrogate(TRANSFORM) for name in names])
