"""Messages from the process of a trial to its daemon.

Reading them needs no torch, so the daemon never loads it. `archive.trainer.trial.frames` has their
form on the pipe.
"""

from __future__ import annotations

from dataclasses import dataclass

from archive.queue.causes import Cause, MemoryNeed
from archive.store.records import Result


@dataclass(frozen=True, slots=True)
class EpochReport:
    """An epoch is over.

    Attributes:
        metrics: Its entries of the curve.
        resumed: Whether it was trained before the trial was resumed.
    """

    metrics: dict[str, float]
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class TrialFinished:
    """Training ended normally, and the weights are on disk."""

    result: Result


@dataclass(frozen=True, slots=True)
class TrialFailed:
    """There is no result.

    Attributes:
        reason: Why.
        retry: Whether another attempt may succeed.
        log_tail: Last lines of the trial's log, if it has one.
        cause: Kind of the reason.
        refused: Whether the training could not begin here: the proposal goes to another worker,
            untouched.
        memory: Memory of the trial, where it ran out of it.
    """

    reason: str
    retry: bool = False
    log_tail: str = ""
    cause: Cause = Cause.TRAINING
    refused: bool = False
    memory: MemoryNeed | None = None


@dataclass(frozen=True, slots=True)
class TrialInterrupted:
    """The trial ended because the daemon interrupted it.

    Attributes:
        saved: Whether there is a checkpoint to resume from.
        epoch: Number of whole epochs.
    """

    saved: bool
    epoch: int


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A sign of life during a long epoch; `TrialProcess` consumes it."""


Message = EpochReport | TrialFinished | TrialFailed | TrialInterrupted
"""Messages from a trial: any number of `EpochReport`, then exactly one of the others."""
