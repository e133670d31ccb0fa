"""Changes of files in a difference, as `git diff` and Weights & Biases write it."""

from __future__ import annotations

from archive.runs.code_state import FileChange


def changes_of_patch(text: str) -> list[FileChange]:
    """Return the changes of a unified difference, by file."""
    changes = []
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("diff --git ") and lines:
            changes.append(_change(lines))
            lines = []

        lines.append(line)

    if lines:
        changes.append(_change(lines))

    return [change for change in changes if change.path]


def _change(lines: list[str]) -> FileChange:
    path = ""
    added = 0
    removed = 0
    in_hunk = False
    for line in lines:
        if line.startswith("@@"):
            in_hunk = True
        elif in_hunk:
            added += line.startswith("+")
            removed += line.startswith("-")
        elif line.startswith(("--- ", "+++ ")) and line[4:] != "/dev/null":
            # A file that is new or deleted has a name on one side alone.
            path = line[4:].split("\t")[0].removeprefix("a/").removeprefix("b/")

    return FileChange(path, added, removed, "".join(f"{line}\n" for line in lines))
