"""Wake-up of trainers and searches on the machine that changes the queue.

    process that makes proposals wait ──── touches ──> ARCHIVE_HOME/queue.stamp <───── looks at it
    ── idle trainers process that cancels or deletes some ─ touches ──> ARCHIVE_HOME/cancelled.stamp
    <─ looks at it ── busy trainers process that ends a trial ──────────── touches ──>
    ARCHIVE_HOME/ended.stamp <───── looks at it ── waiting searches

Trainers and searches query the database rarely. Reading the modification time of a file needs no
transaction, so that those with the same home start and stop trials, and see results, within
milliseconds. Without a common home, or on a file system with coarse times, they learn of the change
at their next look.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from archive.settings import Settings

QUEUE = "queue.stamp"
CANCELLED = "cancelled.stamp"
ENDED = "ended.stamp"


def wake_trainers(settings: Settings, file: str = QUEUE) -> None:
    """Wake the trainers with this home; to be called after the transaction with the change."""
    _touch(settings.home / file)


def wake_searches(settings: Settings) -> None:
    """Wake the searches with this home.

    Call it after the transaction with the end of a trial.
    """
    _touch(settings.home / ENDED)


class WakeUpReceiver:
    """Receiver of the wake-ups of one kind, from any process with this home.

    Args:
        settings: Settings of the archive.
        file: Kind of the change: `QUEUE`, `CANCELLED` or `ENDED`.
    """

    def __init__(self, settings: Settings, file: str = QUEUE) -> None:
        self._path: Path = settings.home / file
        self._seen = self._time()

    def received(self) -> bool:
        """Return whether there was a wake-up since the last call of this method."""
        seen = self._seen
        self._seen = self._time()
        return self._seen != seen

    def _time(self) -> int:
        try:
            return self._path.stat().st_mtime_ns
        except OSError:
            return 0


def _touch(path: Path) -> None:
    # The system's own time of a change is a few milliseconds coarse: two changes may have the same
    # one.
    now = time.time_ns()
    with suppress(OSError):
        try:
            os.utime(path, ns=(now, now))
        except FileNotFoundError:
            path.touch(mode=0o600)
