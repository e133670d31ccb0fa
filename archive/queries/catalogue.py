"""Catalogue of saved queries: the Cypher texts of `archive/queries`, one file each.

    catalogue.names()
    catalogue.get("cost").parameters

A file begins with comments: a summary, then one line for each parameter, `// $name = default    Description.`; a
parameter without a default is required. Values have the type of the default, or the one in brackets
after it:
`// $name = null (true or false)    Description.` All queries only read, and run on both servers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import takewhile
from typing import Any

from archive.errors import UnknownNameError, UsageError

_PARAMETER = re.compile(
    r"// \$(\w+)(?: = (?P<default>.+?)(?: \((?P<type>true or "
    r"false)\))?)?(?:\s{2,}|\s*$)\s*(?P<help>.*)"
)


@dataclass(frozen=True)
class SavedQueryParameter:
    """A parameter of a saved query.

    Attributes:
        name: Its name.
        help: Its meaning.
        needed: Whether it must be given.
        default: Its value otherwise.
        type: Type of its values in words; null for any.
    """

    name: str
    help: str
    needed: bool
    default: Any = None
    type: str | None = None


@dataclass(frozen=True)
class SavedQuery:
    """A saved query with its text.

    Attributes:
        name: Name of the query.
        summary: Summary of its answer.
        parameters: Parameters by name.
        cypher: The whole text with comments.
    """

    name: str
    summary: str
    parameters: Mapping[str, SavedQueryParameter]
    cypher: str

    def after(self, mark: str) -> str:
        """Return the part of the text after the line `// mark: …`."""
        line = re.search(rf"^// {mark}: .*\n", self.cypher, re.MULTILINE)
        if line is None:
            raise UsageError(f"the saved query {self.name} has no line that begins with // {mark}:")

        return self.cypher[line.end() :]


@cache
def names() -> tuple[str, ...]:
    """Return the names of all saved queries, alphabetically."""
    folder = files("archive.queries")
    return tuple(
        sorted(
            file.name.removesuffix(".cypher")
            for file in folder.iterdir()
            if file.name.endswith(".cypher")
        )
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
    head = list(takewhile(lambda line: line.startswith("//"), text.splitlines()))
    summary = " ".join(line.removeprefix("// ") for line in head if not line.startswith("// $"))
    parameters = []
    for line in head:
        if line.startswith("// $"):
            parameters.append(_parameter(line))

    return SavedQuery(name, summary, {parameter.name: parameter for parameter in parameters}, text)


def check(name: str, values: Mapping[str, Any]) -> None:
    """Check the parameters of a saved query: their names, their values, and that none is missing.

    Raises:
        UnknownNameError: There is no such query, or it has no such parameter.
        UsageError: A parameter is missing, or its value is not of the type of its default.
    """
    parameters = get(name).parameters
    for key, value in values.items():
        if key not in parameters:
            raise UnknownNameError(
                "parameter", key, parameters, "it has none", owner=f"the saved query {name}"
            )

        declared = parameters[key]
        is_default = value is None and declared.default is None
        if declared.type is not None and not is_default and _type(value) != declared.type:
            raise UsageError(f"the parameter {key!r} must be {declared.type}, got {value!r:.60}")

    for parameter in parameters.values():
        if parameter.needed and values.get(parameter.name) is None:
            raise UsageError(
                f"the saved query {name} needs the parameter {parameter.name!r}: {parameter.help}"
            )


def _type(value: Any) -> str:
    """Return the name of a JSON value's type for errors; numbers of both kinds are one type."""
    if isinstance(value, bool):
        return "true or false"

    if isinstance(value, list | tuple):
        return "a list of texts" if all(isinstance(item, str) for item in value) else "a list"

    kinds = {str: "text", int: "a number", float: "a number"}
    return kinds.get(type(value), f"a {type(value).__name__}")


def _parameter(line: str) -> SavedQueryParameter:
    match = _PARAMETER.fullmatch(line)
    if match is None:
        raise UsageError(
            f"a saved query declares parameters as // $name = default (type)    help, got {line!r}"
        )

    default = None if match["default"] is None else json.loads(match["default"])
    # Null has no type, and text is true in Python, also the text False.
    of_values = match["type"] or (None if default is None else _type(default))
    return SavedQueryParameter(
        match[1], match["help"], match["default"] is None, default, of_values
    )
