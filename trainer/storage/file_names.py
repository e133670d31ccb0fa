"""File names for ids, which may hold any character, and the logs of a trainer's home."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from urllib.parse import quote

_LONGEST = 200

TAIL_BYTES = 4000
"""Bytes of a log that are shown, at most."""
LINE_BYTES = 1000
"""Bytes of a line of a log that are shown in any case."""

_READ_BYTES = 16 * TAIL_BYTES
_OMISSION = b" [...] "


def file_name(identifier: str) -> str:
    """Return a unique name for an id that is valid on every file system (`s#1` becomes `s%231`)."""
    name = quote(identifier, safe=" ")
    # A hidden file, or one that other commands take for an option.
    if name.startswith((".", "-")):
        name = f"%{ord(name[0]):02X}{name[1:]}"

    if len(name) <= _LONGEST:
        return name

    digest = hashlib.sha256(identifier.encode()).hexdigest()[:16]
    return f"{name[: _LONGEST - 17]}-{digest}"


def trial_log_path(home: Path, proposal: str) -> Path:
    """Return the log file of a proposal's trials (`archive.trainer.trial.log`)."""
    return home / "logs" / f"{file_name(proposal)}.log"


def node_log_path(log: Path, node: int) -> Path:
    """Return the log of a trial's ranks on one of its nodes; on the first one, the trial's log.

    Nodes that share a file system must not write into one file.
    """
    return log.with_name(f"{log.stem}.node{node}.log") if node else log


def trainer_logs(home: Path) -> Path:
    """Return the folder with the logs of trainers that searches start."""
    return home / "logs" / "trainers"


def observer_logs(home: Path) -> Path:
    """Return the folder with the output of trainers' observers."""
    return home / "logs" / "observers"


def last_lines(path: Path, lines: int) -> list[str]:
    """Return the last lines of a log, at most `TAIL_BYTES` long together.

    A line longer than both its share and `LINE_BYTES` lacks its middle: a crash of Python ends
    with one line that names every extension module, and must not lose the lines before it.

    Raises:
        OSError: There is no log, or it cannot be read.
    """
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _READ_BYTES))
        read = file.read(_READ_BYTES)

    kept: list[str] = []
    longest = max(LINE_BYTES, TAIL_BYTES // lines - 1)
    room = TAIL_BYTES
    for line in reversed(read.splitlines()[-lines:]):
        shown = _shorten(line, longest)
        room -= len(shown) + 1
        if room < 0:
            break

        kept.append(shown.decode(errors="replace"))

    return kept[::-1]


def _shorten(line: bytes, longest: int) -> bytes:
    if len(line) <= longest:
        return line

    half = (longest - len(_OMISSION)) // 2
    return line[:half] + _OMISSION + line[-half:]
