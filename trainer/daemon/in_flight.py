"""What a daemon has in its hands: each claim with the trial that answers it, and what the archive does not know yet."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing import connection
from multiprocessing.connection import Connection
from typing import Protocol

from archive.errors import TrainingError
from archive.queue.successive_halving import Rungs
from archive.queue.updates import Completion, Failure, Report
from archive.store.records import Claim, Result
from archive.trainer.tasks.tabular import TabularTask
from archive.trainer.trial.job import Failed, Finished, Interrupted, Message

REPORT_SECONDS = 0.25
"""Least time between two reports of one trial: epochs of small networks come faster than anyone looks."""


class Attempt(Protocol):
    """What answers a claim: a trial in a process of its own (`archive.trainer.trial.process`), or a table."""

    @property
    def heard(self) -> float:
        """When it was last heard of, by `time.monotonic`."""

    @property
    def pid(self) -> int | None:
        """Its process; None where there is none."""

    def messages(self) -> list[Message]:
        """Return what has arrived, without waiting; the last one ever is no `Epoch`."""

    def checkpoint(self) -> None:
        """Ask it to save its state and to leave; it answers `Interrupted`."""

    def give_up(self, reason: str) -> Failed:
        """End what hangs, and return what goes on record."""

    def end(self) -> None:
        """End it, whatever it is doing."""


class TimedAnswer:
    """A table's answer that comes when a training would have ended, in scaled time.

    Args:
        result: The answer.
        seconds: How long it is held back.
    """

    pid = None

    def __init__(self, result: Result, seconds: float) -> None:
        self.due = time.monotonic() + seconds
        self._result = result
        self._leave = False

    @property
    def heard(self) -> float:
        """Now: a clock does not hang."""
        return time.monotonic()

    def messages(self) -> list[Message]:
        """Return the answer once it is time."""
        if time.monotonic() >= self.due:
            return [Finished(self._result)]
        return [Interrupted(saved=False, epoch=0)] if self._leave else []

    def checkpoint(self) -> None:
        """Leave; there is nothing to save."""
        self._leave = True

    def give_up(self, reason: str) -> Failed:
        """Return the reason."""
        return Failed(reason, retry=True)

    def end(self) -> None:
        """Do nothing: there is no process."""


def look_up(claim: Claim, task: TabularTask) -> Result:
    """Return a table's answer to a claim.

    Raises:
        TrainingError: The table has none.
        UsageError: The table cannot be read here.
    """
    if claim.proposal.hyperparameters:
        named = ", ".join(sorted(claim.proposal.hyperparameters))
        raise TrainingError(f"the table of {task.name} was trained in one way, it has no choice of {named}")
    return task.answer(claim.architecture, claim.study.protocol)


def is_paused(result: Result) -> bool:
    """Whether a training was ended at a rung, and may go on from its state."""
    return result.environment.get("ended") == "rung"


def completion(claim: Claim, result: Result) -> Completion:
    """Return what the archive is told of a result."""
    rung = None if Rungs.of(claim.study.config) is None else claim.proposal.rung
    return Completion(claim.id, claim.token, result, is_paused(result), rung, claim.architecture.key)


def failure(claim: Claim, failed: Failed) -> Failure:
    """Return what the archive is told where there is no result."""
    # The name of a file may hold what is no Unicode, and no server takes.
    reason = failed.reason.encode(errors="replace").decode()
    return Failure(claim.id, claim.token, reason, failed.retry, failed.log_tail or None)


@dataclass(eq=False)
class Running:
    """A claim in work.

    Attributes:
        claim: What was claimed.
        trial: What answers it.
        curve: Metric to one value an epoch, those before a resumption included.
        unreported: Whether the archive does not have all of the curve.
        renewed: When the lease was last renewed, by `time.monotonic`.
        began: When work on it began here.
    """

    claim: Claim
    trial: Attempt
    curve: dict[str, list[float]] = field(default_factory=dict)
    unreported: bool = False
    renewed: float = field(default_factory=time.monotonic)
    began: float = field(default_factory=time.monotonic)

    @property
    def key(self) -> tuple[str, str]:
        """Of the claim: a proposal that was lost and claimed again has the same id, and another token."""
        return self.claim.id, self.claim.token

    @property
    def pipe(self) -> Connection | None:
        """Ready to read when the trial has said something."""
        return getattr(self.trial, "connection", None)

    @property
    def due(self) -> float | None:
        """When the answer comes, by `time.monotonic`, where that is known."""
        return getattr(self.trial, "due", None)

    def add(self, metrics: dict[str, float]) -> None:
        """Take in one epoch's entries of the curve."""
        for name, value in metrics.items():
            self.curve.setdefault(name, []).append(value)
        self.unreported = True

    def is_due(self, lease_seconds: float) -> bool:
        """Whether it is time to report: there is something new, or the lease must be renewed."""
        pause = REPORT_SECONDS if self.unreported else lease_seconds / 3
        return time.monotonic() - self.renewed > pause

    def report(self, lease_seconds: float) -> Report:
        """Return the curve, as far as there is something new, to be told at once: that renews the lease, too."""
        curve = self.curve if self.unreported else None
        self.unreported, self.renewed = False, time.monotonic()
        return Report(*self.key, curve, lease_seconds)


def wait(running: Sequence[Running], until: float) -> None:
    """Wait until one of them has something to say, or until a moment by `time.monotonic`."""
    moments = [until, *(each.due for each in running if each.due is not None)]
    seconds = max(0.0, min(moments) - time.monotonic())
    if pipes := [each.pipe for each in running if each.pipe is not None]:
        connection.wait(pipes, seconds)
    else:
        time.sleep(seconds)
