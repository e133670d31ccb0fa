"""Readings of the queue, the trainers and the names of studies.

They are kept for a moment, so that many readers cost one query.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from archive.database.late_call import LateCall
from archive.errors import StoreError, StoreUnavailableError
from archive.queries.studies import NAMES_OF_STUDIES
from archive.queue import backlog, workers
from archive.queue.backlog import QueueDepth

if TYPE_CHECKING:
    from archive.database.connection import Connection

KEPT_SECONDS = 1.0
"""Age up to which a reading is used again."""
ANSWER_SECONDS = 8.0
"""Longest wait for the database: one that is frozen keeps its connections, and Prometheus gives up
after 10 s."""


LATE_SECONDS = 60.0
"""Age up to which a reading that came late is shown."""
SILENT = "the database does not answer"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ArchiveReading:
    """What the database held at one moment.

    Attributes:
        depths: Depth of the queue by the name of the study; studies without open proposals are left
            out.
        trainers: Number of trainers by state; those that have left are not counted.
        slots: Number of trials that the live trainers can run at a time.
        problem: Why the database could not be read; None where it answered.
    """

    depths: Mapping[str, QueueDepth] = field(default_factory=dict)
    trainers: Mapping[str, int] = field(default_factory=dict)
    slots: int = 0
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class StudyNames:
    """Names of all studies at one moment.

    Attributes:
        names: The names.
        problem: Why the database could not be read; None where it answered.
    """

    names: frozenset[str] = frozenset()
    problem: str | None = None


class ArchiveReader:
    """Reads an archive at most once a second, for any number of threads.

    Args:
        connection: Connection to the archive, with a short patience: a reader waits for the answer.
        clock: Monotonic seconds.
    """

    def __init__(self, connection: Connection, clock: Callable[[], float] = time.monotonic) -> None:
        self._connection = connection
        self._clock = clock
        self._lock = threading.Lock()
        self._begun: dict[str, LateCall[Any]] = {}
        self._last: tuple[float, ArchiveReading] | None = None
        self._last_studies: tuple[float, StudyNames] | None = None

    def read(self) -> ArchiveReading:
        """Return a reading at most `KEPT_SECONDS` old; during an outage, one with a `problem`."""
        with self._lock:
            self._last = self._kept(self._last, self._reading, ArchiveReading(problem=SILENT))
            return self._last[1]

    def studies(self) -> StudyNames:
        """Return the names of all studies, at most `KEPT_SECONDS` old, or the `problem`."""
        with self._lock:
            self._last_studies = self._kept(
                self._last_studies, self._studies, StudyNames(problem=SILENT)
            )
            return self._last_studies[1]

    def _kept(
        self, last: tuple[float, T] | None, read: Callable[[], T], absent: T
    ) -> tuple[float, T]:
        if last is not None and self._clock() - last[0] <= KEPT_SECONDS:
            return last

        # A late reading answers the next scrape; no second one begins beside it.
        begun = self._begun.pop(read.__name__, None)
        if begun is None or time.monotonic() - begun.ended > LATE_SECONDS:
            begun = LateCall(read, "reading")

        if not begun.ends_within(ANSWER_SECONDS):
            self._begun[read.__name__] = begun
            return self._clock(), absent

        return self._clock(), begun.answer()

    def _reading(self) -> ArchiveReading:
        try:
            depths = backlog.depths(self._connection)
            statuses = workers.statuses(self._connection)
        except StoreError as error:
            return ArchiveReading(problem=_problem(error))

        # A program that asks and tells counts while it evaluates.
        trainers: Counter[str] = Counter()
        slots = 0
        for status in statuses:
            if (status.trainer or status.trials) and status.state != "left":
                trainers[status.state] += 1

            if status.alive:
                slots += status.slots or 0

        return ArchiveReading(depths, trainers, slots)

    def _studies(self) -> StudyNames:
        try:
            rows = self._connection.read(lambda tx: tx.run(NAMES_OF_STUDIES).data())
        except StoreError as error:
            return StudyNames(problem=_problem(error))

        return StudyNames(frozenset(row["name"] for row in rows))


def _problem(error: StoreError) -> str:
    if isinstance(error, StoreUnavailableError):
        # The port needs no login: it must not tell the database's address, which is in the error.
        return SILENT

    return f"the database refuses the queries: {type(error).__name__}"
