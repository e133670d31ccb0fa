"""Load of a dump into an archive: the file is checked as a whole, then merged with the archive.

    load(connection, Path("theirs.jsonl.gz"))
    load(connection, Path("theirs.jsonl.gz"), rename={"first": "first-of-ann"})

The first pass verifies the digest, the key of every network, that every record refers to earlier
records only, and that nothing contradicts the archive. The second pass writes, in transactions of
some hundred records: tasks first, since a task without a direction takes the direction of its first study,
and an evaluation together with its proposal, which a trainer of this archive may be completing. A
killed load has stored whole records; repeating it stores the rest. Loading twice, or files in any
order, gives the same archive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archive.errors import UsageError
from archive.exchange import record_schema as records
from archive.exchange import renaming
from archive.exchange.apply import compare, identity, store
from archive.exchange.export_queries import asking
from archive.exchange.file_format import MOST_BYTES, Contents, DumpReader
from archive.exchange.record_schema import Record, text_of
from archive.exchange.renaming import RenamedRecord
from archive.store.properties import study_of
from archive.values import counted, is_duration

if TYPE_CHECKING:
    from archive.database.connection import Connection

__all__ = ["load", "verify"]

BATCH = 400
BATCH_BYTES = 2**20


def load(
    connection: Connection,
    path: Path,
    *,
    rename: Mapping[str, str] | None = None,
    most_bytes: int = MOST_BYTES,
    notify: Callable[[str], None] | None = None,
) -> tuple[Contents, dict[str, int]]:
    """Merge a dump into an archive.

    Args:
        connection: Connection to the archive.
        path: The file.
        rename: Name of a study in the file to its name in the archive; see
            `archive.exchange.renaming`.
        most_bytes: Limit of the decompressed size.
        notify: Receives a line where the file has seconds that are no duration; they are left out.

    Returns:
        Content of the file, and the number of records of each kind that were new or changed the
        archive.

    Raises:
        UsageError: The file is no complete, unaltered dump of a format that this release reads, or
            contradicts itself.
        StudyConflictError: A study or a result in it contradicts the archive. Nothing is stored.
    """
    names = renaming.check_renames(rename)
    ask = asking(connection)
    reader = _Checked(path, names, most_bytes)
    for batch in _batches(reader):
        compare(ask, renaming.kept(ask, batch))

    reader.check_renamed()
    changed: Counter[str] = Counter()
    if tasks := [("task", record) for record in reader.seen["task"].values()]:
        changed.update(connection.write(partial(store, batch=tasks), alone=True))

    for batch in _batches(_Checked(path, names, most_bytes)):
        records = renaming.kept(ask, batch)
        changed.update(connection.write(partial(store, batch=records), alone=True))

    if notify and reader.unmeasured:
        notify(
            f"seconds of {counted(reader.unmeasured, 'result')} are left out: they must be a "
            "finite number >= 0"
        )

    return reader.contents, dict(changed)


def verify(
    path: Path, *, rename: Mapping[str, str] | None = None, most_bytes: int = MOST_BYTES
) -> Contents:
    """Check a dump as the first pass of `load` does, without an archive, and return its content.

    Raises:
        UsageError: The file cannot be loaded, under these names of studies.
    """
    reader = _Checked(path, renaming.check_renames(rename), most_bytes)
    for _ in reader:
        pass

    reader.check_renamed()
    return reader.contents


class _Checked:
    """Iterator over the records of a file that checks each, and its references to earlier ones.

    Attributes:
        seen: Kind to the identities of the records so far, with what later records are compared
            with.
        studies: Names of the studies so far, in the file.
        stored_studies: Their names in the archive.
        unmeasured: Number of results with seconds that are no duration; earlier releases stored
            such numbers.
    """

    def __init__(self, path: Path, names: Mapping[str, str], most_bytes: int) -> None:
        self.path = path
        self.names = names
        self.reader = DumpReader(path, most_bytes=most_bytes)
        self.seen: dict[str, dict[Any, Any]] = {kind: {} for kind in records.SHAPES}
        self.studies: set[str] = set()
        self.stored_studies: set[str] = set()
        self.unmeasured = 0
        self._texts: dict[tuple[str, Any], int] = {}

    @property
    def contents(self) -> Contents:
        return self.reader.contents

    def __iter__(self) -> Iterator[RenamedRecord]:
        for line, kind, record in self.reader:
            try:
                records.check(kind, record)
                if kind == "evaluation":
                    self._leave_out_seconds(record["properties"])

                if kind == "study":
                    self.studies.add(record["name"])
                    self.stored_studies.add(self.names.get(record["name"], record["name"]))

                entry = renaming.rename(kind, record, self.names)
                self._check_references(kind, record)
                self._check_repetition(kind, record)
            except UsageError as error:
                raise UsageError(f"line {line} of {self.path}: {error}") from None

            yield entry

    def check_renamed(self) -> None:
        """Check that the file contains every study to rename.

        Raises:
            UsageError: It lacks one.
        """
        for old in self.names:
            if old not in self.studies:
                studies = ", ".join(sorted(self.studies)) or "none"
                raise UsageError(
                    f"{self.path} holds no study {old!r} to rename: it holds {studies}"
                )

    def _leave_out_seconds(self, properties: Record) -> None:
        seconds = properties.get("seconds")
        if seconds is not None and not is_duration(seconds):
            del properties["seconds"]
            self.unmeasured += 1

    def _check_references(self, kind: str, record: Record) -> None:
        for named, name in records.references(kind, record):
            if name not in self.seen[named]:
                raise UsageError(
                    f"{kind} refers to {named} {name!r:.80}, which is in no earlier line"
                )

        if kind == "distances" and any(key <= record["of"] for key in record["to"]):
            raise UsageError(
                "distances belong to the smaller key of a pair, got distances of "
                f"{record['of']} "
                "to smaller ones"
            )

        if kind == "morph" and record["parent"] == record["child"]:
            raise UsageError(f"morph has {record['parent']} as parent and child")

        if kind == "study" and record["name"] in self.seen["study"]:
            raise UsageError(f"two studies of the file would have the name {record['name']!r}")

        if kind == "proposal" and record["result"] is not None:
            self._check_result(record)

        self.seen[kind][identity(kind, record)] = self._reference(kind, record)

    def _check_repetition(self, kind: str, record: Record) -> None:
        """Refuse a file that contradicts itself in a way that only a second transaction notices."""
        if kind not in ("evaluation", "proposal"):
            return

        name = identity(kind, record)
        text = hash(text_of(record))
        if self._texts.setdefault((kind, name), text) != text:
            raise UsageError(
                f"{kind} {name!r:.80} is in the file twice, with different values: it was put "
                "together from several "
                "dumps; load them one after the other"
            )

    def _check_result(self, record: Record) -> None:
        networks = (record["architecture"], self.seen["evaluation"][record["result"]])
        first, other = (self.seen["architecture"][key] for key in networks)
        if first != other:
            raise UsageError(
                f"proposal of {networks[0]} has the result {record['result']!r:.80} "
                "of another network"
            )

    def _reference(self, kind: str, record: Record) -> Any:
        """Return the value that later records are compared with."""
        if kind == "architecture":
            return records.architecture_of(record).functional_key

        if kind == "task":
            return record

        return record["architecture"] if kind == "evaluation" else None


def _with_proposals(checked: _Checked) -> Iterator[list[RenamedRecord]]:
    """Yield each record on its own, but an evaluation together with its proposal."""
    waiting: dict[str, RenamedRecord] = {}
    for entry in checked:
        if entry.kind == "evaluation" and study_of(entry.record["id"]) in checked.stored_studies:
            waiting[entry.record["id"]] = entry
        elif entry.kind == "proposal" and entry.record["result"] in waiting:
            yield [waiting.pop(entry.record["result"]), entry]
        else:
            yield [entry]

    for entry in waiting.values():
        yield [entry]


def _batches(checked: _Checked) -> Iterator[list[RenamedRecord]]:
    """Cut records into batches for one transaction, of limited number and size."""
    batch: list[RenamedRecord] = []
    size = 0
    for entries in _with_proposals(checked):
        batch += entries
        size += sum(len(text_of(entry.record)) for entry in entries)
        if len(batch) >= BATCH or size >= BATCH_BYTES:
            yield batch
            batch = []
            size = 0

    if batch:
        yield batch
