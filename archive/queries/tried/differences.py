"""Unified differences of source files as text: which lines of which files they change.

git, `archive record` and language models write them, and they may be cut anywhere. Lines within the
numbers of a hunk are lines of the file whatever they look like; after it, and in a file without such
numbers, a line with a sign counts as well, since models miscount.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Literal, NamedTuple

ChangedLines = Counter[tuple[str, str]]
"""How often each line is changed, by file and signed line, such as `("train.py", "+lr = 0.1")`."""

LineKind = Literal["same", "added", "removed", "place", "note"]

# Python reads no number of thousands of digits.
_HUNK = re.compile(r"@@ -\d+(?:,(\d{1,9}))? \+\d+(?:,(\d{1,9}))? @@")
_OF_GIT = re.compile(
    r"(?:index|(?:new|deleted) file mode|(?:old|new) mode|(?:dis)?similarity index"
    r"|(?:rename|copy) (?:from|to)) "
)
_KINDS: dict[str, LineKind] = {"+": "added", "-": "removed", " ": "same"}
_CHANGES = ("added", "removed")
_END_OF_PATCH = "--"
"""Line before git's version at the end of a patch that is sent by mail."""


class DifferenceLine(NamedTuple):
    """A line of a difference.

    Attributes:
        file: Number of its file, from 1; 0 for lines before the first file.
        path: Path of the file, as far as it is known; empty for 0.
        kind: Kind of the line; `place` lines say where in the file the next ones are, and `head`
            lines name the file.
        text: The line, with its sign.
    """

    file: int
    path: str
    kind: LineKind | Literal["head"]
    text: str


def read_difference(diff: str) -> Iterator[DifferenceLine]:
    """Yield the lines of a unified difference with their files."""
    reader = _DifferenceReader()
    rows = diff.split("\n")
    if not rows[-1]:
        rows.pop()

    for position, row in enumerate(rows):
        yield reader.take(row, rows[position + 1 : position + 3])


def changed_lines(diff: str) -> ChangedLines:
    """Return how often a unified difference changes each line.

    Headers, context, empty lines and the space around lines are left out, so that the differences of
    `git diff` and of `archive record` are comparable.
    """
    lines: ChangedLines = Counter()
    for line in read_difference(diff):
        content = line.text[1:].strip()
        if line.kind in _CHANGES and content:
            lines[line.path, line.text[0] + content] += 1

    return lines


def split_files(diff: str) -> dict[str, str]:
    """Return the part of each file of a unified difference by its path, in their order.

    Lines before the first file belong to a file without a name. Files of which no line changes are
    left out.
    """
    paths: dict[int, str] = {}
    parts: dict[int, list[str]] = {}
    changed = set()
    for line in read_difference(diff):
        paths[line.file] = line.path
        parts.setdefault(line.file, []).append(f"{line.text}\n")
        if line.kind in _CHANGES:
            changed.add(line.file)

    texts: dict[str, str] = {}
    for file in sorted(changed):
        texts[paths[file]] = texts.get(paths[file], "") + "".join(parts[file])

    return texts


def count_lines(text: str) -> tuple[int, int]:
    """Return the numbers of lines that a difference adds and removes."""
    kinds = Counter(line.kind for line in read_difference(text))
    return kinds["added"], kinds["removed"]


class _DifferenceReader:
    """State of a difference that is read line by line."""

    def __init__(self) -> None:
        self._file = 0
        self._path = ""
        self._is_at_head = False
        # Lines of the old and of the new file that the present hunk still has.
        self._left = [0, 0]

    def take(self, row: str, following: list[str]) -> DifferenceLine:
        """Return a line; the next two tell a file's name from a line that begins like one."""
        kind = self._kind(row, following)
        if kind != "head":
            self._is_at_head = False

        return DifferenceLine(self._file, self._path, kind, row)

    def _kind(self, row: str, following: list[str]) -> LineKind | Literal["head"]:
        is_in_hunk = max(self._left) > 0
        signed = _KINDS.get(row[:1])
        if row.startswith("--- ") and self._names_file(following):
            name = row if following[0].startswith("+++ /dev/null") else following[0]
            # After `diff --git`, whose two names are told apart by their prefixes alone.
            self._begin_file(name[4:], is_new=not self._is_at_head)
            return "head"

        if is_in_hunk and (signed is not None or not row.strip()):
            kind = signed or "same"
            self._left[0] -= kind != "added"
            self._left[1] -= kind != "removed"
            return kind

        if row.startswith("diff --git "):
            self._begin_file(row.rpartition(" b/")[2], is_new=True)
            return "head"

        if self._is_at_head and (row.startswith("+++ ") or _OF_GIT.match(row)):
            return "head"

        if row.startswith("@@"):
            hunk = _HUNK.match(row)
            numbers = (None, None) if hunk is None else hunk.groups()
            self._left = [0, 0] if hunk is None else [int(number or 1) for number in numbers]
            return "place"

        if row.startswith("\\"):
            # "No newline at end of file" may stand within a hunk.
            return "note"

        self._left = [0, 0]
        if signed in _CHANGES and row.rstrip() != _END_OF_PATCH:
            return signed

        return "same" if signed == "same" and self._file else "note"

    def _names_file(self, following: list[str]) -> bool:
        """Return whether a line that begins with `--- ` names a file.

        It does where no hunk is open. Within one, it is a removed line, unless a hunk begins behind
        it: models miscount.
        """
        if not following or not following[0].startswith("+++ "):
            return False

        if max(self._left) <= 0:
            return True

        return len(following) > 1 and following[1].startswith("@@")

    def _begin_file(self, name: str, is_new: bool) -> None:
        # Some programs write a tab and a time after the path.
        self._path = re.sub(r"^[ab]/", "", name.split("\t")[0].strip())
        self._file += is_new
        self._left = [0, 0]
        self._is_at_head = True
