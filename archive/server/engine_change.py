"""Change of the engine under an archive: a copy before a newer one opens it, a refusal of an older
one.

A newer ArcadeDB may change the files in a form that an older one does not read, and only the older
one could dump the archive before that. The files are therefore copied while the database is
stopped. The first client that connects afterwards checks the database and builds its indexes again
(`archive.store.upkeep.engine_upgrade`).
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from archive.files import write_atomically
from archive.server.dump_schedule import dumps
from archive.server.engine import StartRefused, order
from archive.server.run_file import Folder


@dataclass(frozen=True)
class Upgrade:
    """Versions of ArcadeDB before and after an upgrade that is not checked yet, and the copy from
    before it.
    """

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
    from archive.server import copies, data_files

    former = data_files.last_engine(folder)
    if former is None or order(former) == order(version):
        return

    if order(version) < order(former):
        raise StartRefused(
            f"ArcadeDB {former} last wrote the archive in {folder.home}, and {version}, which is installed here, is "
            f"older: install the newer one, or load a dump into an empty archive{_ways_back(folder, version)}"
        )

    place = copies.copy(folder, f"arcadedb-{former}")
    write_atomically(_marker(folder), json.dumps(asdict(Upgrade(former, version, str(place)))))


def pending(folder: Folder) -> Upgrade | None:
    """Return the upgrade that is not checked yet."""
    try:
        return Upgrade(**json.loads(_marker(folder).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def complete(folder: Folder) -> None:
    """Record that the database was checked after an upgrade."""
    with contextlib.suppress(FileNotFoundError):
        _marker(folder).unlink()


def _ways_back(folder: Folder, version: str) -> str:
    from archive.server import copies

    ways = [f"dump {path}" for path in dumps(folder)[:1]]
    ways += [
        f"copy of before {path}"
        for path in copies.existing(folder)
        if path.name.startswith("arcadedb-")
    ][-1:]
    return f" ({', '.join(ways)})" if ways else ""


def _marker(folder: Folder) -> Path:
    return folder.database / "upgrade.json"
