"""Questions to places far away, which may never answer: who asks goes on, and asks there no more for a while.

A server that takes connections and says nothing would hold a trainer up for as long as its package waits, with every
lease that the trainer holds. A question itself cannot be taken back: its thread ends with its connection, or with the
process.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")

ANSWER_SECONDS = 4.0
"""Less than a third of a lease (`archive.queue.updates`), which is renewed as often."""
SILENT_SECONDS = 60.0
BEAT_SECONDS = 2.0


class Places:
    """Knows which places have not answered lately. Safe to share between threads.

    Args:
        answer_seconds: How long to wait for an answer.
        silent_seconds: How long to leave a place alone that gave none.
    """

    def __init__(self, answer_seconds: float = ANSWER_SECONDS, silent_seconds: float = SILENT_SECONDS) -> None:
        """Know of none yet."""
        self._answer_seconds, self._silent_seconds = answer_seconds, silent_seconds
        self._silent_until: dict[str, float] = {}

    def ask(self, place: str, question: Callable[[], bool]) -> bool:
        """Return the answer to a question; False where the place gives none in time, fails, or was silent lately."""
        if time.monotonic() < self._silent_until.get(place, 0.0):
            return False
        answer: bool | None = False
        with suppress(Exception):
            answer = in_time(question, self._answer_seconds)
        if answer is None:
            self._silent_until[place] = time.monotonic() + self._silent_seconds
        return bool(answer)


def in_time(
    work: Callable[[], T],
    seconds: float,
    on_beat: Callable[[], None] = lambda: None,
    beat_seconds: float = BEAT_SECONDS,
) -> T | None:
    """Return what work returns, or raises; None where it takes longer than so many seconds, and is left to itself.

    Args:
        work: Done in a thread of its own.
        seconds: How long to wait.
        on_beat: Called now and then meanwhile.
        beat_seconds: How often.
    """
    answers: list[T] = []
    errors: list[Exception] = []

    def run() -> None:
        try:
            answers.append(work())
        except Exception as error:
            errors.append(error)

    thread, until = threading.Thread(target=run, daemon=True), time.monotonic() + seconds
    thread.start()
    while thread.is_alive() and (left := until - time.monotonic()) > 0:
        thread.join(min(left, beat_seconds))
        if thread.is_alive():
            on_beat()
    if errors:
        raise errors[0]
    return answers[0] if answers else None
