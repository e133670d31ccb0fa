"""What an asker holds and tells: proposals, wishes, and plain numbers made sure of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from archive.errors import UsageError
from archive.graph import Architecture
from archive.records import Proposal


@dataclass(frozen=True)
class Asked:
    """A proposal that this process is to evaluate.

    Attributes:
        proposal: The proposal, with the agent's acquisition value and hyperparameters.
        architecture: The network.
        token: Proves the lease.
    """

    proposal: Proposal
    architecture: Architecture
    token: str

    @property
    def id(self) -> str:
        """The proposal's id."""
        return self.proposal.id


@dataclass(frozen=True)
class Wish:
    """A network that a person wants evaluated; larger priorities come first."""

    architecture: Architecture
    priority: float = 0.0


def real(value: Any, what: str) -> float:
    """Return a value as a number.

    Raises:
        UsageError: It is none.
    """
    try:
        return float(value)
    except (TypeError, ValueError):
        raise UsageError(f"{what} must be a number, got {value!r}") from None


def lists(curve: Mapping[int, Mapping[str, float]]) -> dict[str, list[float]]:
    """Return the metrics of each step as the lists of a curve, `epoch` among them."""
    steps = sorted(curve)
    if not steps:
        return {}
    return {"epoch": [float(step) for step in steps], **{k: [curve[s][k] for s in steps] for k in curve[steps[0]]}}
