"""Unified differences of source files as text: which lines of which files they change."""

from __future__ import annotations

import re
from collections import Counter

ChangedLines = Counter[tuple[str, str]]
"""How often each line is changed, by file and signed line, such as `("train.py", "+lr = 0.1")`."""


def changed_lines(diff: str) -> ChangedLines:
    """Return how often a unified difference changes each line.

    Headers, context, empty lines and the space around lines are left out, so that the differences of
    `git diff` and of `archive record` are comparable.
    """
    lines: ChangedLines = Counter()
    for path, text in split_files(diff).items():
        for row in _body(text):
            if row[:1] in ("+", "-") and row[1:].strip():
                lines[path, row[0] + row[1:].strip()] += 1

    return lines


def split_files(diff: str) -> dict[str, str]:
    """Return the part of each file of a unified difference by its path, in their order.

    Lines before the first file belong to a file without a name, if they change anything.
    """
    parts: dict[str, list[str]] = {"": []}
    path = ""
    rows = diff.splitlines()
    for position, row in enumerate(rows):
        following = rows[position + 1] if position + 1 < len(rows) else ""
        if row.startswith("--- ") and following.startswith("+++ "):
            path = _file_name(row, following)

        parts.setdefault(path, []).append(row)

    texts = {name: "".join(f"{row}\n" for row in part) for name, part in parts.items()}
    return {name: text for name, text in texts.items() if any(count_lines(text))}


def count_lines(text: str) -> tuple[int, int]:
    """Return the numbers of lines that the difference of one file adds and removes."""
    added = 0
    removed = 0
    for row in _body(text):
        added += row.startswith("+")
        removed += row.startswith("-")

    return added, removed


def _body(text: str) -> list[str]:
    """Return the lines of one file's difference without its two lines of names."""
    rows = text.splitlines()
    if len(rows) > 1 and rows[0].startswith("--- ") and rows[1].startswith("+++ "):
        return rows[2:]

    return rows


def _file_name(before: str, after: str) -> str:
    """Return the path of a file in the two lines of its names."""
    named = before if after.startswith("+++ /dev/null") else after
    # Some programs write a tab and a time after the path.
    path = named[4:].split("\t")[0].strip()
    return re.sub(r"^[ab]/", "", path)
