"""Earlier runs that a planned run repeats, or is near to.

A planned run is compared before it trains, by what is known of it then:

| part      | the same                                            | near                          |
|-----------|-----------------------------------------------------|-------------------------------|
| `network` | computes the same function, whatever its name       |                               |
| `diff`    | adds and removes the same lines of the same files   | shares a part of these lines  |
| `code`    | the same source files                               |                               |
| `values`  | the same values by name                             | a small distance of values    |

The distance of two configurations is a sum over the names of their values:

    d(x, y) = sum_i d_i      d_i = |x_i - y_i| / range_i     numbers
                             d_i = 0 or 1                    texts, lists, values that one lacks

Logarithms stand for positive numbers that span a factor of `WIDE` or more, such as learning rates. The
ranges are the compared runs', so that d is a metric over them. O(values) for a pair.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from archive.queries.runs import TriedRun, runs_by_id
from archive.queries.tried.changes import NOT_GIVEN, ValueChange
from archive.queries.tried.differences import changed_lines
from archive.queries.tried.filters import IDS_OF_NETWORK, values_of
from archive.store.properties import study_of
from archive.values import is_number

if TYPE_CHECKING:
    from archive.database.connection import Connection

MOST = 10
"""Runs that are returned, unless the caller requests another number."""

WIDE = 100.0
"""Factor between the largest and the smallest of positive numbers from which logarithms are compared."""

LEAST_SHARE = 0.3
"""Share of changed lines from which two differences are near."""

_MOST_DIFFS = 200
_SEARCHED_LINES = 5

# One row a study: both servers spend more time on a row than on its content.
VALUES = """
MATCH (p:Proposal)
WHERE p.study = $study OR ($study IS NULL AND (p.program IS NOT NULL OR p.motivation IS NOT NULL))
RETURN p.study AS study,
       collect([p.id, p.created, p.configuration, p.hyperparameters, p.code]) AS runs
