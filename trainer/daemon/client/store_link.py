"""Calls to the store across its outages: a failed call is followed by a pause without calls."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from typing import TypeVar

from archive.errors import QueryError, StoreError
from archive.trainer.daemon import events

T = TypeVar("T")
log = logging.getLogger("archive.trainer")

BACKOFF_SECONDS = 2.0
"""Mean pause after a failed call; each further failure doubles it."""
MOST_BACKOFFS = 8
"""Longest pause, as a multiple of the first."""


class StoreLink:
    """Calls the store and keeps track of its outages.

    Args:
        emit: Receives the beginning and the end of each outage.

    Attributes:
        contact: Time of the last answer, in seconds since 1970.
        retry_at: Time of the next call after a failed one, by `time.monotonic`.
        outage_since: Beginning of the present outage, by `time.monotonic`; None while the store answers.
    """

    def __init__(self, emit: events.Observer) -> None:
        self.contact = time.time()
        self.retry_at = 0.0
        self.outage_since: float | None = None
        self._emit = emit
        self._failures = 0

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
            answer = request()
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

    def _fail(self, error: StoreError) -> None:
        log.warning("store is unreachable, will retry: %s", error)
        self.pause()
        self._failures += 1
        if self.outage_since is None:
            self.outage_since = time.monotonic()
            self._emit(events.StoreUnreachable(str(error)))
