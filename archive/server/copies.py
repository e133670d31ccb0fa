"""Copies of the data of a stopped database, from before something that cannot be undone."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from archive.server.engine import StartRefused
from archive.server.run_file import Folder

SPARE_BYTES = 64 * 2**20
"""Space that a copy leaves free."""


def copy(folder: Folder, reason: str) -> Path:
    """Copy the data of a stopped database to a new folder in `HOME/copies`, which appears when it
    is complete.

    Args:
        folder: Paths of the archive.
        reason: First word of the folder's name.

    Returns:
        The folder of the copy.

    Raises:
        StartRefused: The disk is too small.
    """
    size = data_bytes(folder)
    free = shutil.disk_usage(folder.home).free
    if free < size + SPARE_BYTES:
        raise StartRefused(
            f"the disk has no room for a copy of {folder.database}, which must be made first "
            f"({free / 2**20:.0f} MiB "
            f"free, {(size + SPARE_BYTES) / 2**20:.0f} needed): free some space and try again"
        )

    folder.copies.mkdir(mode=0o700, exist_ok=True)
    place = folder.copies / f"{reason}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    part = place.with_name(f".{place.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    shutil.copytree(folder.database, part)
    if place.exists():
        shutil.rmtree(place)

    part.rename(place)
    return place


def existing(folder: Folder) -> list[Path]:
    """Return the copies, oldest first."""
    if not folder.copies.is_dir():
        return []

    return sorted(folder.copies.glob("[!.]*"), key=lambda path: path.stat().st_mtime)


def data_bytes(folder: Folder) -> int:
    """Return the size of the data."""
    return sum(path.stat().st_size for path in folder.database.rglob("*") if path.is_file())
