"""Feed of one study: its proposals as rows, what runs, and how far it is.

The first look reads all proposals with results, and then the others, which are the missing numbers.
Later ones read what may have changed only, whatever the size of the study:

- the open proposals, by the index of claims;
- new ones, by their numbers, which have no gaps;
- those that were open at one of the last looks;
- a share of the failed and pruned ones, to which a late result may come.

A load and a user's query that writes increase `Study.rewritten`: all proposals are read again.
Other clients of the database do not, so all are read again from time to time, for a fiftieth of the
time at most.
"""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from archive.architecture.parameter_operations import PROGRAM_NAME
from archive.dashboard.feeds.base import Entries, Feed
from archive.dashboard.wire import describe_objectives
from archive.objectives import MOST_OBJECTIVES, sign
from archive.store.metric_names import own_unit_metric, units_of
from archive.store.properties import CURVE, EPOCH, METRIC, proposal_id, with_prefix
from archive.store.records import State, Study, is_cancelled
from archive.store.snapshots import read_view
from archive.store.studies import studies
from archive.store.studies.configurations import configurations_of
from archive.store.studies.creation import agent_names
from archive.store.studies.rows import (
    ALL,
    COUNT,
    EXTENT,
    OPEN,
    RUNNING,
    SOME,
    Row,
    parameters_of,
    read_rows,
)

if TYPE_CHECKING:
    from archive.database.connection import Connection

ABOUT = "about"
RUNS = "running"
"""Keys of the two entries that are no rows."""

OF_OBJECTIVES = tuple(f"objective_{index + 1}" for index in range(1, MOST_OBJECTIVES))
"""Fields of the objectives beside the first one, whose field is `value`."""
FIELDS = (
    "number",
    "state",
    "value",
    "mean",
    "std",
    "agent",
    "architecture",
    "epochs",
    "seconds",
    "finished",
    "params",
    "flops",
    "latency_ms",
    "peak_memory_bytes",
    "rung",
    "worker",
    "reason",
    "answered_from",
    *OF_OBJECTIVES,
    "feasible",
    "whole",
)
"""Fields of a row, in their order."""
NUMBER, STATE, VALUE = map(FIELDS.index, ("number", "state", "value"))
_number_of = itemgetter(NUMBER)
AGENT, REASON, FEASIBLE_AT, WHOLE_AT = map(FIELDS.index, ("agent", "reason", "feasible", "whole"))
COSTS = ("params", "flops", "latency_ms", "peak_memory_bytes")
"""Fields that are metrics of these names."""
RUN = (
    "number",
    "architecture",
    "agent",
    "worker",
    "started",
    "attempts",
    "mean",
    "std",
    "curve",
)
"""Columns of a running proposal (`archive.store.studies.rows`)."""
AT_ONCE = 10_000
"""Number of proposals without a result that one statement reads."""
WHOLE_SECONDS = 60.0
"""Least time between two reads of the whole study."""
RECHECKED = 200
"""Number of failed and pruned proposals that a look reads again."""
LOOKS = 3
"""Number of looks that read a proposal again after it was open:

ArcadeDB may expose a commit half-way.
"""


