"""Lineage of a study's best network, found by generations.

The text of the query follows every path to the best network, and their number multiplies with the
generations. Here the edges are read a generation at a time, and a parent counts if the study
proposed it before its child. Such edges have no circles, so that the longest path is found in one
pass.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from archive.database.user_query import QueryResult, run_query
from archive.errors import QueryError
from archive.objectives import sign
from archive.queries import catalogue
from archive.store import result_columns
from archive.store.properties import metric_properties
from archive.store.studies import studies

if TYPE_CHECKING:
    from archive.database.connection import Connection
    from archive.store.records import Study

MOST_STEPS = 40
"""Most steps of a lineage, as in the text of the query."""

PARENTS = """
UNWIND $keys AS key
MATCH (child:Architecture {key: key})
MATCH (child)<-[m:MORPHED_INTO]-(parent:Architecture)
MATCH (parent)<-[:OF]-(p:Proposal)
WHERE p.study = $study
RETURN key AS child, parent.key AS parent, min(p.number) AS number, m.operations AS operations
ORDER BY child, number, parent
"""

NUMBER = """
MATCH (a:Architecture {key: $key})
MATCH (a)<-[:OF]-(p:Proposal)
WHERE p.study = $study
RETURN min(p.number) AS number
"""

STEPS = """
UNWIND $steps AS of
MATCH (network:Architecture {key: of.key})
OPTIONAL MATCH (parent:Architecture {key: of.parent})
WITH of.step AS step, network, parent, of.operations AS operations
"""


class _PathStep(NamedTuple):
    """One network of the path to the best one: how far it is from it, and its child on the path."""

    distance: int
    child: str | None
    operations: list[str]


def lineage(
    connection: Connection, params: Mapping[str, Any], deadline: float = math.inf
) -> QueryResult | None:
    """Answer `lineage`."""
    study = studies.read(connection, params["study"])
    best = _best(connection, study, deadline)
    if best is None:
        return None

    path = _longest(connection, study.name, best, deadline)
    steps = []
    for position, (key, operations) in enumerate(path):
        steps.append(
            {
                "step": position,
                "key": key,
                "parent": path[position - 1][0] if position else None,
                "operations": operations,
            }
        )

    return _run(
        connection,
        STEPS + catalogue.get("lineage").after("steps"),
        {**params, "steps": steps},
        deadline,
    )


def _longest(
    connection: Connection, study: str, best: str, deadline: float
) -> list[tuple[str, list[str]]]:
    """Return the networks of the longest path to the best one.

    Each has the operations that made it of its parent.
    """
    numbers = {best: _run(connection, NUMBER, {"key": best, "study": study}, deadline).rows[0][0]}
    made: dict[str, list[tuple[str, list[str]]]] = {}
    generation = [best]
    for _ in range(MOST_STEPS):
        records = (
            _run(connection, PARENTS, {"keys": generation, "study": study}, deadline).rows
            if generation
            else []
        )
        generation = []
        for child, parent, number, operations in records:
            if number < numbers[child]:
                made.setdefault(child, []).append((parent, list(operations or ())))
                if parent not in numbers:
                    numbers[parent] = number
                    generation.append(parent)

    steps = {best: _PathStep(0, None, [])}
    # A child comes before its parents, which have smaller numbers.
    for child in sorted(numbers, key=lambda key: -numbers[key]):
        distance = steps[child].distance + 1
        for parent, operations in made.get(child, ()) if distance <= MOST_STEPS else ():
            if parent not in steps or steps[parent].distance < distance:
                steps[parent] = _PathStep(distance, child, operations)

    first: str | None = max(steps, key=lambda key: (steps[key].distance, -numbers[key], key))
    path = list[tuple[str, list[str]]]()
    operations = list[str]()
    while first is not None:
        path.append((first, operations))
        operations = steps[first].operations
        first = steps[first].child

    return path


def _run(
    connection: Connection, query: str, params: Mapping[str, Any], deadline: float
) -> QueryResult:
    left = deadline - time.monotonic()
    if left <= 0:
        raise QueryError("the query took longer than its limit: narrow it, or allow it more time")

    return run_query(connection, query, params, timeout=None if left == math.inf else left)


def _best(connection: Connection, study: Study, deadline: float) -> str | None:
    """Return the key of the best network.

    Results that meet the constraints come first, then whole ones, then those with a finite value of
    each objective.
    """
    further = metric_properties(study.further)
    names = ["value", "partial", "architecture", *further]
    limited = metric_properties(study.constraints)
    best: tuple[tuple[bool, bool, bool, float], str] | None = None
    for part in result_columns.read(
        connection, [study.name], [*dict.fromkeys([*names, *limited])], deadline
    ):
        met = result_columns.feasible(study.constraints, part.columns)
        rows = zip(met, *(part.columns[name] for name in names), strict=True)
        for feasible, value, partial, key, *others in rows:
            if value is None or math.isnan(value):
                continue

            complete = all(other is not None and math.isfinite(other) for other in others)
            rank = (feasible, not partial, complete, sign(study.direction) * value)
            # Of equal results, the first one.
            if best is None or rank > best[0]:
                best = rank, key

    return None if best is None else best[1]
