"""Contributions between agents: whose results each agent's proposals were based on.

Results are counted by their proposer.

The basis of a proposal names the results that its agent knew (`archive.agents.provenance`): numbers
of proposals, by study. A known result counts as used, whether or not it influenced the agent's
decision.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from archive.database.user_query import QueryResult
from archive.objectives import sign

COLUMNS = ["study", "agent", "used", "proposals", "points", "mean_points", "best_point"]


class _Point(NamedTuple):
    study: str
    direction: str
    number: int
    agent: str | None
    value: float | None


@dataclass
class _Used:
    proposals: int = 0
    known: int = 0
    points: set[tuple[str, int]] = field(default_factory=set)


def contributions(rows: QueryResult) -> QueryResult:
    """Return one row for each study, agent, and agent with results that the former knew.

    Args:
        rows: `study`, `direction`, `number`, `agent`, `value` and `based_on`, in this order, of
            every proposal.

    Returns:
        `study` and `agent` of the proposals; `used`, the agent that had proposed the known results;
        `proposals`, the number of those based on such results; `points`, the number of different
        results; `mean_points` of one proposal; `best_point`, the best value among the results, None
        where they are of studies with different directions.
    """
    table = [dict(zip(rows.columns, row, strict=True)) for row in rows.rows if row[-1] is not None]
    recorded = {(row[0], row[2]): _Point(*row[:5]) for row in rows.rows} if table else {}
    last = {row[0]: row[2] for row in rows.rows}
    used: dict[tuple[str, str, str], _Used] = defaultdict(_Used)
    basis = None
    makers = dict[str, set[tuple[str, int]]]()
    for row in table:
        # The proposals of one call of an agent follow each other, and have one basis.
        if row["based_on"] != basis:
            basis = row["based_on"]
            makers = defaultdict(set)
            for point in _points(basis, last):
                if point in recorded:
                    makers[recorded[point].agent or "?"].add(point)

        for maker, points in makers.items():
            entry = used[row["study"], row["agent"] or "?", maker]
            entry.proposals += 1
            entry.known += len(points)
            entry.points |= points

    counted = []
    for names, entry in sorted(used.items()):
        share = entry.known / entry.proposals
        counts = (entry.proposals, len(entry.points), share, _best(entry, recorded))
        counted.append((*names, *counts))

    return QueryResult(COLUMNS, counted)


def studies_of(based_on: str | None) -> list[str]:
    """Return the source studies of a provenance record."""
    return list(_observations(based_on))


def _points(based_on: str | None, last: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    for study, numbers in _observations(based_on).items():
        for part in numbers.split(",") if isinstance(numbers, str) and numbers else ():
            first, _, end = part.partition("-")
            for number in range(int(first), min(int(end or first), last.get(study, -1)) + 1):
                yield study, number


def _observations(based_on: str | None) -> dict[str, Any]:
    observed = json.loads(based_on).get("observations") if based_on else None
    return observed if isinstance(observed, dict) else {}


def _best(entry: _Used, recorded: Mapping[tuple[str, int], _Point]) -> float | None:
    points = [recorded[point] for point in entry.points]
    values = []
    for point in points:
        if point.value is not None and not math.isnan(point.value):
            values.append(point.value)

    directions = {point.direction for point in points}
    if len(directions) > 1:
        return None

    return max(values, key=lambda value: sign(*directions) * value, default=None)
