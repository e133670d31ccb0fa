"""Types of the ask/tell interface, and validation of user input."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from archive.architecture.graph import Architecture
from archive.architecture.texts import from_text, is_text
from archive.errors import UnknownNameError, UsageError
from archive.store.records import Proposal

if TYPE_CHECKING:
    from archive.store.architectures import Architectures
    from archive.store.records import Evaluation


UNBOUNDED = 1_000_000
"""Budget of a study without a limit: the caller decides when it ends."""


@dataclass(frozen=True)
class LeasedProposal:
    """A proposal leased to this process for evaluation.

    Attributes:
        proposal: The proposal, with the agent's acquisition value and hyperparameters.
        architecture: The network.
        token: Token of the lease.
    """

    proposal: Proposal
    architecture: Architecture
    token: str

    @property
    def id(self) -> str:
        """The proposal's id."""
        return self.proposal.id


class Batch(list[LeasedProposal]):
    """The proposals that one call of `ask` returns, by number.

    Args:
        asked: The leased proposals.
        answered: See the attribute.

    Attributes:
        answered: Evaluations that the same call added to the study, by number: proposals for which the archive had
            results from other studies. They count towards the budget.
    """

    def __init__(self, asked: Iterable[LeasedProposal] = (), answered: Iterable[Evaluation] = ()) -> None:
        """Keep both."""
        super().__init__(asked)
        self.answered = tuple(answered)


@dataclass(frozen=True)
class EnqueuedArchitecture:
    """A network enqueued by a user or a program.

    Attributes:
        architecture: The network.
        priority: Larger priorities come first.
        motivation: Reason for the proposal.
        inspired_by: Keys of the networks that it goes back to.
        parent: The network that it is a change of.
        operations: Changes that make it of the parent.
    """

    architecture: Architecture
    priority: float = 0.0
    motivation: str | None = None
    inspired_by: tuple[str, ...] = ()
    parent: Architecture | None = None
    operations: tuple[str, ...] = ()


def network(text_or_network: Any, architectures: Architectures) -> Architecture:
    """Return the network that a user names, in any form that the command line accepts.

    Args:
        text_or_network: The network, its text (`archive.architecture.texts`), or its key or the beginning of that.
        architectures: Where keys are looked up.

    Raises:
        CodecError: The text is not a graph.
        InvalidArchitectureError: The graph is not a network.
        UsageError: It is none of these.
    """
    if isinstance(text_or_network, Architecture):
        return text_or_network
    text = text_or_network.strip() if isinstance(text_or_network, str) else ""
    if is_text(text):
        return from_text(text)
    try:
        if text:
            return architectures.get(architectures.find(text))
    except UnknownNameError:
        pass  # the error below lists all accepted forms
    raise UsageError(
        "a network is an Architecture, its JSON text, its NAS-Bench-201 string, its genotype or a key of the archive, "
        f"got {text_or_network!r:.80}"
    )


def real(value: Any, what: str) -> float:
    """Return a value as a float.

    Raises:
        UsageError: It is not a number.
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
