"""Work that takes longer than a request: it runs in a thread, reports its progress, and ends by
itself.

    request ──> Job.outcome() ──> not done: its share, and the browser asks again
                      └─────────> done: the result, or its error

A job ends after its limit of time, or when no browser has asked for a while, which means that the
page was left.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from archive.errors import ArchiveError, UsageError

log = logging.getLogger("archive.dashboard")

T = TypeVar("T")

LEFT_SECONDS = 15.0
"""Time without a request after which the work ends, since no page waits for its result."""


class Job(Generic[T]):
    """A running or finished piece of work. Threads may share it.

    Args:
        work: Does the work. It calls its argument with the share that is done; that call may raise,
            to end the work.
        limit: Seconds after which the work is ended.
        too_long: Remedy, as part of the error of a job that takes longer.
    """

    def __init__(
        self, work: Callable[[Callable[[float], None]], T], limit: float, too_long: str
    ) -> None:
        """Start a thread."""
        self.limit = limit
        self.share = 0.0
        self._work = work
        self._too_long = too_long
        self._begin = self._asked = time.monotonic()
        self._done = threading.Event()
        self._result: list[T] = []
        self._error: ArchiveError | None = None
        threading.Thread(target=self._run, daemon=True, name="dashboard job").start()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._begin

    @property
    def failed(self) -> bool:
        """Whether it ended without a result; a new job may do better."""
        return self._done.is_set() and self._error is not None

    def outcome(self, patience: float) -> T | None:
        """Return the result; None if the job still runs after a wait of `patience` seconds.

        Raises:
            ArchiveError: The work failed, or took too long.
        """
        self._asked = time.monotonic()
        if not self._done.wait(patience):
            return None

        if self._error is not None:
            raise self._error

        return self._result[0]

    def _run(self) -> None:
        try:
            self._result.append(self._work(self._report))
        except ArchiveError as error:
            self._error = error
        except Exception:
            log.exception("a job of the page failed")
            self._error = ArchiveError("the dashboard failed to answer; its log says why")

        self._done.set()

    def _report(self, share: float) -> None:
        self.share = share
        if self.seconds > self.limit:
            raise UsageError(
                f"this takes longer than {self.limit:g} seconds, {share:.0%} is "
                f"done: {self._too_long}"
            )

        if time.monotonic() - self._asked > LEFT_SECONDS:
            raise UsageError("the work was ended, since no page waited for it: try again")
