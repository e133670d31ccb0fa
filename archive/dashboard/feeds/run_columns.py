"""What the runs of a study were given and came from, by number, beside what the study's feed has read.

A column, such as a metric or the runs with some words, is read when it is asked for, and later for those
runs alone that have changed.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from archive.dashboard.feeds.study import FIELDS, STATE, VALUE, StudyFeed
from archive.objectives import sign
from archive.queries.tried.filters import RunFilter, matching_groups, values_of
from archive.queries.tried.lines import RunLines
from archive.store.properties import METRIC, number_of, proposal_id, study_of
from archive.store.studies.rows import ALL, PARAMETER, SOME, Row, read_rows
from archive.values import whole_number

if TYPE_CHECKING:
    from archive.database.connection import Connection

ARCHITECTURE = FIELDS.index("architecture")

MOST_CHANGED = 2000
"""Runs that are read by their ids; more are read with all others."""

KEPT = 12
"""Columns that are kept, each of a few megabytes in a study of a hundred thousand runs."""

Read = Callable[[Sequence[int] | None], Mapping[int, Any]]
"""Returns what some runs have, or all, by number."""


@dataclass
class _Column:
    """What runs have by number, as of a version of the study's feed."""

    version: int = -1
    values: dict[int, Any] = field(default_factory=dict)


