"""The end of a daemon: stop requests, its time limit, and the time for its last calls.

A stop is requested by a signal, a call, or the end of the parent process. With a time limit:

    start ── claims ──> last claim ── reserve ──> trials are interrupted ── grace ──> end

The reserve lets the last trial finish or reach a state that is worth a checkpoint.
"""

from __future__ import annotations

import logging
import math
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

import psutil

from archive.trainer.daemon.in_flight import InFlight
from archive.trainer.daemon.options import TrainerOptions

log = logging.getLogger("archive.trainer")

LARGEST_RESERVE = 0.1
"""Largest reserve, as a fraction of the limit."""


class StopSignal:
    """Counts stop requests, and watches a parent process.

    Args:
        parent: Id of the parent process, if any; its end stops the daemon.

    Attributes:
        requests: Number of stop requests.
        requested_at: Time of the first one, by `time.monotonic`.
    """

    def __init__(self, parent: int | None = None) -> None:
        self.requests = 0
        self.requested_at: float | None = None
        self._parent_id = parent
        self._parent = None if parent is None else _process(parent)

    def request_stop(self) -> None:
        """Request a stop, from a signal or another thread."""
        self.requests += 1
        self.requested_at = self.requested_at or time.monotonic()

    def stopping(self) -> bool:
        """Whether a stop was requested, or the parent is gone."""
        return self.requests > 0 or self.parent_gone()

    def parent_gone(self) -> bool:
        """Whether there was a parent, and it has ended."""
        if self._parent_id is None:
            return False

        # The handle, unlike the bare id, does not mistake a new process with the same id for the
        # parent.
        gone = self._parent is None or not _alive(self._parent)
        if gone:
            log.info("parent is gone pid=%s", self._parent_id)

        return gone

    @contextmanager
    def signals(self) -> Iterator[None]:
        """Treat SIGTERM and SIGINT as stop requests; only the main thread can handle signals."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def on_signal(number: int, _: FrameType | None) -> None:
            self.request_stop()

        before = {
            number: signal.signal(number, on_signal) for number in (signal.SIGTERM, signal.SIGINT)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _process(pid: int) -> psutil.Process | None:
    try:
        return psutil.Process(pid)
    except psutil.NoSuchProcess:
        return None


def _alive(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


class TimeLimit:
    """Moments of a daemon with a time limit; without a limit, they are infinite.

    Args:
        options: How the daemon works: `max_seconds`, `parting_seconds` and `checkpoint_seconds`.
    """

    def __init__(self, options: TrainerOptions) -> None:
        """Start the clock."""
        self._options = options
        self._longest: float | None = None
        limit = options.max_seconds
        end = math.inf if limit is None else time.monotonic() + limit
        self.interrupts_at = end - options.parting_seconds
        """Time at which running trials are interrupted, by `time.monotonic`."""

    @property
    def last_claim_at(self) -> float:
        """Time after which nothing is claimed, by `time.monotonic`."""
        limit = self._options.max_seconds
        if limit is None:
            return math.inf

        # A trial needs the time until its first checkpoint, or less if all trials so far ended
        # sooner.
        needed = self._options.checkpoint_seconds
        if self._longest is not None:
            needed = min(needed, self._longest)

        return self.interrupts_at - min(needed, LARGEST_RESERVE * limit)

    def note_trial(self, seconds: float) -> None:
        """Note how long a finished trial has taken."""
        self._longest = max(seconds, self._longest or 0.0)

    def may_claim(self) -> bool:
        """Whether a trial that is claimed now can finish, or come to a checkpoint."""
        return time.monotonic() < self.last_claim_at

    def is_over(self, running: int) -> bool:
        """Whether the daemon must end: at once without work, otherwise in time for checkpoints.

        Args:
            running: Number of running trials.
        """
        over = time.monotonic() >= (self.interrupts_at if running else self.last_claim_at)
        if over:
            log.info(
                "the time limit ends the trainer seconds=%g trials=%d",
                self._options.max_seconds,
                running,
            )

        return over

    def next_moment(self) -> float:
        """Return the next moment at which the daemon must look, by `time.monotonic`."""
        last = self.last_claim_at
        return last if time.monotonic() < last else self.interrupts_at


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
        """Return the seconds that are left; None without a request, or if trials finish first."""
        signal = self._signal
        if signal.requested_at is None or signal.requests <= self._options.drain:
            return None

        if not self._interrupted:
            self._interrupted = True
            for work in self._in_flight():
                work.trial.interrupt()

        return signal.requested_at + self._options.parting_seconds - time.monotonic()
