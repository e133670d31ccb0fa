"""Wake-up of trainers on the machine that adds to the queue, cancels a proposal or deletes a study.

    process that makes proposals wait ──── touches ──> ARCHIVE_HOME/queue.stamp <───── looks at it ── idle trainers
    process that cancels or deletes some ─ touches ──> ARCHIVE_HOME/cancelled.stamp <─ looks at it ── busy trainers

A trainer queries the database rarely. Reading the modification time of a file needs no transaction, so that trainers
with the same home as a search start and stop trials within milliseconds. Without a common home, or on a file system
with coarse times, they learn of the change at their next look.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from archive.settings import Settings

QUEUE = "queue.stamp"
CANCELLED = "cancelled.stamp"


def wake_trainers(settings: Settings, file: str = QUEUE) -> None:
    """Wake the trainers with this home; to be called after the transaction with the change."""
    path = settings.home / file
    with suppress(OSError):
        path.touch(mode=0o600)


class WakeUpReceiver:
    """Receiver of the wake-ups of one kind, from any process with this home.

    Args:
        settings: Settings of the archive.
        file: Kind of the change: `QUEUE` or `CANCELLED`.
    """

    def __init__(self, settings: Settings, file: str = QUEUE) -> None:
        self._path: Path = settings.home / file
        self._seen = self._time()

    def received(self) -> bool:
        """Return whether there was a call of `wake_trainers` since the last call of this method."""
        seen, self._seen = self._seen, self._time()
        return self._seen != seen

    def _time(self) -> int:
        try:
            return self._path.stat().st_mtime_ns
        except OSError:
            return 0
