"""Griffe extension that escapes Markdown in docstrings, which are plain text.

`<x, y>` is an inner product and no HTML tag; `|w - w'|`, in a table whose columns are aligned, is
no border of a cell.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

INDENTED = "    "
CODE = re.compile(r"(`[^`]*`)")
TAG = re.compile(r"<(?=[A-Za-z/!])")
RULE = re.compile(r"\|(?:-+\|)+")


class PlainText(griffe.Extension):
    """Escapes the text of every docstring, once it is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Escape one docstring."""
        if obj.docstring is not None:
            obj.docstring.value = escaped(obj.docstring.value)


def escaped(text: str) -> str:
    """Return a docstring without accidental markup.

    Code, in backticks or indented, stays as it is.
    """
    borders: set[int] = set()
    lines = text.split("\n")
    for at, line in enumerate(lines):
        rule = lines[at + 1] if at + 1 < len(lines) else ""
        if not line.startswith("|"):
            borders = set()
        elif RULE.fullmatch(rule.replace(" ", "").replace(":", "")):
            borders = _pipes(rule)

        if borders and borders <= _pipes(line):
            line = "".join(
                "\\|" if mark == "|" and at not in borders else mark for at, mark in enumerate(line)
            )

        if not line.startswith(INDENTED):
            line = "".join(
                part if part.startswith("`") else TAG.sub("&lt;", part) for part in CODE.split(line)
            )

        lines[at] = line

    return "\n".join(lines)


def _pipes(line: str) -> set[int]:
    return {at for at, mark in enumerate(line) if mark == "|"}
