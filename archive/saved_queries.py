"""Questions that archives are asked again and again: Cypher texts of `archive/queries`, one file each.

    saved_queries.names()                                        what there is
    saved_queries.run(connection, "cost", {"task": "digits"})    the answer

A file begins with comments: what it answers, then one line a parameter, `// $name = default    What it means.`; one
without a default has to be given. All of them only read, and run on both servers. What Cypher has no words for (a basis
is text) is computed from the rows by a function of this module. Those that go through all results of a task are
answered from pages where there are some (`archive.page_answers`), as their texts would.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from archive import studies
from archive.contributions import contributions
from archive.errors import UnknownNameError, UsageError
from archive.query import QueryResult

if TYPE_CHECKING:
    from archive.connection import Connection

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
    folder = files("archive") / "queries"
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
    text = (files("archive") / "queries" / f"{name}.cypher").read_text(encoding="utf-8")
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
        UnknownNameError: There is no such query or study, or it has no such parameter.
        UsageError: A parameter is missing.
        QueryError: It took too long.
    """
    query, given = get(name), dict(parameters or {})
    check(name, given)
    values = {each.name: given.get(each.name, each.default) for each in query.parameters.values()}
    if values.get("study") is not None:
        studies.read(connection, values["study"])
    # With numpy: what asks nothing is not to wait for it.
    from archive.page_answers import ANSWERS

    finish, found = FINISHING.get(name), ANSWERS[name](connection, values) if name in ANSWERS else None
    if finish is None and found is None:
        return connection.query(query.cypher, values, limit=limit, skip=skip, timeout=timeout)
    whole = found or connection.query(query.cypher, values, timeout=timeout)
    whole = whole if finish is None else finish(whole)
    end = None if limit is None else skip + limit
    return replace(whole, rows=whole.rows[skip:end], truncated=end is not None and len(whole.rows) > end)


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
        if parameter.needed and parameter.name not in given:
            raise UsageError(f"the saved query {name} needs the parameter {parameter.name!r}: {parameter.help}")


def _parameter(line: str) -> Parameter:
    found = _PARAMETER.fullmatch(line)
    if found is None:
        raise UsageError(f"a saved query declares parameters as // $name = default    help, got {line!r}")
    default = found["default"]
    return Parameter(found[1], found["help"], default is None, None if default is None else json.loads(default))
