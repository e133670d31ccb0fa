"""What an asker holds and tells: proposals, wishes, and plain numbers made sure of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from archive.architecture import codec
from archive.architecture.graph import Architecture
from archive.errors import UnknownNameError, UsageError
from archive.store.records import Proposal

if TYPE_CHECKING:
    from archive.store.architectures import Architectures
    from archive.store.records import Evaluation


@dataclass(frozen=True)
class LeasedProposal:
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


class Batch(list[LeasedProposal]):
    """List of what one call of `ask` gave to evaluate, by number.

    Args:
        asked: What to evaluate.
        answered: See below.

    Attributes:
        answered: Evaluations that the same call added to the study, by number: the agent proposed these networks too,
            and the archive had their results from other studies. They count towards the budget.
    """

    def __init__(self, asked: Iterable[LeasedProposal] = (), answered: Iterable[Evaluation] = ()) -> None:
        """Keep both."""
        super().__init__(asked)
        self.answered = tuple(answered)


@dataclass(frozen=True)
class EnqueuedArchitecture:
    """A network that a person wants evaluated; larger priorities come first."""

    architecture: Architecture
    priority: float = 0.0


def network(given: Any, architectures: Architectures) -> Architecture:
    """Return the network that a person names, in any of the ways in which the command line takes one.

    Args:
        given: The network, its NAS-Bench-201 string, its JSON text, or its key or the beginning of that.
        architectures: Where keys are looked up.

    Raises:
        CodecError: The text describes no graph.
        InvalidArchitectureError: The graph is no network.
        UsageError: It is none of these.
    """
    if isinstance(given, Architecture):
        return given
    text = given.strip() if isinstance(given, str) else ""
    if text.startswith(("|", "{")):
        return codec.from_nasbench201(text) if text.startswith("|") else codec.from_json(text)
    try:
        if text:
            return architectures.get(architectures.find(text))
    except UnknownNameError:
        pass  # the message below says what a person may have meant instead
    raise UsageError(
        "a network is an Architecture, its JSON text, its NAS-Bench-201 string or a key of the archive, "
        f"got {given!r:.80}"
    )


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
