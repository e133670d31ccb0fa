"""The words of conditions and constraints: numbers, texts, names and operators."""

from __future__ import annotations

import re
from typing import NamedTuple

from archive.parameters.expressions import ExpressionError


class ExpressionToken(NamedTuple):
    """A word of a text with its column, from 1; the kind `end` stands behind the last."""

    kind: str
    text: str
    column: int


_SPACES = re.compile(r"\s*", re.ASCII)
_TOKENS = re.compile(
    r"""\s*(?:
        (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)
      | (?P<name>[A-Za-z_][A-Za-z_0-9]*)
      | (?P<text>'[^'\\]*'|"[^"\\]*")
      | (?P<operator>\*\*|//|==|!=|<=|>=|[-+*/%<>()\[\],])
      | (?P<end>$)
    )""",
    re.VERBOSE | re.ASCII,
)

CONSTANTS = {
    "true": True,
    "True": True,
    "false": False,
    "False": False,
    "null": None,
    "None": None,
}
WORDS = frozenset(["and", "or", "not", "in"])
RESERVED = WORDS | CONSTANTS.keys()
"""Words of the grammar, which are no names of parameters."""


def read_tokens(text: str) -> list[ExpressionToken]:
    """Return the tokens of a text, the last one its end.

    Raises:
        ExpressionError: The text has a sign that is no token.
    """
    tokens: list[ExpressionToken] = []
    position = 0
    while not tokens or tokens[-1].kind != "end":
        match = _TOKENS.match(text, position)
        if match is None or match.lastgroup is None:
            spaces = _SPACES.match(text, position)
            start = position if spaces is None else spaces.end()
            raise ExpressionError(text, _describe_stray(text[start:]), start + 1)

        kind = match.lastgroup
        tokens.append(ExpressionToken(kind, match[kind], match.start(kind) + 1))
        position = match.end()

    return tokens


def _describe_stray(rest: str) -> str:
    if rest.startswith(("'", '"')):
        return "the text has no end, or a backslash"

    if rest.startswith("="):
        return "= is no comparison, write =="

    return f"unexpected {rest[0]!r}"
