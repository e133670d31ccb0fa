"""Calls to the store across its outages: a failed call is followed by a pause without calls.

A server that is frozen, or behind a cable that was cut, keeps its connections and sends nothing.
The driver waits for minutes then. So each call has a separate thread, and is given up after a
while, sooner when the daemon stops: its loop watches the trials. A call that was given up may still
succeed; when it has ended it is repeated, as after a lost connection, with more time where it had
an answer.

The first connection is repeated until the store answers, the time is up, or the trainer is stopped
(`wait_for_store`). A wrong login, database name or release is no outage and is raised at once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, TypeVar

from archive.backoff import vary
from archive.database.late_call import LateCall
from archive.errors import QueryError, StoreError, StoreUnavailableError
from archive.trainer.daemon import events

T = TypeVar("T")
log = logging.getLogger("archive.trainer")

BACKOFF_SECONDS = 2.0
"""Mean pause after a failed call; each further failure doubles it."""
MOST_BACKOFFS = 8
"""Longest pause, as a multiple of the first."""
ANSWER_SECONDS = 20.0
"""Longest wait for the answer to a call, unless an earlier one took longer."""
MOST_SECONDS = 60.0
"""The same after calls that took longer."""
PARTING_SECONDS = 2.0
"""Least time of a call when the daemon stops."""

PAUSE = 2.0
"""Longest time in seconds between two attempts."""
REPORT_SECONDS = 60.0
"""Seconds between two log lines on one outage."""


class StoreLink:
    """Calls the store and keeps track of its outages.

    Args:
        emit: Receives the beginning and the end of each outage.
        stopping: Returns the seconds that a call may take although the daemon was asked to stop;
            None where it was not.

    Attributes:
        contact: Time of the last answer, in seconds since 1970.
        retry_at: Time of the next call after a failed one, by `time.monotonic`.
        outage_since: Beginning of the present outage, by `time.monotonic`; None while the store
            answers.
    """

    def __init__(
        self, emit: events.Observer, stopping: Callable[[], float | None] = lambda: None
    ) -> None:
        self.contact = time.time()
        self.retry_at = 0.0
        self.outage_since: float | None = None
        self._emit = emit
        self._stopping = stopping
        self._failures = 0
        self._answer_seconds = ANSWER_SECONDS
        self._unfinished: LateCall[Any] | None = None

    @property
    def unreachable(self) -> bool:
        """Whether a call failed a moment ago, so that none is made now."""
        return time.monotonic() < self.retry_at

    def pause(self) -> None:
        """Make no call for a random time: a fleet must not return to a server at once."""
        pause = BACKOFF_SECONDS * min(2.0 ** min(self._failures, 30), MOST_BACKOFFS)
        self.retry_at = time.monotonic() + pause / 2 + vary(pause, 1.0)

    def note_answer(self) -> None:
        """Record an answer of the store; any thread may call this."""
        self.contact = time.time()

    def call(self, request: Callable[[], T], *, raise_rejections: bool = False) -> T | None:
        """Return the answer to a request; without an answer, begin a pause and return None.

        Args:
            request: Calls the store.
            raise_rejections: Whether the caller handles a QueryError; else it counts as an outage.

        Raises:
            QueryError: The server rejects the request, with `raise_rejections`.
            ArchiveError: Any error that is no fault of the server.
        """
        try:
            answer = self._answer(request)
        except StoreError as error:
            if raise_rejections and isinstance(error, QueryError):
                raise

            self._fail(error)
            return None

        self.note_answer()
        self._failures = 0
        if self.outage_since is not None:
            seconds = time.monotonic() - self.outage_since
            self.outage_since = None
            log.info("store answers again seconds=%.1f", seconds)
            self._emit(events.StoreReachable(seconds))

        return answer

    def _answer(self, request: Callable[[], T]) -> T:
        if self._unfinished is not None:
            self._finish(self._unfinished)

        call = LateCall(request, "store-call")
        if not call.ends_within(self._limit):
            self._unfinished = call
            raise StoreUnavailableError(
                f"a call has no answer after {time.monotonic() - call.began:.0f} s"
            )

        return call.answer()

    def _finish(self, earlier: LateCall[Any]) -> None:
        """Check that an earlier call has ended, and adapt the time of the next one.

        Raises:
            StoreUnavailableError: It has not.
        """
        if not earlier.ends_within(lambda: 0.0 if self._stopping() is None else PARTING_SECONDS):
            raise StoreUnavailableError("an earlier call has no answer yet")

        # The store is slow, and not away: the next call gets the time that it needs.
        needed = 2.0 * (earlier.ended - earlier.began) if earlier.has_answer else 0.0
        self._answer_seconds = min(max(needed, ANSWER_SECONDS), MOST_SECONDS)
        self._unfinished = None

    def _limit(self) -> float:
        left = self._stopping()
        if left is None:
            return self._answer_seconds

        return min(max(left, PARTING_SECONDS), self._answer_seconds)

    def _fail(self, error: StoreError) -> None:
        log.warning("store is unreachable, will retry: %s", error)
        self.pause()
        self._failures += 1
        if self.outage_since is None:
            self.outage_since = time.monotonic()
            self._emit(events.StoreUnreachable(str(error)))


def wait_for_store(
    connect: Callable[[], T],
    seconds: float | None,
    report: Callable[[str], None],
    stopped: Callable[[], bool] = lambda: False,
) -> T | None:
    """Call a function until the store is reachable, and return its result; None if stopped before.

    Args:
        connect: Reaches the store; called once or many times.
        seconds: Longest wait; None waits without limit, 0 makes one attempt.
        report: Receives one line on the outage, at its start and every minute.
        stopped: Whether to give up waiting.

    Raises:
        StoreUnavailableError: Time is up; the last reason.
        ArchiveError: Any other error of `connect`.
    """
    began = time.monotonic()
    reported: float | None = None
    while not stopped():
        try:
            return connect()
        except StoreUnavailableError as error:
            waited = time.monotonic() - began
            if seconds is not None and waited + PAUSE > seconds:
                raise

            if reported is None or waited - reported > REPORT_SECONDS:
                limit = "until it answers" if seconds is None else f"for {seconds - waited:.0f} s"
                report(f"waiting {limit}: {error}")
                reported = waited

        # Trainers of a fleet start together, and must not come back together.
        _sleep(vary(PAUSE), stopped)

    return None


def _sleep(seconds: float, stopped: Callable[[], bool]) -> None:
    deadline = time.monotonic() + seconds
    while not stopped() and (left := deadline - time.monotonic()) > 0:
        time.sleep(min(left, 0.1))
