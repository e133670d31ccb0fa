"""Record of the database's files, by which damage is noticed before the database is opened.

    HOME/database/files.json    version of the engine, and size, time and checksum of each file

After a clean stop, the record describes every file. The next start compares: a file that is
shorter, missing or altered was damaged, since only ArcadeDB writes there. ArcadeDB itself does not
look: it takes a truncated bucket for an empty one, and answers queries without the lost records.
While a server runs, and after a crash, the record holds lower
bounds: buckets never shrink.

Checksums cost a second a gigabyte. Files that were touched since the stop are always read, others
up to `MOST_CHECKSUM_BYTES` in all, so that a start stays fast; `archive doctor` reads the records
themselves.
"""

from __future__ import annotations

import contextlib
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from archive.errors import ServerStartError
from archive.files import closing, is_locked, try_lock, write_atomically
from archive.server.run_file import DATABASE, Folder

MOST_CHECKSUM_BYTES = 64 * 2**20

_DATA = re.compile(r"[^.].*\.(bucket|\w*idx|dict)|schema\.json")
"""Names of the files that hold records, indexes, names of properties, and types."""
_PAGE_BYTES = re.compile(r".*\.\d+\.(?P<bytes>\d+)\.v\d+\.\w+")
"""Name of a file of pages, as `Study_0.5.32768.v0.bucket`."""
_CHUNK_BYTES = 2**20


@dataclass(frozen=True)
class DataFile:
    """Size in bytes, time of the last change in nanoseconds, and checksum of a file.

    None if it was not read.
    """

    size: int
    changed: int
    checksum: int | None = None


@dataclass(frozen=True)
class FilesRecord:
    """Content of `files.json`.

    Attributes:
        engine: Version of ArcadeDB that last wrote the files.
        clean: Whether the files come from a clean stop.
        files: Each file by name.
    """

    engine: str
    clean: bool = False
    files: dict[str, DataFile] = field(default_factory=dict)


def read(folder: Folder) -> FilesRecord | None:
    """Return the record; None if there is none that can be read."""
    try:
        content = json.loads(_path(folder).read_text(encoding="utf-8"))
        files = {name: DataFile(*values) for name, values in content["files"].items()}
        return FilesRecord(str(content["engine"]), bool(content["clean"]), files)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def record_stop(folder: Folder, engine: str) -> None:
    """Record every file after the end of the database.

    A database that was not closed is recorded as not closed.
    """
    former = read(folder)
    if not _is_closed(folder):
        record_use(folder, engine)
        return

    files = {}
    for name, path in _data(folder).items():
        present = _status(path)
        last = former.files.get(name) if former is not None else None
        if last is not None and (last.size, last.changed) == (present.size, present.changed):
            checksum = last.checksum
        else:
            checksum = None

        files[name] = DataFile(
            present.size, present.changed, _checksum(path) if checksum is None else checksum
        )

    _write(folder, FilesRecord(engine, True, files))


def record_use(folder: Folder, engine: str) -> None:
    """Record the sizes of the files of a running database, if they changed."""
    former = read(folder)
    files = {}
    for name, path in _data(folder).items():
        present = _status(path)
        last = former.files.get(name) if former is not None else None
        unchanged = last is not None and (last.size, last.changed) == (
            present.size,
            present.changed,
        )
        files[name] = last if last is not None and unchanged else present

    record = FilesRecord(engine, False, files)
    if record != former:
        _write(folder, record)


@contextlib.contextmanager
def under_repair(folder: Folder) -> Iterator[None]:
    """Let the server open damaged files for the duration of the block.

    If the block fails, the files stay refused.

    Raises:
        ServerStartError: Another process repairs the database.
    """
    folder.create()
    lock = try_lock(_repair_lock(folder))
    if lock is None:
        raise ServerStartError(f"another process repairs the database in {folder.database}")

    with closing(lock):
        _repair_mark(folder).touch(mode=0o600)
        yield
        _repair_mark(folder).unlink()


