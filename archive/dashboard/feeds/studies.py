"""Feed of the list of studies.

Counts and best value of a study cost a read of all its proposals. They are read again when the
study's node or the number of its open proposals has changed; these reads take at most a twentieth
of the time.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from archive.dashboard.feeds.base import Entries, Feed
from archive.dashboard.wire import select_attributes
from archive.queries.studies import COUNTS_OF_STUDY, OPEN_PROPOSALS, STUDIES
from archive.queue import workers
from archive.store.properties import study_from
from archive.store.records import Study
from archive.store.studies.creation import agent_names
from archive.store.studies.studies import best_of

if TYPE_CHECKING:
    from archive.database.connection import Connection


LONGEST_NOTE = 300
"""Letters of a note that a page searches."""

SECONDS_OF_REST = 20.0
"""Pause after a read of a study's proposals, as a multiple of the duration of the read."""


class StudiesFeed(Feed):
    """Feed of all studies, by name.

    Args:
        connection: Connection to the archive.
    """

    def __init__(self, connection: Connection) -> None:
        """Start without entries."""
        super().__init__("studies")
        self._connection = connection
        self._known: dict[str, dict[str, Any]] = {}
        self._signatures: dict[str, Any] = {}
        self._due: dict[str, float] = {}
        self._agents: dict[str, list[str | None]] = {}

    def look(self) -> Entries:
        """Return the studies; deleted ones as None."""
        rows = self._connection.read(lambda tx: tx.run(STUDIES).data())
        names = [row["study"]["name"] for row in rows]
        counted = (
            self._connection.read(lambda tx: tx.run(OPEN_PROPOSALS, studies=names).data())
            if names
            else []
        )
        unended = {}
        for row in counted:
            unended[row["study"]] = {"running": row["running"], "waiting": row["waiting"]}

        entries = {}
        for row in rows:
            study = study_from(row)
            now = unended.get(row["study"]["name"], {})
            stored = row["study"]
            counters = (
                stored.get("admitted"),
                stored.get("next_number"),
                stored.get("rewritten"),
                now,
            )
            signature = (study.created, *counters)
            if study.created != self._signatures.get(study.name, signature)[0]:
                # Another study of this name, which may have as many proposals.
                self._forget(study.name)

            counts = self._known.get(study.name, {})
            if signature != self._signatures.get(study.name) and time.monotonic() >= self._due.get(
                study.name, 0.0
            ):
                counts = self._count(study)
                self._signatures[study.name] = signature

            entries[study.name] = self._known[study.name] = {
                **counts,
                **_settings(study, self._agents.get(study.name, ())),
                "tags": stored.get("tags") or [],
                "note": (stored.get("note") or "")[:LONGEST_NOTE] or None,
            }

        gone = set(self._known) - set(entries)
        for name in gone:
            self._forget(name)

        return {**entries, **dict.fromkeys(gone)}

    def message(self, entries: Entries) -> dict[str, Any]:
        """Return `{"studies": {name: study or null}}`."""
        return {"studies": dict(entries)}

    def _forget(self, name: str) -> None:
        for entries in (self._known, self._signatures, self._due, self._agents):
            entries.pop(name, None)

    def _count(self, study: Study) -> dict[str, Any]:
        begin = time.monotonic()
        rows = self._connection.read(lambda tx: tx.run(COUNTS_OF_STUDY, study=study.name).data())
        self._due[study.name] = time.monotonic() + SECONDS_OF_REST * (time.monotonic() - begin)
        self._agents[study.name] = list(
            map(itemgetter("agent"), sorted(rows, key=itemgetter("first")))
        )
        counts: dict[str, int] = defaultdict(int)
        cancelled = 0
        answered = 0
        seconds: float = 0
        for row in rows:
            counts[row["state"].lower()] += row["proposals"]
            cancelled += row["cancelled"]
            answered += row["answered"]
            seconds += row["seconds"] or 0.0

        if cancelled:
            counts |= {"cancelled": cancelled, "failed": counts["failed"] - cancelled}

        return {
            "counts": {name: count for name, count in sorted(counts.items()) if count},
            "best": best_of(study, rows),
            "seconds": seconds,
            "answered": answered,
        }


def _settings(study: Study, agents: Iterable[str | None]) -> dict[str, Any]:
    settings = select_attributes(
        study,
        "name",
        "task",
        "protocol",
        "space",
        "objective",
        "direction",
        "budget",
        "seed",
        "created",
    )
    return {
        **settings,
        "agent": ", ".join(agent_names(study, agents)) or None,
        "constraints": list(map(str, study.constraints)),
    }


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
            about = select_attributes(
                status, "id", "state", "host", "pid", "device", "slots", "study"
            )
            trials = []
            for trial in status.trials:
                trials.append(
                    select_attributes(
                        trial, "proposal", "study", "architecture_key", "attempt", "epochs"
                    )
                )

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
