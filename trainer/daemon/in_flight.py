"""Claims in work: each with its trial, and the progress that the store does not have yet."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing import connection
from multiprocessing.connection import Connection

from archive.backoff import vary
from archive.queue.updates import Report
from archive.store.records import Claim, Result
from archive.trainer.daemon import trial_limits
from archive.trainer.daemon.executors import TrialHandle
from archive.trainer.daemon.options import TrainerOptions
from archive.trainer.daemon.scratch import ScratchFolder
from archive.trainer.daemon.trial_limits import TrialMemory
from archive.trainer.trial.devices import Device

REPORT_SECONDS = 1.0
"""Least time between two reports of one trial: epochs of small networks take less."""
REPORT_SHARE = 0.01
"""Least time between two reports, as a share of the trial's time."""


def is_paused(result: Result) -> bool:
    """Whether a training ended at a rung, so that a checkpoint continues it."""
    return result.environment.get("ended") == "rung"


@dataclass(eq=False)
class InFlight:
    """A claim with its trial.

    Attributes:
        claim: The claim.
        trial: The work on it.
        curve: Metric to one value per report, with those before a resumption.
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
        self.memory = TrialMemory(self.trial.pids)

    @property
    def key(self) -> tuple[str, str]:
        """Id and token of the claim: a proposal that is claimed again gets another token."""
        return self.claim.id, self.claim.token

    @property
    def waitable(self) -> list[Connection | int]:
        """Objects that become ready with news of the trial."""
        return self.trial.waitable

    @property
    def due(self) -> float | None:
        """Time of the result, by `time.monotonic`; None if it is not known in advance."""
        return self.trial.due

    def add(self, metrics: dict[str, float]) -> None:
        """Append one report's entries to the curve, with NaN for metrics that it lacks."""
        count = max(map(len, self.curve.values()), default=0)
        for name in metrics.keys() - self.curve.keys():
            self.curve[name] = [math.nan] * count

        for name, values in self.curve.items():
            values.append(metrics.get(name, math.nan))

        self.unreported = True

    def is_due(self) -> bool:
        """Whether it is time for a report: the curve has grown, and the pause is over."""
        return self.unreported and time.monotonic() >= self.report_at

    def excess(self, options: TrainerOptions) -> str | None:
        """Return the exceeded limit as a reason to kill the trial.

        Returns:
            None within all limits, or if the trial's handle enforces them.
        """
        if self.trial.enforces_limits:
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


def wait(in_flight: Sequence[InFlight], deadline: float, idle: Callable[[float], None]) -> None:
    """Wait for a message of a trial, or until a deadline by `time.monotonic`.

    Args:
        in_flight: The trials.
        deadline: Latest end.
        idle: Waits until the deadline in place of this function if there are no trials.
    """
    waitable: list[Connection | int] = []
    for work in in_flight:
        waitable += work.waitable
        if work.due is not None:
            deadline = min(deadline, work.due)

    seconds = max(0.0, deadline - time.monotonic())
    if waitable:
        connection.wait(waitable, seconds)
    elif in_flight:
        time.sleep(seconds)
    else:
        idle(deadline)
