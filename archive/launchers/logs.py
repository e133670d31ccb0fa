"""Logs of trainers, in messages."""

from __future__ import annotations

from pathlib import Path

from archive.launchers.base import UNFIT_CODE
from archive.trainer.storage.log_tail import last_lines

LINES = 3


def tail(path: Path, code: int | None) -> str:
    """Return the place of a log and its last lines, as one line.

    Args:
        path: The log.
        code: Exit code of the trainer; None where it is unknown.
    """
    # The last line of a trainer on a machine where trials cannot begin has the reason, and those
    # before it have not.
    number = 1 if code == UNFIT_CODE else LINES
    try:
        lines = last_lines(path, number)
    except FileNotFoundError:
        lines = []
    except OSError as error:
        # The failure of the trainer is the message; it must not get lost for its log.
        lines = [f"the log cannot be read: {error.strerror or error}"]

    return f"see {path}: " + " | ".join(lines)