class StudyFeed(Feed):
    """Feed of a study; its entries are rows by number, `about` and `running`.

    Args:
        connection: Connection to the archive.
        name: Name of the study.

    Attributes:
        rows: Current rows by number, in the order of `FIELDS`; changed by `look` only.
        derived_from: Id of the run that a recorded run is a change of, by number, for those that have
            one.
    """

    bulky = True

    def __init__(self, connection: Connection, name: str) -> None:
        """Start without entries."""
        super().__init__(f"study:{name}")
        self.name = name
        self.rows: dict[int, Row] = {}
        self.derived_from: dict[int, str] = {}
        self._connection = connection
        self._study: Study | None = None
        self._extent: Mapping[str, Any] = {}
        self._lately: deque[set[int]] = deque(maxlen=LOOKS)
        self._recheck: deque[int] = deque()
        self._counts: Counter[str] = Counter()
        self._best: Row | None = None
        self._named: tuple[int, dict[str, Any], dict[str, float]] | None = None
        self._agents: dict[str | None, None] = {}
        self._whole_due = -math.inf

    @property
    def study(self) -> Study:
        """The study, as of the last look."""
        if self._study is None:
            raise RuntimeError(f"nothing was read of the study {self.name} yet")

        return self._study

    def look(self) -> Entries | None:
        """Return changed rows; after a study of the same name has taken its place, None."""
        study = studies.read(self._connection, self.name)
        record = self._connection.read(lambda tx: tx.run(EXTENT, study=self.name).single())
        extent = {} if record is None else dict(record)
        if self._study is not None and study.created != self._study.created:
            self._forget()
            return None

        whole = time.monotonic() >= self._whole_due or extent.get("rewritten") != self._extent.get(
            "rewritten"
        )
        if extent.get("next") is None:
            # The next number is unknown after a load; the index still knows how many there are.
            count = self._connection.read(
                lambda tx: tx.run(COUNT, study=self.name).single(strict=True)["count"]
            )
            whole = whole or count != len(self.rows)

        self._study, start = study, self._extent.get("next") or 0
        running = self._connection.read(lambda tx: read_rows(tx, RUN, RUNNING, study=self.name))
        rows = (
            self._read_all(extent.get("next"))
            if whole
            else self._read_some(extent.get("next"), start)
        )
        self._extent = extent
        for number in sorted(rows):
            if (row := rows[number]) is not None:
                self._agents[row[AGENT]] = None

        entries: dict[Any, Any] = dict(rows)
        entries[RUNS] = list(map(_run, sorted(running, key=itemgetter(0))))
        entries[ABOUT] = self._about()
        return entries

    def message(self, entries: Entries) -> dict[str, Any]:
        """Return `{"about", "running", "rows", "gone"}`, each only if it changed."""
        document: dict[str, Any] = {key: entries[key] for key in (ABOUT, RUNS) if key in entries}
        numbered = {key: row for key, row in entries.items() if isinstance(key, int)}
        if rows := [row for row in numbered.values() if row is not None]:
            document["rows"] = rows

        if gone := [number for number, row in numbered.items() if row is None]:
            document["gone"] = gone

        return document

    def _forget(self) -> None:
        self._study = None
        self._extent = {}
        self._best = None
        self._named = None
        self.rows = {}
        self.derived_from = {}
        self._counts = Counter()
        self._whole_due = -math.inf
        self._agents.clear()
        self._lately.clear()
        self._recheck.clear()

    def _read_all(self, free: int | None) -> dict[int, Row | None]:
        begin = time.monotonic()
        self.derived_from = {}
        rows = self._rows(ALL, evaluated=free is not None, study=self.name)
        read = {row[NUMBER]: row for row in rows}
        missing = []
        for number in range(free or 0):
            if number not in read:
                missing.append(proposal_id(self.name, number))

        for index in range(0, len(missing), AT_ONCE):
            for row in self._rows(SOME, ids=missing[index : index + AT_ONCE]):
                read[row[NUMBER]] = row

        changed: dict[int, Row | None] = {}
        for number, row in read.items():
            if self.rows.get(number) != row:
                changed[number] = row

        changed |= dict.fromkeys(number for number in self.rows if number not in read)
        self.rows = dict(sorted(read.items()))
        others = [row for row in self.rows.values() if row[STATE] != "COMPLETE"]
        self._counts = Counter(map(kind_of, others)) + Counter(complete=len(read) - len(others))
        self._improve(self.rows.values())
        self._lately.append(set(map(_number_of, filter(_is_open, others))))
        self._recheck = deque(map(_number_of, filter(_is_doubtful, others)))
        self._whole_due = time.monotonic() + max(WHOLE_SECONDS, 50 * (time.monotonic() - begin))
        return changed

    def _read_some(self, free: int | None, start: int) -> dict[int, Row | None]:
        rows = self._rows(OPEN, study=self.name)
        now = {int(row[NUMBER]) for row in rows}
        numbers = (
            set().union(*self._lately, range(start, free or start), self._some_doubtful()) - now
        )
        self._lately.append(now | set(range(start, free or start)))
        ids = [proposal_id(self.name, number) for number in sorted(numbers)]
        rows += self._rows(SOME, ids=ids) if ids else []
        changed: dict[int, Row | None] = {}
        for row in rows:
            number = int(row[NUMBER])
            before = self.rows.get(int(row[NUMBER]))
            if before == row:
                continue

            if before is not None:
                self._counts[kind_of(before)] -= 1

            self._counts[kind_of(row)] += 1
            if _is_doubtful(row) and (before is None or not _is_doubtful(before)):
                self._recheck.append(number)

            self.rows[number] = changed[number] = row

        self._improve(filter(None, changed.values()))
        return changed

    def _some_doubtful(self) -> list[int]:
        some = list(islice(self._recheck, RECHECKED))
        self._recheck.rotate(-len(some))
        return some

    def _rows(self, choice: str, *, evaluated: bool = False, **parameters: Any) -> list[Row]:
        """Return rows of `FIELDS`; objectives that the study lacks are None."""
        columns = dict.fromkeys(OF_OBJECTIVES, "nothing") | {name: METRIC + name for name in COSTS}
        for field, objective in zip(OF_OBJECTIVES, self.study.further, strict=False):
            columns[field] = METRIC + objective.name

        names = [columns.get(field, field) for field in FIELDS]
        is_recorded = self.study.space == PROGRAM_NAME
        if is_recorded:
            # The page begins with the tree of runs.
            names.append("derived_from")

        parameters |= parameters_of(self.study)
        rows = self._connection.read(
            lambda tx: read_rows(tx, names, choice, evaluated=evaluated, **parameters)
        )
        if not is_recorded:
            return rows

        shown = []
        for row in rows:
            if row[-1] is not None:
                self.derived_from[row[NUMBER]] = row[-1]

            shown.append(row[:-1])

        return shown

    def _improve(self, rows: Iterable[Row]) -> None:
        better = sign(self.study.direction)
        best = self._best
        if best is not None and self.rows.get(best[NUMBER]) is not best:
            best = None
            rows = self.rows.values()  # its value was corrected, say: all are candidates

        changed = []
        for row in rows:
            if row[VALUE] is not None and row[VALUE] == row[VALUE] and row[FEASIBLE_AT]:
                changed.append(row)

        # Results of rungs, and those that lack an objective, count only without others. Of equal
        # ones, the first.
        self._best = max(
            changed if best is None else [best, *changed],
            key=lambda row: (
                row[STATE] == "COMPLETE",
                row[WHOLE_AT],
                better * row[VALUE],
                -row[NUMBER],
            ),
            default=None,
        )

    def _about(self) -> dict[str, Any]:
        study = self.study
        best = self._best
        agents = agent_names(study, self._agents)
        return {
            "study": study.name,
            "task": study.task,
            "protocol": study.protocol,
            "space": study.space,
            "objective": study.objective,
            "direction": study.direction,
            "unit": units_of(study),
            "objectives": describe_objectives(study),
            "budget": study.budget,
            "seed": study.seed,
            "agent": ", ".join(agents) or None,
            "created": study.created,
            "constraints": list(map(str, study.constraints)),
            "note": self._extent.get("note") or "",
            "tags": self._extent.get("tags") or [],
            "counts": {name: count for name, count in sorted(self._counts.items()) if count},
            "best": None if best is None else self._describe_best(best),
        }

    def _describe_best(self, row: Row) -> dict[str, Any]:
        """Return the fields of the best result, with its configuration.

        `error` has the objective in the target's own unit by the name of its metric.
        """
        number = int(row[NUMBER])
        if self._named is None or self._named[0] != number:
            read = configurations_of(self._connection, self.study, [number])
            self._named = (number, read.get(number, {}), self._error_of(number))

        _, configuration, error = self._named
        fields = dict(zip(FIELDS, row, strict=True))
        return {**fields, "configuration": configuration, "error": error}

    def _error_of(self, number: int) -> dict[str, float]:
        own_unit = own_unit_metric(self.study)
        if own_unit is None:
            return {}

        metrics = read_view(self._connection, proposal_id(self.study.name, number)).metrics
        return {own_unit: metrics[own_unit]} if own_unit in metrics else {}


def _run(row: Row) -> dict[str, Any]:
    run = dict(zip(RUN, row, strict=True))
    curve = with_prefix(CURVE, dict(run["curve"]))
    epochs = curve.pop(EPOCH, [])
    return {**run, "curve": curve, "epochs": epochs}


def kind_of(row: Row) -> str:
    """Return the state of a row in lower case, with cancelled ones apart from failed ones."""
    cancelled = row[STATE] == "FAILED" and is_cancelled(State.FAILED, row[REASON])
    return "cancelled" if cancelled else str(row[STATE]).lower()


def _is_open(row: Row) -> bool:
    return row[STATE] in ("WAITING", "RUNNING")


def _is_doubtful(row: Row) -> bool:
    """Whether a result may still come to a row that has ended."""
    return row[STATE] in ("FAILED", "PRUNED")
