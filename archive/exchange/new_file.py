"""Atomic publication of a file: it is written under a temporary name and renamed when complete."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def part_of(path: Path) -> Path:
    """Return a new temporary path beside a file."""
    return path.with_name(f".{path.name}-{secrets.token_hex(4)}.part")


def publish(part: Path, path: Path, *, replace: bool) -> None:
    """Give a complete file its final name.

    Args:
        part: The complete file; it may also keep this name.
        path: Final path, in the same folder.
        replace: Whether to replace an existing file.

    Raises:
        FileExistsError: The final path exists, and `replace` is not set.
        OSError: The file system refuses it.
    """
    if not replace:
        try:
            os.link(part, path)
            return
        except FileExistsError:
            raise
        except OSError:
            # The file system has no links: the process that creates the empty file owns the name.
            path.open("xb").close()
    os.replace(part, path)