def last_engine(folder: Folder) -> str | None:
    """Return the version of ArcadeDB that last wrote the database; None for an empty folder."""
    record = read(folder)
    if record is not None:
        return record.engine

    # ArcadeDB writes its version with the types, and so not at every start.
    version = _schema(folder).get("dbmsVersion")
    return str(version) if version else None


def damage(folder: Folder) -> list[str]:
    """Return the faults of the files of a stopped database, a phrase for each faulty file."""
    if is_locked(_repair_lock(folder)):
        return []

    if _repair_mark(folder).exists():
        return ["its repair was interrupted"]

    record = read(folder)
    closed = _is_closed(folder)
    present = _data(folder)
    if record is not None and record.clean and closed:
        faults = _differences(record, present)
    else:
        faults = _shrunk(record, present) if record is not None else []
        buckets = {name.partition(".")[0] for name in present}
        faults += [f"{name} is missing" for name in _buckets(folder) if name not in buckets]
        faults += _torn(present) if closed else []

    return faults


def _differences(record: FilesRecord, present: dict[str, Path]) -> list[str]:
    faults = []
    readable = MOST_CHECKSUM_BYTES
    for name, file in sorted(record.files.items()):
        path = present.get(name)
        if path is None:
            faults.append(f"{name} is missing")
            continue

        status = _status(path)
        if status.size != file.size:
            faults.append(f"{name} has {status.size:,} of {file.size:,} bytes")
            continue

        touched = status.changed != file.changed
        if touched or readable >= status.size:
            readable -= 0 if touched else status.size
            if file.checksum is not None and _checksum(path) != file.checksum:
                faults.append(f"{name} was altered")

    return faults


def _shrunk(record: FilesRecord, present: dict[str, Path]) -> list[str]:
    faults = []
    for name, file in sorted(record.files.items()):
        # Indexes are compacted into files of other names.
        if not name.endswith(".bucket") or name not in present:
            continue

        size = _status(present[name]).size
        if size < file.size:
            faults.append(f"{name} has {size:,} of {file.size:,} bytes")

    return faults


def _torn(present: dict[str, Path]) -> list[str]:
    faults = []
    for name, path in sorted(present.items()):
        page = _PAGE_BYTES.fullmatch(name)
        if page is not None and _status(path).size % int(page["bytes"]):
            faults.append(f"{name} ends within a page")

    return faults


def _buckets(folder: Folder) -> list[str]:
    """Return the names of the buckets of all types."""
    names: list[str] = []
    for definition in _schema(folder).get("types", {}).values():
        names += definition.get("buckets", [])

    return sorted(names)


def _schema(folder: Folder) -> dict[str, Any]:
    for name in ("schema.json", "schema.prev.json"):
        try:
            content = json.loads(
                folder.database.joinpath(DATABASE, name).read_text(encoding="utf-8")
            )
        except (OSError, ValueError):
            continue

        if isinstance(content, dict):
            return content

    return {}


def _data(folder: Folder) -> dict[str, Path]:
    database = folder.database / DATABASE
    if not database.is_dir():
        return {}

    return {path.name: path for path in database.iterdir() if _DATA.fullmatch(path.name)}


def _is_closed(folder: Folder) -> bool:
    """Whether ArcadeDB closed the database: it then removes its journals and its lock file."""
    database = folder.database / DATABASE
    return not any(database.glob("*.wal")) and not database.joinpath("database.lck").exists()


def _status(path: Path) -> DataFile:
    status = path.stat()
    return DataFile(status.st_size, status.st_mtime_ns)


def _checksum(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            checksum = zlib.crc32(chunk, checksum)

    return checksum


def _repair_lock(folder: Folder) -> Path:
    return folder.server / "repair.lock"


def _repair_mark(folder: Folder) -> Path:
    return folder.database / "repair.unfinished"


def _path(folder: Folder) -> Path:
    return folder.database / "files.json"


def _write(folder: Folder, record: FilesRecord) -> None:
    files = {
        name: [file.size, file.changed, file.checksum]
        for name, file in sorted(record.files.items())
    }
    write_atomically(
        _path(folder), json.dumps({"engine": record.engine, "clean": record.clean, "files": files})
    )
