"""Check of an embedded archive: records, edges, indexes and stored counts against each other.

ArcadeDB's `CHECK DATABASE` reads every record and follows every edge. It takes a missing or emptied
index for one that nobody has defined, so indexes are compared with a scan here, and so are the
counts that ArcadeDB answers with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from archive.database.connection import Connection
from archive.server import sql
from archive.settings import Settings
from archive.store import schema


def faults(connection: Connection) -> list[str]:
    """Return what is wrong with an embedded archive, a sentence each; empty if nothing is.

    Raises:
        StoreError: The server does not answer, or cannot read its own types.
    """
    settings = connection.settings
    scanned = sql.counts(settings)
    return [
        *record_faults(sql.check(settings)),
        *_count_faults(settings, scanned),
        *index_faults(settings),
    ]


def record_faults(report: Mapping[str, Any]) -> list[str]:
    """Return the faults in a report of `CHECK DATABASE`."""
    found = []
    for name, text in _REPORTED.items():
        value = report.get(name) or 0
        number = len(value) if isinstance(value, list) else int(value)
        if number:
            found.append(text.format(number))

    return found


def index_faults(settings: Settings) -> list[str]:
    """Return the indexes of the schema that are missing, or do not hold every record."""
    names = {}
    for row in sql.run(settings, "SELECT FROM schema:indexes"):
        # Each index of a type stands beside its parts, which are files.
        if "fileId" not in row:
            names[row["typeName"], str(row["properties"])] = row["name"]

    found = []
    for label, name in schema.present_indexes():
        index = names.get((label, str([[name]])), names.get((label, str([name]))))
        if index is None:
            found.append(f"the index of {label}.{name} is missing")
            continue

        held = _count(settings, f"SELECT count(*) AS records FROM index:`{index}`")
        scanned = _count(
            settings, f"SELECT count(*) AS records FROM `{label}` WHERE `{name}` IS NOT NULL"
        )
        if held != scanned:
            found.append(f"the index of {label}.{name} holds {held} of {scanned} records")

    return found


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


def _count_faults(settings: Settings, scanned: Mapping[str, int]) -> list[str]:
    found = []
    for name, number in scanned.items():
        stored = _count(settings, f"SELECT count(*) AS records FROM `{name}`")
        if stored != number:
            found.append(f"{name} has {number} records by a scan, and {stored} by ArcadeDB's count")

    return found


def _count(settings: Settings, statement: str) -> int:
    (row,) = sql.run(settings, statement)
    return int(row["records"])
