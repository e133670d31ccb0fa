"""Atomic file writes: after a kill, a file is either whole or absent."""

from __future__ import annotations

import glob
import os
import tempfile
import zlib
from pathlib import Path


def partial_files(path: Path) -> list[Path]:
    """Return the partial files that killed writers of a file have left."""
    return list(path.parent.glob(f"{glob.escape(_prefix(path))}*.part"))


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file atomically and durably.

    Raises:
        OSError: It could not be written; nothing is left behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=_prefix(path), suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise

    # The new name survives a power cut only when its folder is on disk, too.
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _prefix(path: Path) -> str:
    # The whole name may already have the largest length of a file name.
    return f".{path.name[:16]}-{zlib.crc32(path.name.encode()):08x}-"
