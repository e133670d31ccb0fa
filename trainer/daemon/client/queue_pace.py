"""The pace of looks at the queue: an idle trainer asks the database rarely, and still notices
proposals soon.

    look ─ 20 ms ─ look ─ 40 ms ─ look ─ 80 ms ─ …  30 s ─ look ─ 30 s ─ look      while the queue is empty
                                   └ woken: look at once (`archive.store.wake_up`)

The pause doubles each time: a trainer that has waited for t seconds notices a proposal within t
further seconds. Pauses vary at random, so that the trainers of a fleet look one after the other.
"""

from __future__ import annotations

import time

from archive.backoff import Backoff
from archive.store.wake_up import WakeUpReceiver

FIRST_PAUSE = 0.01
"""Half the pause after the queue was first found empty, in seconds."""
WAKE_UP_SECONDS = 0.05
"""Time between two looks at the modification time of the wake-up file."""


class QueuePace:
    """Decides when to look at the queue.

    Args:
        longest_pause: Longest pause between two looks, in seconds.
        wake_up: Receiver of the wake-up that the queue has grown.

    Attributes:
        next_at: Time of the next look, by `time.monotonic`.
    """

    def __init__(self, longest_pause: float, wake_up: WakeUpReceiver) -> None:
        self.next_at = 0.0
        self._wake_up = wake_up
        self._backoff = Backoff(1.1 * FIRST_PAUSE, 1.1 * longest_pause, share=1 / 11)
        self._rests_until = 0.0

    @property
    def due(self) -> bool:
        """Whether it is time for a look."""
        return time.monotonic() >= self.next_at or self._woken()

    def found(self) -> None:
        """Begin with short pauses again, after a claim."""
        self._backoff.reset()
        self.next_at = 0.0

    def found_nothing(self) -> None:
        """Pause, for twice as long as before."""
        self.next_at = time.monotonic() + self._backoff.next_pause()

    def rest(self, seconds: float) -> None:
        """Make no look for so many seconds, even if the queue grows."""
        self._rests_until = self.next_at = time.monotonic() + seconds

    def sleep(self, deadline: float, until: float) -> None:
        """Sleep until a look is due, or one of two moments by `time.monotonic` has come."""
        while not self._woken() and (left := min(deadline, until) - time.monotonic()) > 0:
            time.sleep(min(left, WAKE_UP_SECONDS))

    def _woken(self) -> bool:
        if self._wake_up.received() and time.monotonic() >= self._rests_until:
            self.found()
            return True

        return False
