"""The difference of the source files of two runs, taken apart into files and lines.

The text is a unified diff, as `archive.runs.code_state` or git makes it. It may be cut anywhere, and may
hold anything: what is no part of a file's lines is a note.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from archive.runs.code_state import FileChange
from archive.runs.texts.plain_text import cut_line, plain_text

MOST_LINES = 3000
"""Lines of all files together."""

MOST_LETTERS = 400
"""Letters of a line."""

LineKind = Literal["same", "added", "removed", "place", "note"]

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_OF_GIT = re.compile(r"(?:index|(?:new|deleted) file mode|(?:old|new) mode|similarity index) ")
_KINDS: dict[str, LineKind] = {"+": "added", "-": "removed", " ": "same"}


@dataclass
class FileDifference:
    """What changed in one file.

    Attributes:
        path: Path of the file; empty for lines before the first file.
        added: Number of new lines.
        removed: Number of lines that are gone.
        lines: Kind and text of each line; `place` lines say where in the file the next ones are.
        left_out: Number of lines that are left out.
    """

    path: str
    added: int = 0
    removed: int = 0
    lines: list[tuple[LineKind, str]] = field(default_factory=list)
    left_out: int = 0


def files_of_difference(text: str, most: int = MOST_LINES) -> list[FileDifference]:
    """Return the files of a difference, each with its lines.

    Args:
        text: A unified diff.
        most: Largest number of lines of all files together; later ones are counted.
    """
    reader = _DifferenceReader(most)
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()

    for position, line in enumerate(lines):
        following = lines[position + 1] if position + 1 < len(lines) else ""
        reader.take(line, following)

    return reader.files


def list_changed_files(text: str | None) -> list[str]:
    """Return the files of a difference with their numbers of lines, `train.py +3 -1`."""
    changes = []
    for file in files_of_difference(text or "", most=0):
        if file.path:
            changes.append(str(FileChange(file.path, file.added, file.removed, "")))

    return changes


class _DifferenceReader:
    """The files of a difference that is read line by line."""

    def __init__(self, most: int) -> None:
        self.files: list[FileDifference] = []
        self._room = most
        self._is_at_head = False
        # Lines of the old and of the new file that the present hunk still has.
        self._left = [0, 0]

    def take(self, line: str, following: str) -> None:
        """Read a line; the following one tells a file's name from a line that begins like one."""
        kind = _KINDS.get(line[:1])
        if max(self._left) > 0 and (kind is not None or not line):
            self._take_line(kind or "same", line[1:])
        elif line.startswith("diff --git "):
            self._begin_file(line.rpartition(" b/")[2])
        elif line.startswith("--- ") and following.startswith("+++ "):
            name = line if following.startswith("+++ /dev/null") else following
            if self._is_at_head:
                # After `diff --git`, whose two names are told apart by their prefixes alone.
                self.files.pop()

            self._begin_file(name[4:])
        elif self._is_at_head and (line.startswith("+++ ") or _OF_GIT.match(line)):
            return
        elif (hunk := _HUNK.match(line)) is not None:
            self._left = [int(count) if count else 1 for count in hunk.groups()]
            self._add("place", line)
        elif line:
            self._left = [0, 0]
            self._add("note", line)

    def _begin_file(self, name: str) -> None:
        path = re.sub(r"^[ab]/", "", name.split("\t")[0].strip())
        self._left = [0, 0]
        self._is_at_head = True
        self.files.append(FileDifference(cut_line(plain_text(path), MOST_LETTERS)))

    def _take_line(self, kind: LineKind, text: str) -> None:
        self._left[0] -= kind != "added"
        self._left[1] -= kind != "removed"
        self._add(kind, text)

    def _add(self, kind: LineKind, text: str) -> None:
        if not self.files:
            self.files.append(FileDifference(""))

        self._is_at_head = False
        file = self.files[-1]
        file.added += kind == "added"
        file.removed += kind == "removed"
        if self._room <= 0:
            file.left_out += 1
            return

        self._room -= 1
        file.lines.append((kind, cut_line(plain_text(text), MOST_LETTERS)))
