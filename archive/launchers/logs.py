"""Logs of trainers, in messages."""

from __future__ import annotations

from pathlib import Path

from archive.launchers.base import UNFIT_CODE

LINES = 3


def tail(path: Path, code: int | None) -> str:
    """Return the place of a log and its last lines, as one line.

    Args:
        path: The log.
        code: Exit code of the trainer; None where it is unknown.
    """
    # The last line of a trainer on a machine where trials cannot begin has the reason, and those before it have not.
    number = 1 if code == UNFIT_CODE else LINES
    lines = path.read_text(errors="replace").splitlines()[-number:] if path.exists() else []
    return f"see {path}: " + " | ".join(lines)
