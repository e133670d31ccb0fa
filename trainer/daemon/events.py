"""What a daemon tells those who watch it: metrics, logs, a user's own code.

    Started ── Claimed ── Progressed … ── Completed | Failed | Released ── … ── Left        Away … Back, at any time

An observer is called in the daemon's only thread, between two steps of its loop: it must be quick, and never ask the
archive. What it raises is logged and forgotten.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from archive.store.records import Claim, Result
from archive.trainer.daemon.options import Tally

log = logging.getLogger("archive.trainer")


@dataclass(frozen=True, slots=True)
class Started:
    """The daemon is ready to work."""

    worker: str
    device: str


@dataclass(frozen=True, slots=True)
class Claimed:
    """A proposal is this daemon's; `pid` is its process, None where a table answers."""

    claim: Claim
    pid: int | None = None


@dataclass(frozen=True, slots=True)
class Progressed:
    """An epoch is done; `metrics` are its entries of the curve. Those before a resumption are not told again."""

    claim: Claim
    metrics: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Completed:
    """There is a result, and no kill loses it any more; the archive may get it later."""

    claim: Claim
    result: Result


@dataclass(frozen=True, slots=True)
class Failed:
    """There is none; with `retry`, the proposal goes back into the queue while attempts are left."""

    claim: Claim
    reason: str
    retry: bool = False


@dataclass(frozen=True, slots=True)
class Released:
    """The proposal was handed back, or, if `lost`, is another worker's or done."""

    claim: Claim
    reason: str
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Delivered:
    """The archive has a result or a failure; `first` says whether it is the one on record."""

    proposal: str
    first: bool


@dataclass(frozen=True, slots=True)
class Refused:
    """The archive will never take this result or failure; a result was set aside on the disk."""

    proposal: str
    reason: str


@dataclass(frozen=True, slots=True)
class Away:
    """The archive does not answer."""

    reason: str


@dataclass(frozen=True, slots=True)
class Back:
    """The archive answers again, after so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Left:
    """The daemon has ended."""

    worker: str
    tally: Tally


Event = Started | Claimed | Progressed | Completed | Failed | Released | Delivered | Refused | Away | Back | Left
Observer = Callable[[Event], None]


def tell(observers: Iterable[Observer], event: Event) -> None:
    """Call every observer, whatever the others raise."""
    for observer in observers:
        try:
            observer(event)
        except Exception:
            log.exception("observer failed event=%s", type(event).__name__)
