"""Change of the engine under an archive.

The data are copied before a newer engine opens them; an older engine is refused.

A newer ArcadeDB may change the files in a form that an older one does not read, and only the older
one could dump the archive before that. The files are therefore copied while the database is
stopped. The first client that connects afterwards checks the database and builds its indexes again
(`archive.store.upkeep`).
"""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from archive.files import write_atomically
from archive.server.dump_schedule import dumps
from archive.server.engine import StartRefused, order
from archive.server.run_file import Folder


@dataclass(frozen=True)
class Upgrade:
    """Versions of ArcadeDB before and after an unchecked upgrade, and the copy from before it."""

    former: str
    present: str
    copy: str


def prepare(folder: Folder, version: str) -> None:
    """Copy the data if an older engine wrote them last.

    Args:
        folder: Paths of the archive, whose database is stopped.
        version: Version of the engine that is about to open it.

    Raises:
        StartRefused: A newer engine wrote the data, or there is no room for the copy.
    """
    from archive.server import data_files

    former = data_files.last_engine(folder)
    if former is None or order(former) == order(version):
        return

    if order(version) < order(former):
        raise StartRefused(
            f"ArcadeDB {former} last wrote the archive in {folder.home}, and {version}, which is installed here, is "
            f"older: install the newer one, or load a dump into an empty archive{_ways_back(folder, version)}"
        )

    copy = copy_data(folder, f"arcadedb-{former}")
    write_atomically(folder.upgrade, json.dumps(asdict(Upgrade(former, version, str(copy)))))


def pending(folder: Folder) -> Upgrade | None:
    """Return the upgrade that is not checked yet."""
    try:
        return Upgrade(**json.loads(folder.upgrade.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def complete(folder: Folder) -> None:
    """Record that the database was checked after an upgrade."""
    with contextlib.suppress(FileNotFoundError):
        folder.upgrade.unlink()


def _ways_back(folder: Folder, version: str) -> str:
    ways = [f"dump {path}" for path in dumps(folder)[:1]]
    ways += [
        f"copy of before {path}"
        for path in list_copies(folder)
        if path.name.startswith("arcadedb-")
    ][-1:]
    return f" ({', '.join(ways)})" if ways else ""


SPARE_BYTES = 64 * 2**20
"""Space that a copy leaves free."""


def copy_data(folder: Folder, reason: str) -> Path:
    """Copy the data of a stopped database to a new folder in `HOME/copies`.

    The folder appears when it is complete.

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
            f"the disk has no room for a copy of {folder.database}, "
            f"which must be made first ({free / 2**20:.0f} MiB free, "
            f"{(size + SPARE_BYTES) / 2**20:.0f} needed): free some space and try again"
        )

    folder.copies.mkdir(mode=0o700, exist_ok=True)
    copy = folder.copies / f"{reason}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    part = copy.with_name(f".{copy.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    shutil.copytree(folder.database, part)
    if copy.exists():
        shutil.rmtree(copy)

    part.rename(copy)
    return copy


def list_copies(folder: Folder) -> list[Path]:
    """Return the copies, oldest first."""
    if not folder.copies.is_dir():
        return []

    return sorted(folder.copies.glob("[!.]*"), key=lambda path: path.stat().st_mtime)


def data_bytes(folder: Folder) -> int:
    """Return the size of the data."""
    return sum(path.stat().st_size for path in folder.database.rglob("*") if path.is_file())