class RunColumns:
    """Columns of the runs of one study. The caller holds the lock `reading` of the feed.

    Args:
        connection: Connection to the archive.
        feed: The study's feed.
    """

    def __init__(self, connection: Connection, feed: StudyFeed) -> None:
        """Read nothing yet."""
        self._connection = connection
        self._feed = feed
        self._columns: dict[tuple[str, ...], _Column] = {}

    @staticmethod
    def of(connection: Connection, feed: StudyFeed) -> RunColumns:
        """Return the columns of a feed, which last as long as the feed."""
        columns = feed.kept.setdefault("runs", RunColumns(connection, feed))
        assert isinstance(columns, RunColumns)
        return columns

    def column(self, name: str) -> Mapping[int, Any]:
        """Return a column of `archive.store.studies.rows`, by the number of the run."""

        def read(changed: Sequence[int] | None) -> dict[int, Any]:
            return dict(self._read(("number", name), changed))

        return self._update(("column", name), read)

    def parents(self) -> dict[int, int]:
        """Return the number of the parent of each run that has one in this study."""
        return self._feed.remembered("run parents", self._find_parents)

    def tree(self) -> RunLines:
        """Return which run came from which other one of the study."""
        return self._feed.remembered("run tree", self._make_tree)

    def gains(self) -> dict[int, float]:
        """Return what the configuration of each run brought over its parent's, larger is better.

        It is the difference of the means over repeats, as `archive.queries.runs.TriedRun` has it.
        """
        better = sign(self._feed.study.direction)
        rows = self._feed.rows
        means = self._means()
        gains = {}
        for number, parent in self.parents().items():
            if number not in rows or parent not in rows or rows[number][VALUE] is None:
                continue

            configuration = rows[number][ARCHITECTURE]
            before = rows[parent][ARCHITECTURE]
            if configuration != before and configuration in means and before in means:
                # A difference of nothing has no sign.
                gains[number] = better * (means[configuration] - means[before]) or 0.0

        return gains

    def values(self, name: str) -> Mapping[int, Any]:
        """Return a value that runs were given, or a metric, by the number of the run.

        Args:
            name: `parameter_` or `metric_`, and its name.
        """
        if not name.startswith(METRIC):
            return self._feed.remembered(("run values", name), lambda: self._pick_value(name))

        def read(changed: Sequence[int] | None) -> dict[int, Any]:
            return dict(self._read(("number", name), changed, evaluated=True))

        return self._update((name,), read)

    def matching(self, words: Sequence[str]) -> Mapping[int, Any]:
        """Return the runs that hold all of some words (`archive.queries.runs`), by number."""
        key = tuple(sorted({word.lower() for word in words}))

        def read(changed: Sequence[int] | None) -> dict[int, Any]:
            ids = None if changed is None else self._ids(changed)
            sought = RunFilter(key, study=self._feed.name, ids=ids)
            matching = {}
            for group in matching_groups(self._connection, sought):
                for _, identifier in group.runs:
                    matching[number_of(identifier)] = True

            return matching

        return self._update(("words", *key), read)

    def _find_parents(self) -> dict[int, int]:
        parents = {}
        for number, identifier in self._feed.derived_from.items():
            if study_of(identifier) != self._feed.name:
                continue

            parent = whole_number(identifier.rpartition("#")[2])
            if parent is not None:
                parents[number] = parent

        return parents

    def _means(self) -> dict[str, float]:
        """Return the mean value of each configuration over its whole results."""
        sums: dict[str, float] = defaultdict(float)
        counts: Counter[str] = Counter()
        for row in self._feed.rows.values():
            value = row[VALUE]
            if row[STATE] == "COMPLETE" and value is not None and math.isfinite(value):
                sums[row[ARCHITECTURE]] += value
                counts[row[ARCHITECTURE]] += 1

        return {key: total / counts[key] for key, total in sums.items()}

    def _make_tree(self) -> RunLines:
        better = sign(self._feed.study.direction)
        scores: dict[int, float | None] = {}
        for number, row in self._feed.rows.items():
            value = row[VALUE]
            scores[number] = None if value is None else better * value

        return RunLines(self.parents(), scores)

    def _pick_value(self, name: str) -> dict[int, Any]:
        plain = name.removeprefix(PARAMETER)
        picked = {}
        for number, texts in self._texts_of_values().items():
            value = values_of(*texts).get(plain)
            if value is not None:
                picked[number] = value

        return picked

    def _texts_of_values(self) -> Mapping[int, tuple[str | None, str | None]]:
        """Return the stored texts of what each run was given (`values_of`)."""

        def read(changed: Sequence[int] | None) -> dict[int, Any]:
            names = ("number", "configuration", "hyperparameters")
            return {number: tuple(texts) for number, *texts in self._read(names, changed)}

        return self._update(("texts of values",), read)

    def _read(
        self, names: Sequence[str], numbers: Sequence[int] | None, *, evaluated: bool = False
    ) -> list[Row]:
        """Return rows of some runs; None for all."""
        choice = ALL if numbers is None else SOME
        parameters: dict[str, Any] = {"study": self._feed.name}
        if numbers is not None:
            parameters = {"ids": self._ids(numbers)}

        return self._connection.read(
            lambda tx: read_rows(tx, names, choice, evaluated=evaluated, **parameters)
        )

    def _update(self, key: tuple[str, ...], read: Read) -> Mapping[int, Any]:
        """Return a column, of which what has changed is read."""
        column = self._columns.pop(key, None) or _Column()
        while len(self._columns) >= KEPT:
            del self._columns[next(iter(self._columns))]

        version = self._feed.version
        if column.version != version:
            changed = self._changed(column)
            if changed is None:
                column.values = dict(read(None))
            elif changed:
                for number in changed:
                    column.values.pop(number, None)

                column.values |= read(changed)

            column.version = version

        self._columns[key] = column
        return column.values

    def _changed(self, column: _Column) -> list[int] | None:
        """Return the runs that a column has in an earlier state; None for all."""
        if column.version < self._feed.began:
            return None

        changed = []
        for key, row in self._feed.since(column.version).items():
            if isinstance(key, int) and row is not None:
                changed.append(key)
            elif isinstance(key, int):
                column.values.pop(key, None)

        return changed if len(changed) <= MOST_CHANGED else None

    def _ids(self, numbers: Sequence[int]) -> list[str]:
        return [proposal_id(self._feed.name, number) for number in numbers]
