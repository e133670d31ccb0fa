"""Files that are whole or not there."""

from __future__ import annotations

import glob
import os
import tempfile
import zlib
from pathlib import Path


def rests_of(path: Path) -> list[Path]:
    """Return what writers that were killed have left of a file."""
    return list(path.parent.glob(f"{glob.escape(_prefix(path))}*.part"))


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file that is whole or not there, whatever is killed meanwhile.

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
    # The new name is safe from a power cut only when the folder that holds it is on the disk, too.
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _prefix(path: Path) -> str:
    # The whole name might be as long as a name may be.
    return f".{path.name[:16]}-{zlib.crc32(path.name.encode()):08x}-"
