"""Stop requests of a daemon: a signal, a call, or the end of the process that it works for."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import psutil

log = logging.getLogger("archive.trainer")


class StopSignal:
    """Counts stop requests, and watches a parent process.

    Args:
        parent: Id of the process whose end stops the daemon, if any.

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
