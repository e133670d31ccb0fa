"""The process of an observer: receives records through a queue, and never delays its trainer.

    trainer ── put ──> queue ── thread ── pipe ──> process: open, on_start, on_metrics …, close
                         └ full: metrics are dropped          └ an exception: logged once

A process and no thread: an observer's library may crash, exit, hang or occupy the interpreter. It
is started by the fork server of the trials, without the database's login. It ends with its trainer:
at an orderly end after `close`, which gets a limited time, and otherwise when the pipe is closed.
"""

from __future__ import annotations

import logging
import os
import queue
import signal
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from archive.errors import TrainingError
from archive.trainer.observers.base import ObservedTrial, TrialEnd, TrialObserver, redact
from archive.trainer.trial import fork_server
from archive.trainer.trial import log as triallog

log = logging.getLogger("archive.trainer")

CAPACITY = 1000
"""Number of waiting records from which metrics are dropped; starts and ends of trials, from twice
as many."""
ORPHAN_SECONDS = 60.0
"""Longest life of an observer after its trainer was killed."""

_JOIN_SECONDS = 5.0
_WATCH_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Started:
    """A trial begins; the other records name it by its `run`."""

    trial: ObservedTrial


@dataclass(frozen=True, slots=True)
class Measured:
    """A trial has metrics of a step."""

    run: str
    step: int
    metrics: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Ended:
    """A trial has ended."""

    run: str
    end: TrialEnd


ObserverRecord = Started | Measured | Ended


@dataclass(frozen=True, slots=True)
class ObserverReply:
    """A reply of an observer's process: the place of the results, the first failure, or the end.

    Attributes:
        place: Folder or address of the results; None in the other replies.
        failure: The failed call and its reason; None in the other replies.
        failures: Number of failed calls, in the last reply.
    """

    place: str | None = None
    failure: str | None = None
    failures: int | None = None


class ObserverProcess:
    """An observer in a separate process.

    Args:
        name: Name of the observer, for the log.
        observer: The observer; pickled.
        output: File of its output; None leaves the output on standard error.
        capacity: See `CAPACITY`.

    Attributes:
        dropped: Number of records that were dropped.
    """

    def __init__(
        self,
        name: str,
        observer: TrialObserver,
        output: Path | None = None,
        capacity: int = CAPACITY,
    ) -> None:
        """Start; returns at once, before the process runs."""
        self.name = name
        self.dropped = 0
        self._observer = observer
        self._output = output
        self._capacity = capacity
        self._records: queue.SimpleQueue[ObserverRecord | None] = queue.SimpleQueue()
        self._process: Any = None
        self._killed = False
        self._gone = False
        self._over = False
        self._thread = threading.Thread(target=self._feed, daemon=True, name=f"observer {name}")
        self._thread.start()

    def put(self, record: ObserverRecord) -> None:
        """Pass a record on, or drop it; never waits."""
        limit = self._capacity if isinstance(record, Measured) else 2 * self._capacity
        if self._gone or self._records.qsize() >= limit:
            self.dropped += 1
            if self.dropped == 1 and not self._gone:
                log.warning("observer is too slow, records are dropped observer=%s", self.name)

            return

        self._records.put(record)

    def finish(self) -> None:
        """Let the observer end, after the records that wait."""
        self._records.put(None)

    def close(self, seconds: float) -> None:
        """Wait so many seconds until the observer has ended, after `finish`, then kill it."""
        self._thread.join(seconds)
        if self._thread.is_alive():
            log.warning(
                "observer did not end in time, killed observer=%s seconds=%g", self.name, seconds
            )

        self._kill()
        self._thread.join(_JOIN_SECONDS)
        if self.dropped:
            log.warning("observer lacks records observer=%s dropped=%d", self.name, self.dropped)

    def _kill(self) -> None:
        self._killed = True
        if self._process is not None:
            self._process.kill()
            self._process.join(_JOIN_SECONDS)

    # The methods below run in the thread.

    def _feed(self) -> None:
        try:
            pipe, self._process = fork_server.start(serve, (self._observer, self._output))
        except Exception as error:
            # A plug-in may hold objects that cannot be pickled.
            reason = f"{type(error).__name__}: {error}"
            if isinstance(error, TrainingError):
                reason = error.reason

            log.warning("observer cannot start observer=%s reason=%r", self.name, redact(reason))
            self._gone = True
            return

        if self._killed:
            self._process.kill()

        try:
            while (record := self._records.get()) is not None:
                pipe.send(record)
                self._log_replies(pipe)

            pipe.send(None)
            while True:
                self._log_replies(pipe, None)
        except (OSError, EOFError):
            self._gone = True
            if not self._over and not self._killed:
                self._process.join(_JOIN_SECONDS)
                log.warning(
                    "observer died observer=%s status=%s", self.name, self._process.exitcode
                )
        finally:
            pipe.close()

    def _log_replies(self, pipe: Connection, seconds: float | None = 0.0) -> None:
        """Log the replies that have arrived.

        Args:
            pipe: Pipe to the process.
            seconds: Longest wait for the first reply; None for no limit.
        """
        while pipe.poll(seconds):
            seconds = 0.0
            reply: ObserverReply = pipe.recv()
            if reply.place:
                log.info("observing observer=%s place=%s", self.name, reply.place)

            if reply.failure is not None:
                log.warning(
                    "observer failed, will go on observer=%s reason=%r", self.name, reply.failure
                )

            if reply.failures is not None:
                self._over = True
                if reply.failures:
                    log.warning("observer ended observer=%s failures=%d", self.name, reply.failures)


