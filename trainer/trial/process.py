"""The daemon's handle of a trial: starts its process, reads its messages, interrupts and kills it.

    TrialProcess(spec)  ── fork server, with torch loaded ──> builds, trains, saves the weights
    messages()          <── pipe ──────────────────────────── EpochReport …, one terminal message
    interrupt()         ── pipe ────────────────────────────> saves a checkpoint, TrialInterrupted
    the daemon's side                                         archive.trainer.trial.main

A crash, a signal or exhausted memory ends one trial and nothing else. The fork server imports torch
once, so a trial starts in milliseconds; the daemon itself never loads it. On a GPU, the next
trial's process is connected already (`archive.trainer.trial.spare`). A trial that ends without a
terminal message was killed or crashed, and its exit status tells the reason. A trial of a dead
daemon finds the pipe closed and ends at once. Signals to the whole process group have no effect on
trials: the daemon decides. All processes that a recipe has started end with its trial
(`archive.trainer.trial.process_tree`). The daemon never waits for a trial, whatever the trial
writes (`archive.trainer.trial.messages`) or leaves open.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection

import psutil

from archive.queue.causes import Cause
from archive.trainer.trial import fork_server, log, process_tree, spare
from archive.trainer.trial.main import run
from archive.trainer.trial.messages import (
    EpochReport,
    FrameReader,
    Heartbeat,
    Message,
    TrialFailed,
    UnreadableFrameError,
)
from archive.trainer.trial.spec import TrialSpec

_JOIN_SECONDS = 5.0
_PART = 1 << 16
_MOST_PARTS = 256
_EXIT_SECONDS = 2.0
"""Longest time between the end of a trial's pipe and the end of its process."""
STACKS_SECONDS = 0.2
"""Time in which a process writes the stacks of its threads."""


class TrialProcess:
    """A trial in a separate process.

    Args:
        spec: The trial.

    Attributes:
        spec: The trial.
        pid: Id of the process.
        connection: Pipe that is ready to read when there are messages.
        last_seen: Time of the last message or heartbeat, by `time.monotonic`.
    """

    due = None
    enforces_limits = False

    def __init__(self, spec: TrialSpec) -> None:
        """Start the process.

        Raises:
            TrainingError: No process could be started.
        """
        self.spec = spec
        self.connection, self._process = spare.take(spec) or fork_server.start(run, spec)
        os.set_blocking(self.connection.fileno(), False)
        self.last_seen = time.monotonic()
        self._over = self._interrupted = False
        self._frames = FrameReader()
        self._closed_at: float | None = None
        self.pid: int = self._process.pid
        self._server = fork_server.pid()
        self._handle: psutil.Process | None = None
        with suppress(psutil.NoSuchProcess):  # It has ended already, and its exit status tells why.
            self._handle = psutil.Process(self.pid)

        _living.add(self.pid)

    @property
    def pids(self) -> tuple[int, ...]:
        """Id of the process, as the only one."""
        return (self.pid,)

    @property
    def waitable(self) -> list[Connection | int]:
        """The pipe, and the end of the process: they become ready with news."""
        # Children of the recipe may hold the pipe open. Where the fork server has died, its news
        # says nothing.
        ends = [] if self._exit_is_known() and self._alive() else [self._process.sentinel]
        return ends if self._closed_at is not None else [self.connection, *ends]

    def messages(self) -> list[Message]:
        """Return the messages that have arrived, without waiting; the last one ends the trial."""
        arrived: list[Message] = []
        # In this order: a message that was written before the end is read.
        ended = (self._closed_at is not None or self._exit_is_known()) and not self._alive()
        self._read()
        while not self._over and (message := self._next(ended)) is not None:
            self.last_seen = time.monotonic()
            if isinstance(message, Heartbeat):
                continue

            if isinstance(message, TrialFailed):
                message = replace(message, log_tail=self._log_tail())

            arrived.append(message)
            self._over = not isinstance(message, EpochReport)
            if not self._over:
                spare.prepare_next(self.spec)

        return arrived

    def interrupt(self) -> None:
        """Request a checkpoint after the present step, and an end with `TrialInterrupted`.

        Returns at once. A trial that is about to finish may finish; one that does not answer should
        be killed.
        """
        if not self._interrupted:
            self._interrupted = True
            with suppress(OSError):  # The process is gone; its last message tells why.
                self.connection.send("interrupt")

    def abandon(self, reason: str, cause: Cause) -> TrialFailed:
        """Kill a trial; its log gets the stacks of its threads before.

        Args:
            reason: Recorded reason of the failure.
            cause: Cause of the failure; after `Cause.LIMIT`, another attempt would fail, too.
        """
        if self.show_stacks():
            time.sleep(STACKS_SECONDS)

        self.kill()
        return TrialFailed(reason, cause is not Cause.LIMIT, self._log_tail(), cause)

    def show_stacks(self) -> bool:
        """Let the process write the stacks of its threads; return whether it has a log and lives."""
        if self.spec.log is None or not self._alive():
            return False

        with suppress(OSError):
            os.kill(self.pid, signal.SIGUSR1)

        return True

    def kill(self) -> None:
        """Kill the process in any state, with all that it has started, and wait for its end."""
        self._over = True
        _living.discard(self.pid)
        process_tree.end_all(self.pid, self._alive(), self._server, _living)
        self._process.join(_JOIN_SECONDS)
        self.connection.close()

    def _log_tail(self) -> str:
        return log.tail(self.spec.log, mark=log.mark_of(self.spec.ranks))

    def _next(self, ended: bool) -> Message | Heartbeat | None:
        try:
            message = self._frames.next()
        except UnreadableFrameError as error:
            return TrialFailed(
                f"a message of the trial cannot be read: {error}", retry=True, cause=Cause.CRASH
            )

        if message is not None:
            return message

        if ended:
            return TrialFailed(self._cause_of_death(), retry=True, cause=Cause.CRASH)

        if self._closed_at is not None and time.monotonic() - self._closed_at > _EXIT_SECONDS:
            return TrialFailed(
                "the trial closed its pipe and does not end", retry=True, cause=Cause.CRASH
            )

        return None

    def _read(self) -> None:
        """Read the content of the pipe, a part of it if it never ends."""
        for _ in range(_MOST_PARTS if self._closed_at is None else 0):
            try:
                content = os.read(self.connection.fileno(), _PART)
            except BlockingIOError:
                return
            except OSError:
                content = b""

            if not content:
                self._closed_at = time.monotonic()
                return

            self._frames.feed(content)

    def _exit_is_known(self) -> bool:
        return self._process.exitcode is not None

    def _alive(self) -> bool:
        handle = self._handle
        if handle is None:
            return False

        try:
            return bool(handle.is_running() and handle.status() != psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return False

    def _cause_of_death(self) -> str:
        self._process.join(_JOIN_SECONDS)
        code = self._process.exitcode
        if code is None:
            return "the trial's process ended, and nothing tells why"

        if code >= 0:
            return f"the trial's process ended with status {code} before it had a result"

        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        reason = f"the trial's process was ended by {name}"
        return f"{reason} (out of memory, or killed by hand)" if name == "SIGKILL" else reason


_living: set[int] = set()
"""Processes of the trials of this daemon."""
