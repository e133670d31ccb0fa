"""Questions to places far away, which may never answer: who asks goes on, and asks there no more for a while.

A server that takes connections and says nothing would hold a trainer up for as long as its package waits, with every
lease that the trainer holds. The question itself cannot be taken back: its thread ends with its connection, or with
the process.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

ANSWER_SECONDS = 4.0
"""Less than a third of a lease (`archive.notices`), which is renewed as often."""
SILENT_SECONDS = 60.0


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
        answers: list[bool] = []

        def ask() -> None:
            with suppress(Exception):
                answers.append(question())

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        thread.join(self._answer_seconds)
        if thread.is_alive():
            self._silent_until[place] = time.monotonic() + self._silent_seconds
        return bool(answers and answers[0])