# The functions below run in a separate process.


def serve(argument: tuple[TrialObserver, Path | None], trainer: Connection) -> None:
    """Run an observer until its trainer ends."""
    observer, output = argument
    # Ctrl-C reaches every process of the terminal; the trainer decides when its observers end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if output is not None:
        triallog.capture(output)

    threading.Thread(target=_watch, args=(os.getppid(),), daemon=True, name="watch").start()
    calls = Calls(observer, trainer)
    with suppress(EOFError, OSError):  # The trainer was killed; its earlier records are kept.
        calls.open()
        while (record := trainer.recv()) is not None:
            calls.make(record)

    calls.close()


def _watch(parent: int) -> None:
    """End this process some time after the fork server, which ends with the trainer."""
    while os.getppid() == parent:
        time.sleep(_WATCH_SECONDS)

    time.sleep(ORPHAN_SECONDS)
    os._exit(1)


@dataclass
class Calls:
    """Calls of an observer's methods: an exception ends the call alone.

    Args:
        observer: The observer.
        trainer: Pipe to the trainer.

    Attributes:
        failures: Number of calls that raised.
    """

    observer: TrialObserver
    trainer: Connection
    failures: int = 0
    _trials: dict[str, ObservedTrial] = field(default_factory=dict)
    _open: bool = False

    def open(self) -> None:
        """Open the observer; if that fails, all later calls are left out."""

        def open_observer() -> None:
            address = self.observer.open()
            self._open = True
            self._reply(ObserverReply(place=redact(address)))

        self._try("open", open_observer)

    def make(self, record: ObserverRecord) -> None:
        """Make the call for a record; none for a trial without a successful start."""
        if not self._open:
            self.failures += 1
            return

        match record:
            case Started(trial):
                if self._try("on_start", lambda: self.observer.on_start(trial)):
                    self._trials[trial.run] = trial
            case Measured(run, step, metrics) if run in self._trials:
                trial = self._trials[run]
                self._try("on_metrics", lambda: self.observer.on_metrics(trial, step, metrics))
            case Ended(run, end) if run in self._trials:
                trial = self._trials.pop(run)
                self._try("on_end", lambda: self.observer.on_end(trial, end))

    def close(self) -> None:
        """Close the observer, and reply with the number of failed calls."""
        if self._open:
            self._try("close", self.observer.close)

        self._reply(ObserverReply(failures=self.failures))

    def _try(self, name: str, call: Callable[[], None]) -> bool:
        try:
            call()
        # A library may end the process of a script that it takes for its own.
        except (Exception, SystemExit) as error:
            self.failures += 1
            if self.failures == 1:
                log.error("observer failed call=%s %s", name, redact(traceback.format_exc()))
                lines = str(error).strip().splitlines() or ["without a message"]
                reason = f"{name}: {type(error).__name__}: {lines[0]}"
                self._reply(ObserverReply(failure=redact(reason)))

            return False

        return True

    def _reply(self, reply: ObserverReply) -> None:
        with suppress(OSError):  # The trainer was killed, or has stopped to wait.
            self.trainer.send(reply)
