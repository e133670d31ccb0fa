"""Back-off: pauses between the attempts of a call, each longer than the last, of random length."""

from __future__ import annotations

import random


def vary(seconds: float, share: float = 0.5) -> float:
    """Return a random pause: processes that failed together must not return together.

    Args:
        seconds: Longest pause.
        share: Part of it that is random, from 0 to 1.
    """
    return seconds * random.uniform(1.0 - share, 1.0)


class Backoff:
    """Growing pauses.

    Args:
        first: Longest first pause, in seconds.
        most: Longest pause, in seconds.
        factor: Ratio of a pause to the one before.
        share: Random part of a pause; see `vary`.
    """

    def __init__(
        self, first: float, most: float, *, factor: float = 2.0, share: float = 0.5
    ) -> None:
        self._first = first
        self._most = most
        self._factor = factor
        self._share = share
        self._pause = first

    def next_pause(self) -> float:
        """Return the seconds to pause before the next attempt."""
        pause = min(self._pause, self._most)
        self._pause = min(self._factor * pause, self._most)
        return vary(pause, self._share)

    def reset(self) -> None:
        """Begin with the first pause again, after a success."""
        self._pause = self._first
