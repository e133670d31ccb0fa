"""The difference of the source files of two runs, for readers: files with their lines, within bounds.

The text is a unified diff (`archive.queries.tried.differences`). It may hold anything: what is no part
of a file's lines is a note.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from archive.queries.tried.differences import LineKind, read_difference
from archive.runs.code_state import FileChange
from archive.runs.texts.plain_text import cut_line, plain_text

MOST_LINES = 3000
"""Lines of all files together."""

MOST_LETTERS = 400
"""Letters of a line."""


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
    files: dict[int, FileDifference] = {}
    room = most
    for line in read_difference(text):
        if line.kind == "head":
            path = cut_line(plain_text(line.path), MOST_LETTERS)
            files.setdefault(line.file, FileDifference("")).path = path
            continue

        if line.kind == "note" and not line.text.strip():
            continue

        file = files.setdefault(line.file, FileDifference(""))
        file.added += line.kind == "added"
        file.removed += line.kind == "removed"
        if room <= 0:
            file.left_out += 1
            continue

        room -= 1
        row = line.text if line.kind in ("place", "note") else line.text[1:]
        file.lines.append((line.kind, cut_line(plain_text(row), MOST_LETTERS)))

    return list(files.values())


def list_changed_files(text: str | None) -> list[str]:
    """Return the files of a difference with their numbers of lines, `train.py +3 -1`."""
    changes = []
    for file in files_of_difference(text or "", most=0):
        if file.path:
            changes.append(str(FileChange(file.path, file.added, file.removed, "")))

    return changes
