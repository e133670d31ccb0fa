"""Atomic publication of a file: it is written under a temporary name and renamed when complete."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def part_of(path: Path) -> Path:
    """Return a new temporary name beside a file."""
    return path.with_name(f".{path.name}-{secrets.token_hex(4)}.part")


def publish(part: Path, path: Path, *, replace: bool) -> None:
    """Give a file its name.

    Args:
        part: The file, whole; it may stay under this name, too.
        path: Its place, in the same folder.
        replace: Whether it takes the place of a file of that name.

    Raises:
        FileExistsError: There is such a file, perhaps since a moment ago, and `replace` is not given.
        OSError: The file system refuses it.
    """
    if not replace:
        try:
            os.link(part, path)
            return
        except FileExistsError:
            raise
        except OSError:
            # A file system without links: the process that makes the empty file has the name.
            path.open("xb").close()
    os.replace(part, path)
