"""Execution of saved queries (`archive.queries.catalogue`).

    saved.run(connection, "cost", {"task": "digits"})

The rows equal those that the text gives. Two kinds of queries are computed in Python: what Cypher
cannot express (`archive.queries.contributions`), and queries over all results of a task, which are
faster from columns of results (`archive.queries.columnar`). A study, task, protocol or objective in
a parameter must exist.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from archive.database.user_query import QueryResult, run_query
from archive.errors import UnknownNameError
from archive.queries import catalogue
from archive.queries.contributions import contributions
from archive.queries.families import with_years
from archive.store.properties import METRIC, read_column
from archive.store.studies import studies

if TYPE_CHECKING:
    from archive.database.connection import Connection

TASKS = """
MATCH (t:Task)
RETURN t.name AS task, t.protocol AS protocol
"""

OBJECTIVES = """
MATCH (s:Study)-[:ON]->(t:Task)
WHERE ($task IS NULL OR t.name = $task) AND ($protocol IS NULL OR t.protocol = $protocol)
RETURN DISTINCT s.objective AS objective
"""

PRICED = """
MATCH (t:Task {name: $task})
WHERE $protocol IS NULL OR t.protocol = $protocol
MATCH (t)<-[:ON]-(e:Evaluation)-[:OF]->(a:Architecture)
RETURN count(e) AS results, count(coalesce(a[$cost], e['metric_' + $cost], e[$cost])) AS priced
"""

COSTS = """
MATCH (t:Task {name: $task})
WHERE $protocol IS NULL OR t.protocol = $protocol
MATCH (t)<-[:ON]-(e:Evaluation)-[:OF]->(a:Architecture)
WITH e, a LIMIT 100
RETURN keys(e) AS result, keys(a) AS network
"""

_NAMES = ("study", "task", "protocol", "objective")

FINISHING: Mapping[str, Callable[[QueryResult], QueryResult]] = MappingProxyType(
    {"contributions": contributions, "families": with_years}
)
"""Functions that compute the answer from the rows of a query."""


def run(
    connection: Connection,
    name: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    limit: int | None = None,
    skip: int = 0,
    timeout: float | None = None,
) -> QueryResult:
    """Run a saved query.

    Args:
        connection: Connection to the archive.
        name: Name of the query.
        parameters: Values of parameters other than their defaults.
        limit: Maximum number of rows to return; further ones are cut off, and the result says so.
        skip: Number of rows to skip.
        timeout: Seconds after which the server ends it.

    Raises:
        UnknownNameError: There is no such query, study, task, protocol or objective, or the query
            has no such parameter.
        UsageError: A parameter is missing.
        QueryError: It took too long.
    """
    query = catalogue.get(name)
    values = _values(name, parameters)
    _check_names(connection, values)
    # Imported lazily: it imports numpy, and commands without a query should not pay for that.
    from archive.queries.columnar import ANSWERS

    deadline = math.inf if timeout is None else time.monotonic() + timeout
    finish = FINISHING.get(name)
    answer = ANSWERS[name](connection, values, deadline) if name in ANSWERS else None
    if finish is None and answer is None:
        return run_query(connection, query.cypher, values, limit=limit, skip=skip, timeout=timeout)

    whole = answer or run_query(connection, query.cypher, values, timeout=timeout)
    whole = whole if finish is None else finish(whole)
    end = None if limit is None else skip + limit
    return replace(
        whole, rows=whole.rows[skip:end], truncated=end is not None and len(whole.rows) > end
    )


def why_empty(
    connection: Connection, name: str, parameters: Mapping[str, Any] | None = None
) -> str | None:
    """Return why a saved query has no rows, if there is a specific reason.

    Arguments as for `run`.
    """
    if name != "frontier":
        return None

    values = _values(name, parameters)
    (counts,) = run_query(connection, PRICED, values).rows
    results, priced = counts
    if priced or not results:
        under = "" if values["protocol"] is None else f" under {values['protocol']}"
        return None if priced else f"the task {values['task']!r} has no results{under} yet"

    return f"none of the {results} results has {values['cost']}{_list_costs(connection, values)}"


def _list_costs(connection: Connection, values: Mapping[str, Any]) -> str:
    properties: set[str] = set()
    for result, network in run_query(connection, COSTS, values).rows:
        for key in result:
            if key.startswith(METRIC) or key in ("seconds", "epochs"):
                properties.add(key.removeprefix(METRIC))

        properties |= {"params", "flops", "mass"} & set(network)

    return f"; they have {', '.join(sorted(properties))}" if properties else ""


def _values(name: str, parameters: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return all parameters of a query with their values or defaults."""
    set_values = dict(parameters or {})
    catalogue.check(name, set_values)
    values = {}
    for parameter in catalogue.get(name).parameters.values():
        values[parameter.name] = set_values.get(parameter.name, parameter.default)

    # The name of a study may be 7, which the command line parses as a number.
    converted = {}
    for key, value in values.items():
        converted[key] = str(value) if key in _NAMES and value is not None else value

    return converted


def _check_names(connection: Connection, values: Mapping[str, Any]) -> None:
    study, task, protocol, objective = (values.get(name) for name in _NAMES)
    if study is not None:
        studies.read(connection, study)

    if task is not None or protocol is not None:
        _check_task(connection, task, protocol)

    if objective is not None:
        asked = {"task": task, "protocol": protocol}
        objectives = connection.read(lambda tx: read_column(tx.run(OBJECTIVES, asked), "objective"))
        if objective not in objectives:
            of = ""
            for kind, value in asked.items():
                if value is not None:
                    of += f" of the {kind} {value!r}"

            raise UnknownNameError(f"objective{of}", objective, objectives, "no study has one")


def _check_task(connection: Connection, task: str | None, protocol: str | None) -> None:
    pairs = connection.read(lambda tx: [(row["task"], row["protocol"]) for row in tx.run(TASKS)])
    tasks = {name for name, _ in pairs}
    if task is not None and task not in tasks:
        raise UnknownNameError("task", task, tasks, "the archive has results of none yet")

    protocols = {protocol for name, protocol in pairs if task in (None, name)}
    if protocol is not None and protocol not in protocols:
        of = "" if task is None else f" of the task {task!r}"
        raise UnknownNameError(f"protocol{of}", protocol, protocols, "the archive has none yet")
