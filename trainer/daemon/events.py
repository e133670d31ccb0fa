"""Events of a daemon for its observers: metrics, logs, a user's own code.

    TrainerStarted
        ProposalClaimed ── EpochTrained … ── ProposalCompleted | ProposalFailed | ProposalReleased
                           ResultDelivered | ResultRefused
        StoreUnreachable … StoreReachable        at any time
    TrainerStopped

An observer is called in the daemon's only thread, between two steps of its loop: it must be quick
and must not query the store. Its exceptions are logged and ignored.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from archive.store.records import Claim, Result
from archive.trainer.daemon.options import Tally

log = logging.getLogger("archive.trainer")


@dataclass(frozen=True, slots=True)
class TrainerStarted:
    """The daemon is ready to work."""

    worker: str
    device: str


@dataclass(frozen=True, slots=True)
class ProposalClaimed:
    """The daemon holds the lease of a proposal.

    Attributes:
        claim: The claim.
        pid: Id of the trial's process; None for a table's result.
        protocol: Every choice of the training.
    """

    claim: Claim
    pid: int | None = None
    protocol: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EpochTrained:
    """An epoch is over. Epochs before a resumption are not repeated.

    Attributes:
        claim: The claim.
        metrics: The epoch's entries of the curve.
    """

    claim: Claim
    metrics: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ProposalCompleted:
    """A trial has a result that survives a kill of the daemon; its delivery may come later."""

    claim: Claim
    result: Result


@dataclass(frozen=True, slots=True)
class ProposalFailed:
    """A trial has no result; with `retry`, its proposal may get another attempt."""

    claim: Claim
    reason: str
    retry: bool = False


@dataclass(frozen=True, slots=True)
class ProposalReleased:
    """The proposal was handed back, or, with `lost`, is another worker's or already finished."""

    claim: Claim
    reason: str
    lost: bool = False


@dataclass(frozen=True, slots=True)
class ResultDelivered:
    """The store has a result or a failure; `first` tells whether it is the recorded one."""

    proposal: str
    first: bool


@dataclass(frozen=True, slots=True)
class ResultRefused:
    """The store will never accept this result or failure; a refused result stays on disk."""

    proposal: str
    reason: str


@dataclass(frozen=True, slots=True)
class StoreUnreachable:
    """The store does not answer."""

    reason: str


@dataclass(frozen=True, slots=True)
class StoreReachable:
    """The store answers again, after this many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class TrainerStopped:
    """The daemon has ended."""

    worker: str
    tally: Tally


Event = (
    TrainerStarted
    | ProposalClaimed
    | EpochTrained
    | ProposalCompleted
    | ProposalFailed
    | ProposalReleased
    | ResultDelivered
    | ResultRefused
    | StoreUnreachable
    | StoreReachable
    | TrainerStopped
)
Observer = Callable[[Event], None]


def notify(observers: Iterable[Observer], event: Event) -> None:
    """Call every observer, whatever the others raise."""
    for observer in observers:
        try:
            observer(event)
        except Exception:
            log.exception("observer failed event=%s", type(event).__name__)
