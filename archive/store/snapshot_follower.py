"""Follower of a study: a sequence of snapshots, each at the cost of what has changed.

    study, open proposals ──> those that were open, or are new ──> snapshot        one round trip, two after a change
      └── due, or rewritten ──> all proposals ─────────────────────────^           now and then

The views of ended proposals are kept: the queue changes them only by opening them again. A proposal
that is opened and ends between two reads is noticed when all proposals are read again, as are the
writes of other clients of the database. The load of a dump and a user's query that writes
(`archive.database.user_query`) increase `Study.rewritten` in the same transaction, so that they are
noticed at once.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from archive.store.properties import proposal_id
from archive.store.records import State, Study
from archive.store.snapshots import (
    COLUMNS,
    ProposalView,
    Snapshot,
    incumbent_of,
    read_views,
    snapshot_of,
    view_of,
)
from archive.store.studies.configurations import complete_views
from archive.store.studies.rows import HALF_SECONDS, RESULT, SOME, columns_of

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.database.connection import Connection

# Without open proposals, one row of nulls. The next free number is null after a load or a user's
# query (`archive.queue.admission`).
POLL = f"""
MATCH (s:Study {{name: $name}})
USING INDEX SEEK s:Study(name)
OPTIONAL MATCH (p:Proposal {{open: $name}})
USING INDEX SEEK p:Proposal(open)
{RESULT}
WITH s, collect({columns_of(COLUMNS)}) AS rows
RETURN s.budget AS budget, s.created AS created, s.config AS config, s.next_number AS next,
       s.rewritten AS rewritten, timestamp() AS now, rows
