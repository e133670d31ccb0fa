"""The time limit of a daemon: when it stops claiming, when it hands running trials back, and when
it ends.

    start ── claims ──> last claim ── reserve ──> trials are interrupted ── grace ──> end

The reserve lets the last trial finish or reach a state that is worth a checkpoint.
"""

from __future__ import annotations

import logging
import math
import time

from archive.trainer.daemon.options import TrainerOptions

log = logging.getLogger("archive.trainer")

LARGEST_RESERVE = 0.1
"""Largest reserve, as a fraction of the limit."""


class TimeLimit:
    """Moments of a daemon with a time limit; without a limit, they are infinite.

    Args:
        options: How the daemon works: `max_seconds`, `parting_seconds` and `checkpoint_seconds`.
    """

    def __init__(self, options: TrainerOptions) -> None:
        """Start the clock."""
        self._options = options
        self._longest: float | None = None
        limit = options.max_seconds
        end = math.inf if limit is None else time.monotonic() + limit
        self.interrupts_at = end - options.parting_seconds
        """Time at which running trials are interrupted, by `time.monotonic`."""

    @property
    def last_claim_at(self) -> float:
        """Time after which nothing is claimed, by `time.monotonic`."""
        limit = self._options.max_seconds
        if limit is None:
            return math.inf

        # A trial needs the time until its first checkpoint, or less if all trials so far ended
        # sooner.
        needed = min(
            self._options.checkpoint_seconds, math.inf if self._longest is None else self._longest
        )
        return self.interrupts_at - min(needed, LARGEST_RESERVE * limit)

    def note_trial(self, seconds: float) -> None:
        """Note how long a finished trial has taken."""
        self._longest = max(seconds, self._longest or 0.0)

    def may_claim(self) -> bool:
        """Whether a trial that is claimed now can finish, or come to a checkpoint."""
        return time.monotonic() < self.last_claim_at

    def is_over(self, running: int) -> bool:
        """Whether the daemon must end: at once without work, otherwise in time for checkpoints.

        Args:
            running: Number of running trials.
        """
        over = time.monotonic() >= (self.interrupts_at if running else self.last_claim_at)
        if over:
            log.info(
                "the time limit ends the trainer seconds=%g trials=%d",
                self._options.max_seconds,
                running,
            )

        return over

    def next_moment(self) -> float:
        """Return the next moment at which the daemon must look, by `time.monotonic`."""
        last = self.last_claim_at
        return last if time.monotonic() < last else self.interrupts_at
