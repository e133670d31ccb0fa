"""Repair of a damaged embedded archive, and a dump of its readable records.

    repair(settings)                        in place, after a copy
    salvage(settings, Path("rest.jsonl.gz"))   a dump of a repaired copy; the archive stays as it is

ArcadeDB removes the records that cannot be read and the edges that lead to them. Their indexes are
built again from the rest. A comparison with the last automatic dump names the lost records, and
`archive load` restores them from it.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from archive.database.connection import Connection
from archive.errors import ArchiveError, ServerStartError, UsageError, first_line
from archive.exchange import export_queries as reading
from archive.exchange.apply import missing
from archive.exchange.dump import dump
from archive.exchange.file_format import DumpReader
from archive.exchange.load import BATCH, load
from archive.exchange.record_schema import Record
from archive.files import closing, try_lock
from archive.server import data_files, embedded, engine_change, sql
from archive.server.dump_schedule import dumps
from archive.server.engine import StartRefused
from archive.server.run_file import DATABASE, Folder
from archive.settings import Settings
from archive.store import schema, upkeep
from archive.store.dump_statements import WITHOUT_RESULT
from archive.store.properties import read_column

MOST_PASSES = 4
"""Most runs of `CHECK DATABASE FIX`: a removed record may leave edges that lead nowhere."""


@dataclass(frozen=True)
class RepairOutcome:
    """Repair of an embedded archive.

    Attributes:
        copy: Copy of the damaged database.
        damage: Faults that were found, a sentence each.
        removed: Number of records that were lost, by label or type of relationship.
        without_result: Ids of proposals that have lost their results.
        remaining: Faults that could not be repaired (exit code 1).
        dump: The dump that was compared with, or that replaced the database; null without one.
        recoverable: Ids of records of that dump that the archive lacks, by kind.
        replaced: Whether the dump replaced the database.
    """

    copy: Path
    damage: list[str] = field(default_factory=list)
    removed: dict[str, int] = field(default_factory=dict)
    without_result: list[str] = field(default_factory=list)
    remaining: list[str] = field(default_factory=list)
    dump: Path | None = None
    recoverable: dict[str, list[str]] = field(default_factory=dict)
    replaced: bool = False


def repair(settings: Settings) -> RepairOutcome:
    """Stop the server, copy the data, repair them, and compare them with the last automatic dump.

    Raises:
        StoreError: The data cannot be copied, or ArcadeDB cannot open them.
    """
    folder = Folder(settings.home)
    _require_data(folder)
    embedded.stop(settings)
    damage = data_files.damage(folder)
    copy = _copy(folder)
    with data_files.under_repair(folder):
        try:
            outcome = _mend(settings, copy)
            outcome = replace(outcome, damage=[*damage, *outcome.damage])
            made = dumps(folder)
            if made:
                outcome = replace(outcome, dump=made[0], recoverable=_lacking(settings, made[0]))
        finally:
            # The record of a clean stop describes the repaired files.
            embedded.stop(settings)

    return outcome


def replace_by_dump(settings: Settings, path: Path) -> RepairOutcome:
    """Stop the server, copy the data, and put a dump into their place.

    Raises:
        UsageError: The file is no complete dump; nothing is changed.
        StoreError: The data cannot be copied.
    """
    from archive.exchange.load import verify

    verify(path)
    folder = Folder(settings.home)
    embedded.stop(settings)
    damage = data_files.damage(folder)
    copy = _copy(folder)
    shutil.rmtree(folder.database)
    with Connection.open(settings) as connection:
        schema.migrate(connection)
        load(connection, path)

    return RepairOutcome(copy, damage, dump=path, replaced=True)


def salvage(
    settings: Settings,
    path: Path,
    *,
    studies: Sequence[str] | None = None,
    distances: bool = True,
    force: bool = False,
) -> tuple[dict[str, int], list[str]]:
    """Dump the readable part of a damaged archive by way of a repaired temporary copy.

    Args:
        settings: Settings of an embedded archive; its server is stopped.
        path: Path of the dump.
        studies: Names of studies; None for everything.
        distances: Whether to write the stored distances.
        force: Whether to replace an existing file.

    Returns:
        Number of written records of each kind, and a sentence about records that were left out.
    """
    folder = Folder(settings.home)
    _require_data(folder)
    embedded.stop(settings)
    copy = _copy(folder)
    private = Folder(folder.copies / f".salvage-{secrets.token_hex(4)}")
    private_settings = replace(settings, home=private.home, dump_seconds=0.0)
    try:
        private.home.mkdir(mode=0o700)
        copy.rename(private.database)
        with data_files.under_repair(private):
            outcome = _mend(private_settings, copy)
            left_out = []
            for name, number in outcome.removed.items():
                left_out.append(f"{number} of the records {name}")

            for id_ in outcome.without_result:
                left_out.append(f"result of the proposal {id_}, which is dumped as waiting")

            with Connection.open(private_settings) as connection:
                counts = dump(
                    connection,
                    path,
                    studies=studies,
                    distances=distances,
                    force=force,
                    left_out=left_out,
                )
    finally:
        embedded.stop(private_settings)
        shutil.rmtree(private.home, ignore_errors=True)

    return counts, left_out


def _mend(settings: Settings, copy: Path) -> RepairOutcome:
    with Connection.open(settings) as connection, connection.turn(alone=True):
        before = _read_records(settings)
        for name, number in sql.counts(settings).items():
            before[name] = max(before.get(name, 0), number)

        report = sql.check(settings, fix=True)
        damage = [*upkeep.record_faults(report), *upkeep.index_faults(settings)]
        for _ in range(MOST_PASSES - 1):
            if not upkeep.record_faults(report):
                break

            report = sql.check(settings, fix=True)

    with Connection.open(settings) as connection:
        unbuilt = []
        try:
            schema.rebuild_indexes(connection)
        except ArchiveError as error:
            unbuilt.append(first_line(error))

        after = sql.counts(settings)
        removed = {}
        for name, number in before.items():
            if number > after.get(name, 0):
                removed[name] = number - after.get(name, 0)

        without_result = read_column(reading.asking(connection)(WITHOUT_RESULT), "id")
        remaining = [*unbuilt, *upkeep.find_faults(connection)]

    engine_change.complete(Folder(settings.home))
    return RepairOutcome(copy, damage, removed, without_result, remaining)


def _read_records(settings: Settings) -> Counter[str]:
    """Return the number of records of each type that ArcadeDB recorded at the last clean stop."""
    counts: Counter[str] = Counter()
    database = Folder(settings.home).database / DATABASE
    try:
        buckets = json.loads(database.joinpath("statistics.json").read_text(encoding="utf-8"))
        types = json.loads(database.joinpath("schema.json").read_text(encoding="utf-8"))["types"]
        for name, definition in types.items():
            counts[name] = sum(
                int(buckets.get(bucket, {}).get("count", 0)) for bucket in definition["buckets"]
            )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Counter()

    return counts


def _lacking(settings: Settings, path: Path) -> dict[str, list[str]]:
    """Return the ids of the records of a dump that the archive lacks, by kind."""
    lacking: dict[str, list[str]] = {}
    with Connection.open(settings) as connection:
        ask = reading.asking(connection)
        try:
            for batch in _batches(path):
                for kind, identities in missing(ask, batch).items():
                    names = lacking.setdefault(kind, [])
                    for name in identities:
                        names.append(
                            " ".join(map(str, name)) if isinstance(name, tuple) else str(name)
                        )
        except UsageError:
            # The dump contradicts the archive, or is damaged itself: the names so far stand.
            pass

    return {kind: names for kind, names in lacking.items() if names}


def _batches(path: Path) -> list[Sequence[tuple[str, Record]]]:
    records = [(kind, record) for _, kind, record in DumpReader(path)]
    return [records[first : first + BATCH] for first in range(0, len(records), BATCH)]


def _require_data(folder: Folder) -> None:
    if not folder.database.joinpath(DATABASE).is_dir():
        raise UsageError(f"there is no embedded archive in {folder.home}")


def _copy(folder: Folder) -> Path:
    """Copy the data while no server can start."""
    lock = try_lock(folder.lock)
    if lock is None:
        raise ServerStartError(
            f"another process has started the server over {folder.home} again: end it first"
        )

    with closing(lock):
        try:
            return engine_change.copy_data(folder, "damaged")
        except StartRefused as error:
            raise ServerStartError(str(error)) from None
