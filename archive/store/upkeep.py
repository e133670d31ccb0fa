"""Upkeep of an embedded archive: its check, and the first connection after an upgrade of the engine.

ArcadeDB's `CHECK DATABASE` reads every record and follows every edge. It takes a missing or emptied
index for an undefined one, so indexes are compared with a scan here, and so are the
counts that ArcadeDB answers with.

Indexes that ArcadeDB made before 26.8.1 can miss entries. After an upgrade they are built again. The
copy from before the upgrade (`archive.server.engine_change`) is kept: it is the only way back to the
older engine besides a dump.
"""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from archive.database.connection import Connection
from archive.errors import DamagedError, StoreError
from archive.files import try_lock
from archive.server import engine_change
from archive.server.run_file import Folder
from archive.settings import Settings
from archive.store import schema

log = logging.getLogger("archive.store")

WAIT_SECONDS = 600.0
_POLL_SECONDS = 0.1
_LOOKS = 3
_PAUSE_SECONDS = 0.2
"""Looks at an archive with faults, and the pause between two of them."""


def finish_upgrade(connection: Connection) -> None:
    """Check an archive that a newer engine has opened, and build its indexes again.

    Otherwise return at once.

    Raises:
        DamagedError: The newer engine finds the database damaged; the message names the copy from
            before.
        StoreError: Another process has been checking for too long.
    """
    if not connection.settings.embedded:
        return

    folder = Folder(connection.settings.home)
    if not folder.upgrade.exists():
        return

    deadline = time.monotonic() + WAIT_SECONDS
    while (lock := try_lock(folder.server / "upgrade.lock")) is None:
        if time.monotonic() > deadline:
            raise StoreError(
                f"another process has been checking the archive in {folder.home} for too long"
            )

        time.sleep(_POLL_SECONDS)

    try:
        # Another process may have done it meanwhile.
        upgrade = engine_change.pending(folder)
        if upgrade is not None:
            _check(connection, folder, upgrade)
    finally:
        os.close(lock)


def _check(connection: Connection, folder: Folder, upgrade: engine_change.Upgrade) -> None:
    from archive.server import sql

    faults = record_faults(sql.check(connection.settings))
    if faults:
        raise DamagedError(
            f"ArcadeDB {upgrade.present} finds the archive in {folder.home} damaged, which {upgrade.former} wrote "
            f"({'; '.join(faults)}): run archive db repair, or go back: install ArcadeDB {upgrade.former} and replace "
            f"{folder.database} by its copy {upgrade.copy}"
        )

    number = schema.rebuild_indexes(connection)
    engine_change.complete(folder)
    log.warning(
        f"ArcadeDB {upgrade.present} has opened the archive in {folder.home}, which {upgrade.former} wrote: checked, "
        f"{number} indexes built again; the way back is the copy {upgrade.copy}, which may be deleted"
    )


def find_faults(connection: Connection) -> list[str]:
    """Return the faults of an embedded archive, a sentence each; empty if there are none.

    The looks at a database that others write to are not of one moment: what one look finds, and a
    later one does not, is a write in between. Damage is found by every look.

    Raises:
        StoreError: The server does not answer, or cannot read its own types.
    """
    settings = connection.settings
    report, faults = _look(settings)
    for _ in range(_LOOKS - 1):
        if not faults and not record_faults(report):
            break

        time.sleep(_PAUSE_SECONDS)
        later_report, later = _look(settings)
        report = _common(report, later_report)
        faults = {subject: later[subject] for subject in faults if subject in later}

    return [*record_faults(report), *faults.values()]


def _look(settings: Settings) -> tuple[Mapping[str, Any], dict[str, str]]:
    """Return a report of `CHECK DATABASE`, and the faults of counts and indexes by their subject.

    Records that were written meanwhile explain as many differences: a fault is larger.
    """
    from archive.server import sql

    scanned = sql.counts(settings)
    report = sql.check(settings)
    differences = [*_count_differences(settings, scanned), *_index_differences(settings)]
    written = 0
    for name, number in sql.counts(settings).items():
        written += abs(number - scanned.get(name, 0))

    judged = {}
    for name in _REPORTED:
        value = report.get(name) or 0
        if isinstance(value, list) or value > written:
            judged[name] = value

    faults = {}
    for difference in differences:
        if difference.records > written:
            faults[difference.subject] = difference.text

    return judged, faults


class _Difference(NamedTuple):
    """A count or an index that disagrees with a scan, by a number of records."""

    subject: str
    text: str
    records: float


def _common(report: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """Return what two reports of `CHECK DATABASE` say alike: the same records, the lower numbers."""
    common: dict[str, Any] = {}
    for name in _REPORTED:
        first = report.get(name) or 0
        second = later.get(name) or 0
        if isinstance(first, list) and isinstance(second, list):
            common[name] = [record for record in first if record in second]
        elif not isinstance(first, list) and not isinstance(second, list):
            common[name] = min(first, second)
        else:
            common[name] = 0

    return common


def record_faults(report: Mapping[str, Any]) -> list[str]:
    """Return the faults in a report of `CHECK DATABASE`."""
    faults = []
    for name, text in _REPORTED.items():
        value = report.get(name) or 0
        number = len(value) if isinstance(value, list) else int(value)
        if number:
            faults.append(text.format(number))

    return faults


def index_faults(settings: Settings) -> list[str]:
    """Return the indexes of the schema that are missing, or do not hold every record."""
    return [difference.text for difference in _index_differences(settings)]


def _index_differences(settings: Settings) -> Iterator[_Difference]:
    from archive.server import sql

    names = {}
    for row in sql.run(settings, "SELECT FROM schema:indexes"):
        # Each index of a type stands beside its parts, which are files.
        if "fileId" not in row:
            names[row["typeName"], str(row["properties"])] = row["name"]

    for label, name in schema.present_indexes():
        subject = f"the index of {label}.{name}"
        index = names.get((label, str([[name]])), names.get((label, str([name]))))
        if index is None:
            yield _Difference(subject, f"{subject} is missing", math.inf)
            continue

        indexed = _count(settings, f"SELECT count(*) AS records FROM index:`{index}`")
        scanned = _count(
            settings, f"SELECT count(*) AS records FROM `{label}` WHERE `{name}` IS NOT NULL"
        )
        if indexed != scanned:
            text = f"{subject} holds {indexed} of {scanned} records"
            yield _Difference(subject, text, abs(indexed - scanned))


_REPORTED = {
    "corruptedRecords": "{} records cannot be read, or refer to such records",
    "distinctMissingReferences": "{} records are missing that edges lead to",
    "undecodableRecords": "{} records cannot be decoded",
    "corruptedIndexes": "{} indexes cannot be read",
    "unreachableEdgeRecords": "{} edges are in no list of their nodes",
    "missingReferenceBack": "{} edges are in the list of one of their nodes only",
    "crossLinkedChunks": "{} parts of records belong to two records",
    "staleRecordCounters": "{} stored counts are wrong",
}
"""Entries of a report of `CHECK DATABASE` that are faults."""


def _count_differences(settings: Settings, scanned: Mapping[str, int]) -> Iterator[_Difference]:
    for name, number in scanned.items():
        stored = _count(settings, f"SELECT count(*) AS records FROM `{name}`")
        if stored != number:
            text = f"{name} has {number} records by a scan, and {stored} by ArcadeDB's count"
            yield _Difference(f"the count of {name}", text, abs(stored - number))


def _count(settings: Settings, statement: str) -> int:
    from archive.server import sql

    (row,) = sql.run(settings, statement)
    return int(row["records"])
