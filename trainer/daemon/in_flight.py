"""In-flight trials: each claim of a daemon with its trial, and the progress that the store does not
know yet.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from multiprocessing import connection
from multiprocessing.connection import Connection
from typing import Protocol

from archive.backoff import vary
from archive.queue.causes import Cause
from archive.queue.successive_halving import Rungs
from archive.queue.updates import Completion, Failure, Release, Report
from archive.store.records import Claim, Result
from archive.trainer.daemon.limits import trial_limits
from archive.trainer.daemon.limits.scratch import ScratchFolder
from archive.trainer.daemon.limits.trial_memory import TrialMemory
from archive.trainer.daemon.options import TrainerOptions
from archive.trainer.daemon.shutdown import StopSignal
from archive.trainer.trial.devices import Device
from archive.trainer.trial.messages import Message, TrialFailed

REPORT_SECONDS = 1.0
"""Least time between two reports of one trial: epochs of small networks come faster than any reader
needs them."""
REPORT_SHARE = 0.01
"""Least time between two reports, as a share of the trial's time."""


class TrialHandle(Protocol):
    """The work on a claim: a trial in a separate process (`archive.trainer.trial.process`), or a
    table's result.
    """

    @property
    def last_seen(self) -> float:
        """Time of its last sign of life, by `time.monotonic`."""

    @property
    def pid(self) -> int | None:
        """Id of its process; None where there is none."""

    def messages(self) -> list[Message]:
        """Return the messages that have arrived, without waiting:

        `EpochReport`s, and at last one other message.
        """

    def interrupt(self) -> None:
        """Ask it to save a checkpoint and to end with `TrialInterrupted`."""

    def abandon(self, reason: str, cause: Cause) -> TrialFailed:
        """Kill a trial, and return the failure to record."""

    def kill(self) -> None:
        """End the work at once, in any state."""


def is_paused(result: Result) -> bool:
    """Whether a training ended at a rung, so that a checkpoint continues it."""
    return result.environment.get("ended") == "rung"


def completion_notice(claim: Claim, result: Result) -> Completion:
    """Return the notice of a result."""
    rung = None if Rungs.of(claim.study.config) is None else claim.proposal.rung
    return Completion(
        claim.id, claim.token, result, is_paused(result), rung, claim.architecture.key
    )


def failure_notice(claim: Claim, failed: TrialFailed) -> Failure:
    """Return the notice of a trial without a result."""
    log = failed.log_tail or None
    return Failure(
        claim.id,
        claim.token,
        storable(failed.reason),
        failed.retry,
        log,
        failed.cause,
        failed.memory,
    )


def refusal_notice(claim: Claim, failed: TrialFailed) -> Release:
    """Return the notice of a trial that could not begin here."""
    return Release(
        claim.id, claim.token, storable(failed.reason), failed.cause, failed.log_tail or None
    )


def storable(reason: str) -> str:
    """Return a reason as Unicode text: a file name may hold other bytes, which no server
    accepts.
    """
    return reason.encode(errors="replace").decode()


@dataclass(eq=False)
class InFlight:
    """A claim with its trial.

    Attributes:
        claim: The claim.
        trial: The work on it.
        curve: Metric to one value a report, with those before a resumption.
        unreported: Whether the store lacks a part of the curve.
        report_at: Earliest time of the next report, by `time.monotonic`.
        began: Time at which the work began here.
        scratch: Folder of its temporary files.
        device: Device of the training; None for a table's result.
        memory: Memory of its processes.
    """

    claim: Claim
    trial: TrialHandle
    curve: dict[str, list[float]] = field(default_factory=dict)
    unreported: bool = False
    report_at: float = field(default_factory=time.monotonic)
    began: float = field(default_factory=time.monotonic)
    scratch: ScratchFolder | None = None
    device: Device | None = None
    memory: TrialMemory = field(init=False)

    def __post_init__(self) -> None:
        self.memory = TrialMemory(getattr(self.trial, "pid", None))

    @property
    def key(self) -> tuple[str, str]:
        """Id and token of the claim: a proposal that was lost and claimed again has the same id,
        another token.
        """
        return self.claim.id, self.claim.token

    @property
    def waitable(self) -> list[Connection | int]:
        """What becomes ready when there is news of the trial."""
        return getattr(self.trial, "waitable", [])

    @property
    def due(self) -> float | None:
        """Time of the result, by `time.monotonic`, where it is known."""
        return getattr(self.trial, "due", None)

    def add(self, metrics: dict[str, float]) -> None:
        """Append one report's entries to the curve, with NaN for metrics that it lacks."""
        count = max(map(len, self.curve.values()), default=0)
        for name in metrics.keys() - self.curve.keys():
            self.curve[name] = [math.nan] * count

        for name, values in self.curve.items():
            values.append(metrics.get(name, math.nan))

        self.unreported = True

    def is_due(self) -> bool:
        """Whether it is time for a report: the curve has grown, and the last report was a while
        ago.
        """
        return self.unreported and time.monotonic() >= self.report_at

    def excess(self, options: TrainerOptions) -> str | None:
        """Return which limit the trial has exceeded, as a reason to kill it;

        None for none, or a `watched` trial.
        """
        if getattr(self.trial, "watched", False):
            return None

        return trial_limits.excess(
            time.monotonic() - self.began,
            options.trial_seconds if self.due is None else None,
            self.scratch,
            options.scratch_bytes,
            self.memory,
            options.memory_bytes,
        )

    def report(self, lease_seconds: float, least_seconds: float = 0.0) -> Report:
        """Return a report of the curve for immediate delivery; it renews the lease.

        Args:
            lease_seconds: Duration of the lease.
            least_seconds: Least time until the next report.
        """
        now = time.monotonic()
        pause = max(REPORT_SECONDS, REPORT_SHARE * (now - self.began), least_seconds)
        # Trials that began together must not report together.
        self.unreported = False
        self.report_at = now + pause + vary(0.1 * pause, 1.0)
        return Report(*self.key, self.curve, lease_seconds)


class Parting:
    """The time that is left for calls to the store when the daemon stops.

    The trials are interrupted at once, so that they save their states while the store does not
    answer.

    Args:
        signal: Requests to stop.
        options: How long trials may take to save their states, and whether they finish first.
        in_flight: Returns the trials.
    """

    def __init__(
        self,
        signal: StopSignal,
        options: TrainerOptions,
        in_flight: Callable[[], Iterable[InFlight]],
    ) -> None:
        self._signal = signal
        self._options = options
        self._in_flight = in_flight
        self._interrupted = False

    def __call__(self) -> float | None:
        """Return the seconds that are left;

        None where no stop was requested, or trials finish first.
        """
        signal = self._signal
        if signal.requested_at is None or signal.requests <= self._options.drain:
            return None

        if not self._interrupted:
            self._interrupted = True
            for each in self._in_flight():
                each.trial.interrupt()

        return signal.requested_at + self._options.parting_seconds - time.monotonic()


def wait(in_flight: Sequence[InFlight], deadline: float, idle: Callable[[float], None]) -> None:
    """Wait for a message of any trial, or until a deadline by `time.monotonic`; without trials,
    `idle` waits.
    """
    moments = [deadline, *(each.due for each in in_flight if each.due is not None)]
    seconds = max(0.0, min(moments) - time.monotonic())
    if waitable := [one for each in in_flight for one in each.waitable]:
        connection.wait(waitable, seconds)
    elif in_flight:
        time.sleep(seconds)
    else:
        idle(deadline)
