"""Column names of an empty result, derived from the query text, because ArcadeDB sends names with
the first row only.

Names are those that the servers use: the alias of a column, or its expression as written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

_PIECES = re.compile(
    r"""(?P<space>\s+|//[^\r\n]*|/\*.*?\*/)
      | (?P<quoted>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`]|``)*`)
      | (?P<word>\w+)
      | (?P<mark>.)""",
    re.VERBOSE | re.DOTALL,
)
_BEFORE_A_NAME = frozenset([".", ":", "$", "AS"])
_AFTER_RETURN = frozenset(["ORDER", "SKIP", "OFFSET", "LIMIT", "UNION", "NEXT", ";"])


class _Piece(NamedTuple):
    text: str
    at: int
    end: int


def columns_of(cypher: str) -> list[str]:
    """Return the names of a query's columns; empty for a text without RETURN or with `RETURN *`."""
    pieces = list(_outside_brackets(cypher))
    clauses = [
        at
        for at, piece in enumerate(pieces)
        if piece.text.upper() == "RETURN" and not _is_name(pieces, at)
    ]
    if not clauses:
        return []

    returned = pieces[clauses[-1] + 1 :]
    ends = (
        at
        for at, one in enumerate(returned)
        if one.text.upper() in _AFTER_RETURN and not _is_name(returned, at)
    )
    returned = returned[: next(ends, len(returned))]
    if returned and returned[0].text.upper() == "DISTINCT":
        returned = returned[1:]

    items = [
        list(part)
        for comma, part in groupby(returned, lambda piece: piece.text == ",")
        if not comma
    ]
    return (
        []
        if any(item[0].text == "*" for item in items)
        else [_name(cypher, item) for item in items]
    )


def _outside_brackets(cypher: str) -> Iterator[_Piece]:
    depth = 0
    for match in _PIECES.finditer(cypher):
        depth -= match[0] in (")", "]", "}")
        if not depth and match.lastgroup != "space":
            yield _Piece(match[0], match.start(), match.end())

        depth += match[0] in ("(", "[", "{")


def _is_name(pieces: Sequence[_Piece], at: int) -> bool:
    return at > 0 and pieces[at - 1].text.upper() in _BEFORE_A_NAME


def _name(cypher: str, item: Sequence[_Piece]) -> str:
    if len(item) > 2 and item[-2].text.upper() == "AS":
        return item[-1].text.strip("`").replace("``", "`")

    return cypher[item[0].at : item[-1].end]
