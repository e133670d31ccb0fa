"""Wake-up of idle trainers on the machine that adds to the queue.

    process that makes proposals wait ── touches ──> ARCHIVE_HOME/queue.stamp <── looks at its time ── idle trainers

An idle trainer asks the database rarely. The time of a file costs no transaction, so that trainers with the same home
as a search begin within milliseconds. Without a common home, or on a file system without fine times, they find new
proposals at their next look.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from archive.settings import Settings

FILE = "queue.stamp"


def ring(settings: Settings) -> None:
    """Wake the idle trainers with this home; call it after the transaction that made proposals wait."""
    path = settings.home / FILE
    with suppress(OSError):
        path.touch(mode=0o600)


class QueueBell:
    """Tells whether the queue has grown since the last call.

    Args:
        settings: Settings of the archive.
    """

    def __init__(self, settings: Settings) -> None:
        self._path: Path = settings.home / FILE
        self._seen = self._time()

    def rung(self) -> bool:
        """Return whether there was a call of `ring` since the last call of this method."""
        seen, self._seen = self._seen, self._time()
        return self._seen != seen

    def _time(self) -> int:
        try:
            return self._path.stat().st_mtime_ns
        except OSError:
            return 0