"""

_ID = COLUMNS.index("proposal")

REREAD_SECONDS = 5.0
"""Minimum time between two reads of the whole study by a follower."""
REREAD_SHARE = 0.02
"""Largest share of the time that these reads take."""

About = Mapping[str, Any]
"""Columns of the study."""
Change = tuple[ProposalView | None, ProposalView]
"""A view as it was, None for a new proposal, and as it is."""


@dataclass(frozen=True)
class _Reading:
    """Views of one read.

    Attributes:
        about: Columns of the study.
        views: Views of proposals: all, or those that may have changed.
        asked: Numbers of the proposals that were read by id, and have no view if they do not exist.
        whole: Whether all proposals were read.
    """

    about: About
    views: Sequence[ProposalView]
    asked: frozenset[int] = frozenset()
    whole: bool = False


class SnapshotFollower:
    """Incremental reader of one study; not thread-safe.

    The view of an ended proposal is final after two identical reads, because ArcadeDB may expose a
    commit half-way, or when its end is a minute ago.

    Args:
        connection: Connection to the archive.
        name: Name of the study.
        get: Returns the record of the study, and raises an UnknownNameError without one.
        clock: Function that returns the time in seconds.
    """

    def __init__(
        self,
        connection: Connection,
        name: str,
        get: Callable[[], Study],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start without views."""
        self._connection = connection
        self._name = name
        self._get = get
        self._clock = clock
        self._views: dict[int, ProposalView] = {}  # in the order of their numbers
        # numbers that may have another view, or a first one, at the next read
        self._unsettled: set[int] = set()
        self._absent: set[int] = set()  # unsettled numbers that had no proposal at the last read
        self._next = 0  # number after the last one that may exist
        self._about: About | None = None
        self._snapshot: Snapshot | None = None
        self._due = -math.inf

    def __call__(self, *, whole: bool = False) -> Snapshot:
        """Return the current snapshot.

        Args:
            whole: Whether to read all proposals.

        Raises:
            UnknownNameError: There is no study of this name.
        """
        begin = self._clock()
        reading = self._connection.read(partial(self._read, whole=whole), single=True)
        if reading is None:
            self._get()
            # It was created at this moment.
            return self(whole=whole)

        study = self._study(reading.about)
        views = complete_views(self._connection, study, reading.views, self._views)
        reading = replace(reading, views=views)
        changes, is_less = self._update(reading)
        if reading.whole:
            self._due = self._clock() + max(REREAD_SECONDS, (self._clock() - begin) / REREAD_SHARE)

        last = self._snapshot
        changed = tuple(view for _, view in changes)
        if last is None or reading.whole or is_less:
            snapshot = snapshot_of(study, self._views.values())
        else:
            snapshot = self._apply(replace(last, study=study), changes)

        self._about = reading.about
        self._snapshot = replace(snapshot, changed=changed, whole=reading.whole)
        return self._snapshot

    def _read(self, tx: ManagedTransaction, whole: bool) -> _Reading | None:
        """Return the views that the next snapshot needs; None without the study."""
        record = tx.run(POLL, name=self._name).single()
        if record is None:
            return None

        about = dict(record)
        rows = about.pop("rows")
        free = about["next"]
        if whole or self._is_stale(about):
            return _Reading(about, read_views(tx, study=self._name), whole=True)

        views = [view_of(row) for row in rows if row[_ID] is not None]
        new = range(self._next, self._next if free is None else free)
        asked = (self._unsettled | {*new}) - {view.number for view in views}
        ids = [proposal_id(self._name, number) for number in sorted(asked)]
        if ids:
            views += read_views(tx, SOME, ids=ids)

        return _Reading(about, views, frozenset(asked))

    def _is_stale(self, about: About) -> bool:
        """Return whether the views must be read again.

        They are due, or of a study that was rewritten since.
        """
        last = self._about
        free = about["next"]
        if last is None or self._clock() >= self._due:
            return True

        if free is not None and free < self._next:
            return True

        return any(about[name] != last[name] for name in ("created", "rewritten"))

    def _study(self, about: About) -> Study:
        """Return the record of the study.

        It is read again if more than its budget has changed.
        """
        last = self._about
        if last is None or self._snapshot is None:
            return self._get()

        if any(about[name] != last[name] for name in ("created", "config")):
            return self._get()

        study = self._snapshot.study
        return study if study.budget == about["budget"] else replace(study, budget=about["budget"])

    def _update(self, reading: _Reading) -> tuple[list[Change], bool]:
        """Update the views, and return those that are new or have changed.

        Return also whether some exist no longer.
        """
        views = {view.number: view for view in reading.views}
        free = reading.about["next"] or 0
        expected = range(free) if reading.whole else reading.asked
        absent = set(expected) - views.keys()
        gone = (self._views.keys() if reading.whole else self._views.keys() & absent) - views.keys()
        opened = set()
        for number, view in views.items():
            if not self._is_final(view, reading.about["now"]):
                opened.add(number)

        self._unsettled = opened | (absent - self._absent - gone)
        self._absent = absent
        changes = [(self._views.get(number), views[number]) for number in sorted(views)]
        changes = [(before, view) for before, view in changes if before != view]
        end = next(reversed(self._views), -1)
        is_ordered = all(before is not None or view.number > end for before, view in changes)
        self._views.update((view.number, view) for _, view in changes)
        if gone or not is_ordered:
            self._views = {
                number: self._views[number] for number in sorted(self._views.keys() - gone)
            }

        self._next = max(free, next(reversed(self._views), -1) + 1)
        return changes, bool(gone)

    def _is_final(self, view: ProposalView, now: int) -> bool:
        if view.state.is_open:
            return False

        return (
            view == self._views.get(view.number) or (view.finished or 0) < now - 1000 * HALF_SECONDS
        )

    def _apply(self, last: Snapshot, changes: Sequence[Change]) -> Snapshot:
        """Return the last snapshot with these changes."""
        if not changes:
            return last

        counts = Counter(last.counts)
        for before, view in changes:
            counts[view.state] += 1
            if before is not None:
                counts[before.state] -= 1

        proposals = tuple(self._views.values())
        best = last.incumbent
        views = [view for _, view in changes]
        if best is None or self._views[best.number] == best:
            incumbent = incumbent_of(last.study, views if best is None else [best, *views])
        else:
            incumbent = incumbent_of(last.study, proposals)

        return replace(
            last,
            proposals=proposals,
            counts={state: counts[state] for state in State},
            incumbent=incumbent,
        )