"""

IDS_OF_MEMBER = """
MATCH (a:Architecture {functional_key: $key})
USING INDEX SEEK a:Architecture(functional_key)
MATCH (a)<-[:OF]-(p:Proposal)
RETURN DISTINCT p.id AS id
"""

DIFFS = """
MATCH (t:RunText)
WHERE t.diff IS NOT NULL AND any(line IN $lines WHERE t.diff CONTAINS line)
MATCH (t)<-[:HAS_TEXT]-(p:Proposal)
WHERE $study IS NULL OR p.study = $study
RETURN p.id AS id, p.created AS created, t.diff AS diff ORDER BY created DESC LIMIT $most
"""


@dataclass(frozen=True)
class PlannedRun:
    """What is known of a run before it trains.

    Attributes:
        values: Values that it is given, by name; None where they are unknown.
        diff: Unified difference of its source files from its parent's, with secrets masked as
            in differences on record; None likewise.
        code: Digest of its source files, as runs on record have it; None likewise.
        network: Functional key of its network; None likewise.
    """

    values: Mapping[str, Any] | None = None
    diff: str | None = None
    code: str | None = None
    network: str | None = None


@dataclass
class RunMatch:
    """What an earlier run has in common with a planned one.

    Attributes:
        run: Id of the earlier run.
        same: Parts that are the same: `network`, `diff`, `code`, `values`.
        distance: Distance of the values, 0 for equal ones; null where they are not compared.
        shared: Share of the changed lines that both have, at most 1; null where they are not
            compared.
        differs: Values that differ: of the earlier run, and of the planned one.
    """

    run: str
    same: list[str] = field(default_factory=list)
    distance: float | None = None
    shared: float | None = None
    differs: list[ValueChange] = field(default_factory=list)


def find_matches(
    connection: Connection, planned: PlannedRun, *, study: str | None = None, most: int = MOST
) -> tuple[list[RunMatch], list[TriedRun]]:
    """Return the earlier runs that a planned run repeats, then those near to it.

    Args:
        connection: Connection to the archive.
        planned: What is known of the planned run.
        study: Name of a study; None for the runs of all studies.
        most: Largest number of runs.

    Returns:
        The matches, the closest first, and their runs in the same order.
    """
    matches: dict[str, RunMatch] = {}
    started: dict[str, int] = {}
    if planned.network is not None:
        _add_networks(connection, matches, planned.network, study)

    if planned.diff is not None:
        _add_diffs(connection, matches, started, planned.diff, study)

    if planned.values is not None or planned.code is not None:
        _add_values(connection, matches, started, planned, study, most)

    def rank(match: RunMatch) -> tuple[float, ...]:
        distance = math.inf if match.distance is None else match.distance
        newest = started.get(match.run, 0)
        return -len(match.same), -(match.shared or 0.0), distance, -newest

    closest = sorted(matches.values(), key=rank)[:most]
    by_id = {}
    for run in runs_by_id(connection, [match.run for match in closest]):
        by_id[run.run] = run

    # A run may have been deleted between two queries.
    kept = [match for match in closest if match.run in by_id]
    return kept, [by_id[match.run] for match in kept]


def _match(matches: dict[str, RunMatch], run: str) -> RunMatch:
    return matches.setdefault(run, RunMatch(run))


def _add_networks(
    connection: Connection, matches: dict[str, RunMatch], key: str, study: str | None
) -> None:
    """Add the runs of a network, and of the configurations that built it."""
    rows = connection.read(lambda tx: tx.run(IDS_OF_MEMBER, key=key).data())
    rows += connection.read(lambda tx: tx.run(IDS_OF_NETWORK, keys=[key]).data())
    for run in sorted({row["id"] for row in rows}, reverse=True):
        if study in (None, study_of(run)):
            _match(matches, run).same.append("network")


def _add_diffs(
    connection: Connection,
    matches: dict[str, RunMatch],
    started: dict[str, int],
    diff: str,
    study: str | None,
) -> None:
    """Add the runs whose differences share lines with a difference."""
    planned = changed_lines(diff)
    lines = sorted((line[1:] for _, line in planned), key=len, reverse=True)[:_SEARCHED_LINES]
    if not lines:
        return

    asked = {"lines": lines, "study": study, "most": _MOST_DIFFS}
    for row in connection.read(lambda tx: tx.run(DIFFS, asked).data()):
        other = changed_lines(row["diff"])
        share = (planned & other).total() / (planned | other).total()
        if share < LEAST_SHARE:
            continue

        started[row["id"]] = row["created"]
        match = _match(matches, row["id"])
        match.shared = share
        if planned == other:
            match.same.append("diff")


def _add_values(
    connection: Connection,
    matches: dict[str, RunMatch],
    started: dict[str, int],
    planned: PlannedRun,
    study: str | None,
    most: int,
) -> None:
    """Add the runs of the same source files, and the nearest ones by their values."""
    values: dict[str, dict[str, Any]] = {}
    codes: dict[str, str | None] = {}
    for row in connection.read(lambda tx: tx.run(VALUES, study=study).data()):
        for run, created, configuration, hyperparameters, code in row["runs"]:
            started[run] = created
            codes[run] = code
            values[run] = values_of(configuration, hyperparameters)

    if planned.code is not None:
        for run, code in codes.items():
            if code == planned.code:
                _match(matches, run).same.append("code")

    if planned.values is None:
        return

    own_values = _chosen(planned.values)
    others = {run: _chosen(named) for run, named in values.items()}
    ranges = _ranges([own_values, *others.values()])
    distances = {}
    for run, named in others.items():
        distances[run] = _distance(own_values, named, ranges)

    nearest = sorted(distances, key=lambda run: (distances[run], -started[run]))[:most]
    for run in {*nearest, *matches} & distances.keys():
        match = _match(matches, run)
        match.distance = distances[run]
        match.differs = _differences(others[run], own_values)
        if not match.differs:
            match.same.append("values")


def _chosen(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in NOT_GIVEN}


def _differences(earlier: Mapping[str, Any], planned: Mapping[str, Any]) -> list[ValueChange]:
    changes = []
    for name in dict.fromkeys([*earlier, *planned]):
        if name not in earlier or name not in planned or earlier[name] != planned[name]:
            changes.append(ValueChange(name, earlier.get(name), planned.get(name)))

    return changes


@dataclass(frozen=True)
class _Range:
    """Range of the numbers of one name."""

    low: float
    high: float
    logarithmic: bool

    def distance(self, first: float, second: float) -> float:
        """Return the distance of two numbers of the range, from 0 to 1."""
        if first == second:
            return 0.0

        if self.logarithmic:
            span = math.log(self.high) - math.log(self.low)
            return abs(math.log(first) - math.log(second)) / span

        span = self.high - self.low
        if math.isinf(span):
            return abs(first / 2 - second / 2) / (self.high / 2 - self.low / 2)

        return abs(first - second) / span


def _ranges(rows: Iterable[Mapping[str, Any]]) -> dict[str, _Range]:
    """Return the range of the numbers of each name."""
    numbers: dict[str, list[float]] = {}
    for row in rows:
        for name, value in row.items():
            if is_number(value):
                numbers.setdefault(name, []).append(float(value))

    ranges = {}
    for name, of_name in numbers.items():
        low = min(of_name)
        high = max(of_name)
        ranges[name] = _Range(low, high, low > 0.0 and high / low >= WIDE)

    return ranges


def _distance(
    first: Mapping[str, Any], second: Mapping[str, Any], ranges: Mapping[str, _Range]
) -> float:
    names = {*first, *second}
    return math.fsum(_difference(name, first, second, ranges) for name in names)


def _difference(
    name: str,
    first: Mapping[str, Any],
    second: Mapping[str, Any],
    ranges: Mapping[str, _Range],
) -> float:
    """Return the distance of two configurations in one value, from 0 to 1."""
    if name not in first or name not in second:
        return 1.0

    if is_number(first[name]) and is_number(second[name]):
        return ranges[name].distance(float(first[name]), float(second[name]))

    return float(first[name] != second[name])
