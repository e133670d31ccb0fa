"""Timeouts and a circuit breaker for remote storage, which may never answer.

A server that accepts connections and sends nothing would block a trainer for as long as its client
package waits, and with the trainer all its leases. A pending call cannot be cancelled: its thread
ends with its connection, or with the process.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from archive.database.late_call import LateCall

T = TypeVar("T")

ANSWER_SECONDS = 4.0
"""Less than a third of a lease (`archive.queue.updates`), which is renewed as often."""
OPEN_SECONDS = 60.0
WAIT_SECONDS = 2.0


class CircuitBreaker:
    """Skips calls to locations that have timed out lately. Safe to share between threads.

    Args:
        answer_seconds: Timeout of a call.
        open_seconds: Time without calls to a location after a timeout.
    """

    def __init__(
        self, answer_seconds: float = ANSWER_SECONDS, open_seconds: float = OPEN_SECONDS
    ) -> None:
        """Start without timeouts."""
        self._answer_seconds = answer_seconds
        self._open_seconds = open_seconds
        self._open_until: dict[str, float] = {}

    def call(self, location: str, request: Callable[[], bool]) -> bool:
        """Return the answer to a request; False if the location fails, or timed out lately."""
        if time.monotonic() < self._open_until.get(location, 0.0):
            return False

        answer: bool | None = False
        with suppress(Exception):
            answer = call_with_timeout(request, self._answer_seconds)

        if answer is None:
            self._open_until[location] = time.monotonic() + self._open_seconds

        return bool(answer)


def call_with_timeout(
    work: Callable[[], T],
    seconds: float,
    on_wait: Callable[[], None] = lambda: None,
    wait_seconds: float = WAIT_SECONDS,
) -> T | None:
    """Return the result of a function, or raise its error; None after the timeout.

    Args:
        work: Runs in a separate thread, which continues after a timeout.
        seconds: The timeout.
        on_wait: Called at intervals meanwhile.
        wait_seconds: The interval.
    """
    call = LateCall(work, "remote storage")
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        if call.ends_within(min(left, wait_seconds)):
            return call.answer()

        on_wait()

    return call.answer() if call.ends_within(0.0) else None
