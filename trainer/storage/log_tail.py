"""The end of a log, without reading the rest."""

from __future__ import annotations

import os
from pathlib import Path

TAIL_BYTES = 4000
"""Bytes of a log that are read, at most."""


def last_lines(path: Path, lines: int) -> list[str]:
    """Return the last lines of a log, at most `TAIL_BYTES` long together.

    Raises:
        OSError: There is no log, or it cannot be read.
    """
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
        last = file.read(TAIL_BYTES)

    return last.decode(errors="replace").splitlines()[-lines:]
