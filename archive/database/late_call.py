"""A call in a separate thread, whose caller may stop waiting.

A thread cannot be interrupted in a read from the network.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
_LOOK_SECONDS = 0.5
"""Longest time between two looks at a limit."""


def within(seconds: float, request: Callable[[], T], error: Exception) -> T:
    """Return the answer of a request, or stop waiting for it and raise an error.

    Args:
        seconds: Longest time to wait; where it is infinite, the request runs in the thread of the
            caller.
        request: Function to call; it continues in its thread.
        error: Error of an answer that does not come in time.
    """
    if math.isinf(seconds):
        return request()

    call = LateCall(request, "request")
    if not call.ends_within(seconds):
        raise error

    return call.answer()


class LateCall(Generic[T]):
    """A call that has begun, and may end late or never.

    Args:
        request: Function to call.
        name: Name of the thread.

    Attributes:
        began: Its begin, by `time.monotonic`.
        ended: Its end; infinite before.
    """

    def __init__(self, request: Callable[[], T], name: str) -> None:
        """Begin the call."""
        self.began = time.monotonic()
        self.ended = math.inf
        self._request = request
        self._answers: list[T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def ends_within(self, limit: float | Callable[[], float]) -> bool:
        """Wait at most so many seconds for the end, and return whether it has come.

        A function as argument may change its value meanwhile.
        """
        begin = time.monotonic()
        while self._thread.is_alive():
            seconds = limit() if callable(limit) else limit
            left = begin + seconds - time.monotonic()
            if left <= 0:
                return False

            self._thread.join(min(left, _LOOK_SECONDS))

        return True

    @property
    def has_answer(self) -> bool:
        """Whether it has ended without an error."""
        return bool(self._answers)

    def answer(self) -> T:
        """Return the answer of a call that has ended, or raise its error."""
        if self._error is not None:
            raise self._error

        return self._answers[0]

    def _run(self) -> None:
        try:
            self._answers.append(self._request())
        except BaseException as error:
            self._error = error

        self.ended = time.monotonic()
