"""Feed of the workers and of their trials."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from archive.dashboard.feeds.base import Entries, Feed
from archive.queue import workers

if TYPE_CHECKING:
    from archive.database.connection import Connection

GRAIN = 5
"""Seconds to which the time of a heartbeat is rounded, so that a healthy worker is not news every
second."""


class WorkersFeed(Feed):
    """Feed of the workers with a recent heartbeat, by id.

    Args:
        connection: Connection to the archive.
    """

    pause = 2.0

    def __init__(self, connection: Connection) -> None:
        """Start without entries."""
        super().__init__("workers")
        self._connection = connection
        self._known: set[str] = set()

    def look(self) -> Entries:
        """Return all workers; those that are listed no longer as None."""
        entries: dict[str, Any] = {}
        for status in workers.statuses(self._connection):
            seen = GRAIN * round((time.time() - status.silent_seconds) / GRAIN)
            about = {
                name: getattr(status, name)
                for name in ("id", "state", "host", "pid", "device", "slots", "study")
            }
            trials = [
                {
                    name: getattr(trial, name)
                    for name in ("proposal", "study", "architecture_key", "attempt", "epochs")
                }
                for trial in status.trials
            ]
            entries[status.id] = {
                **about,
                "rest_reason": status.rest_reason,
                "devices": list(status.devices),
                "seen": seen,
                "trials": trials,
            }

        gone = self._known - set(entries)
        self._known = set(entries)
        return {**entries, **dict.fromkeys(gone)}

    def message(self, entries: Entries) -> dict[str, Any]:
        """Return `{"workers": {id: worker or null}}`."""
        return {"workers": dict(entries)}
