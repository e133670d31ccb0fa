"""Retries of the first connection to the store; later outages are
`archive.trainer.daemon.client.store_link`'s.

    connect ──> store                            most often, at once
     └──> unreachable ── pause ──> connect ──> …     until it answers, time is up, or the trainer is stopped

A wrong login, database name or release is no outage and is raised at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from archive.backoff import vary
from archive.errors import StoreUnavailableError

T = TypeVar("T")

PAUSE = 2.0
"""Longest time in seconds between two attempts."""
REPORT_SECONDS = 60.0
"""Seconds between two log lines on one outage."""


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
