"""Calls to the store across its outages: a failed call is followed by a pause without calls.

A server that is frozen, or behind a cable that was cut, keeps its connections and sends nothing. The driver waits for
minutes then. So each call has a thread of its own, and is given up after `ANSWER_SECONDS`, or soon after a request to
stop: the daemon's loop watches its trials. A call that was given up may still succeed; it is repeated, as after a lost
connection, when it has ended.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from archive.errors import QueryError, StoreError, StoreUnavailableError
from archive.trainer.daemon import events

T = TypeVar("T")
log = logging.getLogger("archive.trainer")

BACKOFF_SECONDS = 2.0
"""Mean pause after a failed call; each further failure doubles it."""
MOST_BACKOFFS = 8
"""Longest pause, as a multiple of the first."""
ANSWER_SECONDS = 20.0
"""Longest wait for the answer to a call."""
PARTING_SECONDS = 2.0
"""The same after a request to stop."""


class StoreLink:
    """Calls the store and keeps track of its outages.

    Args:
        emit: Receives the beginning and the end of each outage.
        stopping: Returns whether the daemon was asked to stop.

    Attributes:
        contact: Time of the last answer, in seconds since 1970.
        retry_at: Time of the next call after a failed one, by `time.monotonic`.
        outage_since: Beginning of the present outage, by `time.monotonic`; None while the store answers.
    """

    def __init__(self, emit: events.Observer, stopping: Callable[[], bool] = lambda: False) -> None:
        self.contact = time.time()
        self.retry_at = 0.0
        self.outage_since: float | None = None
        self._emit, self._stopping = emit, stopping
        self._failures = 0
        self._unfinished: threading.Thread | None = None

    @property
    def unreachable(self) -> bool:
        """Whether a call failed a moment ago, so that none is made now."""
        return time.monotonic() < self.retry_at

    def pause(self) -> None:
        """Make no call for a while, of random length: a fleet must not return to a server at the same moment."""
        pause = BACKOFF_SECONDS * min(2.0 ** min(self._failures, 30), MOST_BACKOFFS)
        self.retry_at = time.monotonic() + pause * random.uniform(0.5, 1.5)

    def answered(self) -> None:
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
        self.answered()
        self._failures = 0
        if self.outage_since is not None:
            seconds, self.outage_since = time.monotonic() - self.outage_since, None
            log.info("store answers again seconds=%.1f", seconds)
            self._emit(events.StoreReachable(seconds))
        return answer

    def _answer(self, request: Callable[[], T]) -> T:
        if self._unfinished is not None and self._unfinished.is_alive():
            raise StoreUnavailableError("an earlier call has no answer yet")
        answers: list[T] = []
        errors: list[BaseException] = []

        def run() -> None:
            try:
                answers.append(request())
            except BaseException as error:
                errors.append(error)

        thread, begin = threading.Thread(target=run, name="store-call", daemon=True), time.monotonic()
        thread.start()
        while thread.is_alive():
            thread.join(PARTING_SECONDS / 4)
            waited = time.monotonic() - begin
            if waited > (PARTING_SECONDS if self._stopping() else ANSWER_SECONDS) and thread.is_alive():
                self._unfinished = thread
                raise StoreUnavailableError(f"a call has no answer after {waited:.0f} s")
        if errors:
            raise errors[0]
        return answers[0]

    def _fail(self, error: StoreError) -> None:
        log.warning("store is unreachable, will retry: %s", error)
        self.pause()
        self._failures += 1
        if self.outage_since is None:
            self.outage_since = time.monotonic()
            self._emit(events.StoreUnreachable(str(error)))
