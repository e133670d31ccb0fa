"""Calls to the store across its outages: after a failed call, none is made for `BACKOFF_SECONDS`."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from archive.errors import QueryError, StoreError
from archive.trainer.daemon import events

T = TypeVar("T")
log = logging.getLogger("archive.trainer")

BACKOFF_SECONDS = 2.0
"""Pause after a failed call."""


class StoreLink:
    """Calls the store and keeps track of its outages.

    Args:
        emit: Receives the begin and the end of each outage.

    Attributes:
        contact: Time of the last answer, in seconds since 1970.
        retry_at: Time of the next call after a failed one, by `time.monotonic`.
        outage_since: Begin of the present outage, by `time.monotonic`; None while the store answers.
    """

    def __init__(self, emit: events.Observer) -> None:
        self.contact = time.time()
        self.retry_at = 0.0
        self.outage_since: float | None = None
        self._emit = emit

    @property
    def unreachable(self) -> bool:
        """Whether a call failed a moment ago, so that none is made now."""
        return time.monotonic() < self.retry_at

    def pause(self) -> None:
        """Make no call for `BACKOFF_SECONDS`."""
        self.retry_at = time.monotonic() + BACKOFF_SECONDS

    def call(self, request: Callable[[], T], *, raise_rejections: bool = False) -> T | None:
        """Return the answer to a request; None, and a pause, where the store gives none.

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
        self.contact = time.time()
        if self.outage_since is not None:
            seconds, self.outage_since = time.monotonic() - self.outage_since, None
            log.info("store answers again seconds=%.1f", seconds)
            self._emit(events.StoreReachable(seconds))
        return answer

    def _fail(self, error: StoreError) -> None:
        log.warning("store is unreachable, will retry: %s", error)
        self.pause()
        if self.outage_since is None:
            self.outage_since = time.monotonic()
            self._emit(events.StoreUnreachable(str(error)))
