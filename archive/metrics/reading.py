"""Readings of the queue and the trainers, kept for a moment so that many readers cost one query."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from archive.errors import StoreError, StoreUnavailableError
from archive.queue import depth, workers
from archive.queue.depth import QueueDepth

if TYPE_CHECKING:
    from archive.database.connection import Connection

KEPT_SECONDS = 1.0
"""Age up to which a reading is used again."""


@dataclass(frozen=True, slots=True)
class ArchiveReading:
    """What the database held at one moment.

    Attributes:
        depths: Depth of the queue by the name of the study; studies without open proposals are left out.
        trainers: Number of trainers by state; those that have left are not counted.
        slots: Number of trials that the live trainers can run at a time.
        problem: Why the database could not be read; None where it answered.
    """

    depths: Mapping[str, QueueDepth] = field(default_factory=dict)
    trainers: Mapping[str, int] = field(default_factory=dict)
    slots: int = 0
    problem: str | None = None


class ArchiveReader:
    """Reads an archive at most once a second, for any number of threads.

    Args:
        connection: Connection to the archive, with a short patience: a reader waits for the answer.
        clock: Monotonic seconds.
    """

    def __init__(self, connection: Connection, clock: Callable[[], float] = time.monotonic) -> None:
        self._connection, self._clock = connection, clock
        self._lock = threading.Lock()
        self._last: tuple[float, ArchiveReading] | None = None

    def read(self) -> ArchiveReading:
        """Return a reading that is at most `KEPT_SECONDS` old; one with a `problem` during an outage."""
        with self._lock:
            if self._last is None or self._clock() - self._last[0] > KEPT_SECONDS:
                reading = self._reading()
                self._last = self._clock(), reading
            return self._last[1]

    def _reading(self) -> ArchiveReading:
        try:
            depths = depth.depths(self._connection)
            statuses = workers.statuses(self._connection)
        except StoreUnavailableError:
            # The port needs no login: it must not tell the database's address, which is in the error.
            return ArchiveReading(problem="the database does not answer")
        except StoreError as error:
            return ArchiveReading(problem=f"the database refuses the queries: {type(error).__name__}")
        trainers: Counter[str] = Counter(status.state for status in statuses if status.state != "left")
        slots = sum(status.slots or 0 for status in statuses if status.alive)
        return ArchiveReading(depths, trainers, slots)
