"""Questions that archives are asked again and again: Cypher texts of `archive/queries`, one file each.

    saved_queries.names()                                        what there is
    saved_queries.run(connection, "cost", {"task": "digits"})    the answer

A file begins with comments: what it answers, then one line a parameter, `// $name = default    What it means.`; one
without a default has to be given. All of them only read, and run on both servers. What Cypher has no words for (a basis
is text) is computed from the rows by a function of this module. Those that go through all results of a task are
computed from columns of results (`archive.queries.columnar`), with the rows that their texts have. What a parameter
names has to be there: a study, a task, a protocol.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from archive.database.column_names import with_columns
from archive.database.user_query import QueryResult
from archive.errors import UnknownNameError, UsageError
from archive.queries.contributions import contributions
from archive.store import studies
from archive.store.properties import METRIC

if TYPE_CHECKING:
    from archive.database.connection import Connection

TASKS = """
MATCH (t:Task)
RETURN t.name AS task, t.protocol AS protocol
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

_NAMES = ("study", "task", "protocol")

_PARAMETER = re.compile(r"// \$(\w+)(?: = (?P<default>.+?))?(?:\s{2,}|\s*$)\s*(?P<help>.*)")


@dataclass(frozen=True)
class Parameter:
    """One parameter of a saved query; without a default it has to be given."""

    name: str
    help: str
    needed: bool
    default: Any = None


@dataclass(frozen=True)
class SavedQuery:
    """A question with its text.

    Attributes:
        name: What it is asked by.
        summary: What it answers.
        parameters: Name to parameter.
        cypher: The whole text, comments included.
    """

    name: str
    summary: str
    parameters: Mapping[str, Parameter]
    cypher: str


FINISHING: Mapping[str, Callable[[QueryResult], QueryResult]] = MappingProxyType({"contributions": contributions})
"""Queries whose rows are not yet the answer."""


@cache
def names() -> tuple[str, ...]:
    """Return the names of all saved queries, alphabetically."""
    folder = files("archive.queries")
    return tuple(
        sorted(file.name.removesuffix(".cypher") for file in folder.iterdir() if file.name.endswith(".cypher"))
    )


@cache
def get(name: str) -> SavedQuery:
    """Return a saved query.

    Raises:
        UnknownNameError: There is none of this name.
    """
    if name not in names():
        raise UnknownNameError("saved query", name, names())
    text = (files("archive.queries") / f"{name}.cypher").read_text(encoding="utf-8")
    head = [line for line in text.splitlines() if line.startswith("//")]
    summary = " ".join(line.removeprefix("// ") for line in head if not line.startswith("// $"))
    parameters = [_parameter(line) for line in head if line.startswith("// $")]
    return SavedQuery(name, summary, {each.name: each for each in parameters}, text)


def run(
    connection: Connection,
    name: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    limit: int | None = None,
    skip: int = 0,
    timeout: float | None = None,
) -> QueryResult:
    """Answer a saved query.

    Args:
        connection: The archive.
        name: Its name.
        parameters: Those that are not to have their defaults.
        limit: Most rows to return; more are cut off, and the result says so.
        skip: Rows to leave out first.
        timeout: Seconds after which the server gives up on it.

    Raises:
        UnknownNameError: There is no such query, study, task or protocol, or the query has no such parameter.
        UsageError: A parameter is missing.
        QueryError: It took too long.
    """
    query, values = get(name), _values(name, parameters)
    _check_names(connection, values)
    # With numpy: what asks nothing is not to wait for it.
    from archive.queries.columnar import ANSWERS

    deadline = math.inf if timeout is None else time.monotonic() + timeout
    finish, found = FINISHING.get(name), ANSWERS[name](connection, values, deadline) if name in ANSWERS else None
    if finish is None and found is None:
        answer = connection.query(query.cypher, values, limit=limit, skip=skip, timeout=timeout)
        return with_columns(answer, query.cypher)
    whole = found or connection.query(query.cypher, values, timeout=timeout)
    whole = with_columns(whole, query.cypher) if finish is None else finish(whole)
    end = None if limit is None else skip + limit
    return replace(whole, rows=whole.rows[skip:end], truncated=end is not None and len(whole.rows) > end)


def why_empty(connection: Connection, name: str, parameters: Mapping[str, Any] | None = None) -> str | None:
    """Return why a saved query had no rows, where that is more than that there is nothing; arguments as of `run`."""
    if name != "frontier":
        return None
    given = _values(name, parameters)
    (counts,) = connection.query(PRICED, given).rows
    results, priced = counts
    if priced or not results:
        under = "" if given["protocol"] is None else f" under {given['protocol']}"
        return None if priced else f"the task {given['task']!r} has no results{under} yet"
    return f"none of the {results} results has {given['cost']}{_known_costs(connection, given)}"


def _known_costs(connection: Connection, given: Mapping[str, Any]) -> str:
    known: set[str] = set()
    for result, network in connection.query(COSTS, given).rows:
        known |= {key.removeprefix(METRIC) for key in result if key.startswith(METRIC) or key in ("seconds", "epochs")}
        known |= {"params", "flops", "mass"} & set(network)
    return f"; they have {', '.join(sorted(known))}" if known else ""


def check(name: str, given: Mapping[str, Any]) -> None:
    """Make sure that a saved query can be asked with these parameters.

    Raises:
        UnknownNameError: There is no such query, or it has no such parameter.
        UsageError: A parameter is missing.
    """
    parameters = get(name).parameters
    for each in given:
        if each not in parameters:
            raise UnknownNameError(f"parameter of the saved query {name}", each, parameters, "it has none")
    for parameter in parameters.values():
        if parameter.needed and given.get(parameter.name) is None:
            raise UsageError(f"the saved query {name} needs the parameter {parameter.name!r}: {parameter.help}")


def _values(name: str, parameters: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return all parameters of a query, those that were not given with their defaults."""
    given = dict(parameters or {})
    check(name, given)
    values = {each.name: given.get(each.name, each.default) for each in get(name).parameters.values()}
    # A study may be called 7, which the command line reads as a number.
    return {key: str(value) if key in _NAMES and value is not None else value for key, value in values.items()}


def _check_names(connection: Connection, values: Mapping[str, Any]) -> None:
    study, task, protocol = (values.get(name) for name in _NAMES)
    if study is not None:
        studies.read(connection, study)
    if task is None and protocol is None:
        return
    known = connection.read(lambda tx: [(row["task"], row["protocol"]) for row in tx.run(TASKS)])
    tasks = {name for name, _ in known}
    if task is not None and task not in tasks:
        raise UnknownNameError("task", task, tasks, "the archive has results of none yet")
    protocols = {each for name, each in known if task in (None, name)}
    if protocol is not None and protocol not in protocols:
        of = "" if task is None else f" of the task {task!r}"
        raise UnknownNameError(f"protocol{of}", protocol, protocols, "the archive has none yet")


def _parameter(line: str) -> Parameter:
    found = _PARAMETER.fullmatch(line)
    if found is None:
        raise UsageError(f"a saved query declares parameters as // $name = default    help, got {line!r}")
    default = found["default"]
    return Parameter(found[1], found["help"], default is None, None if default is None else json.loads(default))
