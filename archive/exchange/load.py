"""Load of a dump into an archive: the file is checked as a whole, then merged with the archive.

    load(connection, Path("theirs.jsonl.gz"))
    load(connection, Path("theirs.jsonl.gz"), rename={"first": "first-of-ann"})

The first pass verifies the digest, the key of every network, that every record refers to earlier
records only, and that nothing contradicts the archive. The second pass writes, in transactions of
some hundred records: tasks first, since a task without a direction takes the direction of its first study,
and an evaluation together with its proposal, which a trainer of this archive may be completing. A
killed load has stored whole records; repeating it stores the rest. Loading twice, or files in any
order, gives the same archive.

Studies may get other names, in their own records and in those that refer to them:

| record     | refers to another study by                                        |
|------------|-------------------------------------------------------------------|
| warm_start | its source                                                        |
| evaluation | `answered_from`, the result of another study that it is a copy of |
| proposal   | its result; its basis: the studies that the agent learnt from; the run that it is a change of |

A record that the archive has under the same references keeps them: both copies of its study agree,
and used the archive's copy of the renamed study. All other records refer to the file's copy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from archive.errors import UsageError
from archive.exchange import record_schema as records
from archive.exchange.apply import compare, existing, identity, prepare, store
from archive.exchange.export_queries import asking
from archive.exchange.file_format import MOST_BYTES, Contents, DumpReader
from archive.exchange.record_schema import Record, text_of
from archive.store.properties import from_json, study_of, to_json
from archive.store.studies.creation import check_new_name
from archive.store.studies.deletion import MARK_OF_DELETED
from archive.store.studies.derivations import link_missing
from archive.values import counted, is_duration

if TYPE_CHECKING:
    from archive.database.connection import Connection
    from archive.exchange.export_queries import Ask

__all__ = ["load", "verify"]

BATCH = 400
BATCH_BYTES = 2**20

_OWN = {"study": "name", "warm_start": "study", "proposal": "study", "evaluation": "id"}
"""What names the study that a record belongs to."""

_REFERENCES = {
    "warm_start": ("source",),
    "evaluation": ("answered_from",),
    "proposal": ("result", "based_on", "derived_from"),
}

_PROPERTIES = ("answered_from", "based_on", "derived_from")
"""References that are properties."""


class RenamedRecord(NamedTuple):
    """A record of a file under the new names of studies.

    Attributes:
        kind: Its kind.
        record: The record.
        former: Its references to renamed studies under their former names; empty where it belongs
            to one.
    """

    kind: str
    record: Record
    former: Mapping[str, Any]


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
        rename: Name of a study in the file to its name in the archive.
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
    names = _check_renames(rename)
    ask = asking(connection)
    reader = _Checked(path, names, most_bytes)
    for batch in _batches(reader):
        compare(ask, _keep(ask, batch))

    reader.check_renamed()
    changed: Counter[str] = Counter()
    if tasks := [("task", record) for record in reader.seen["task"].values()]:
        changed.update(connection.write(partial(store, batch=tasks), alone=True))

    again = _Checked(path, names, most_bytes, functional_keys=reader.seen["architecture"])
    written: Future[dict[str, int]] | None = None
    # The next batch is read while the server writes one.
    with ThreadPoolExecutor(max_workers=1) as writer:
        for batch in _batches(again):
            records = prepare(_keep(ask, batch))
            if written is not None:
                changed.update(written.result())

            written = writer.submit(connection.write, partial(store, batch=records), alone=True)

        if written is not None:
            changed.update(written.result())

    # A run may come before its parent in the file, and in the archive before the file.
    link_missing(connection)
    if notify and reader.unmeasured:
        notify(
            f"seconds of {counted(reader.unmeasured, 'result')} are left out: "
            "they must be a finite number >= 0"
        )

    return reader.contents, dict(changed)


def verify(
    path: Path, *, rename: Mapping[str, str] | None = None, most_bytes: int = MOST_BYTES
) -> Contents:
    """Check a dump as the first pass of `load` does, without an archive, and return its content.

    Raises:
        UsageError: The file cannot be loaded, under these names of studies.
    """
    reader = _Checked(path, _check_renames(rename), most_bytes)
    for _ in reader:
        pass

    reader.check_renamed()
    return reader.contents


class _Checked:
    """Iterator over the records of a file that checks each, and its references to earlier ones.

    Args:
        path: The file.
        names: Former names of studies to their new ones.
        most_bytes: Limit of the decompressed size.
        functional_keys: By key, of networks that an earlier pass has checked; the write checks
            their keys.

    Attributes:
        seen: Kind to the identities of the records so far, with what later records are compared
            with.
        studies: Names of the studies so far, in the file.
        stored_studies: Their names in the archive.
        unmeasured: Number of results with seconds that are no duration; earlier releases stored
            such numbers.
    """

    def __init__(
        self,
        path: Path,
        names: Mapping[str, str],
        most_bytes: int,
        functional_keys: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.path = path
        self.names = names
        self.functional_keys = functional_keys
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

                entry = _rename_studies(kind, record, self.names)
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
                "distances belong to the smaller key of a pair, "
                f"got distances of {record['of']} to smaller ones"
            )

        if kind == "morph" and record["parent"] == record["child"]:
            raise UsageError(f"morph has {record['parent']} as parent and child")

        if kind == "build" and record["configuration"] == record["network"]:
            raise UsageError(f"build has {record['network']} as configuration and network")

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
                f"{kind} {name!r:.80} is in the file twice, with different values: "
                "it was put together from several dumps; load them one after the other"
            )

    def _check_result(self, record: Record) -> None:
        networks = (record["architecture"], self.seen["evaluation"][record["result"]])
        first, other = (self.seen["architecture"][key] for key in networks)
        if first != other:
            raise UsageError(
                f"proposal of {networks[0]} has the result "
                f"{record['result']!r:.80} of another network"
            )

    def _reference(self, kind: str, record: Record) -> Any:
        """Return the value that later records are compared with."""
        if kind == "architecture":
            key = record["key"]
            return self.functional_keys.get(key) or records.architecture_of(record).functional_key

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


def _check_renames(rename: Mapping[str, str] | None) -> dict[str, str]:
    """Return the new names by the former ones.

    Raises:
        UsageError: Two studies would have one name, or one is no valid name.
    """
    names = dict(rename or {})
    for new in names.values():
        check_new_name(new)

    if len(set(names.values())) < len(names):
        raise UsageError(
            f"two studies cannot have one name, got {', '.join(sorted(names.values()))}"
        )

    return names


def _rename_studies(kind: str, record: Record, names: Mapping[str, str]) -> RenamedRecord:
    """Replace the names of studies in a record, in place."""
    allowed = _OWN.get(kind)
    if not names or allowed is None:
        return RenamedRecord(kind, record, {})

    before = record[allowed]
    record[allowed] = _rename(allowed, record[allowed], names)
    former = {}
    for name in _REFERENCES.get(kind, ()):
        holder = _place(record, name)
        if (value := holder.get(name)) is not None and (
            new := _rename(name, value, names)
        ) != value:
            former[name] = value
            holder[name] = new

    return RenamedRecord(kind, record, former if record[allowed] == before else {})


def _keep(ask: Ask, entries: Sequence[RenamedRecord]) -> list[tuple[str, Record]]:
    """Return kinds and records, with former references where the archive has them."""
    stored = {}
    for kind in {entry.kind for entry in entries if entry.former}:
        stored[kind] = existing(
            ask, kind, [entry.record for entry in entries if entry.kind == kind and entry.former]
        )

    kept: list[tuple[str, Record]] = []
    for entry in entries:
        kept.append(
            (entry.kind, _restore(entry, stored[entry.kind]) if entry.former else entry.record)
        )

    return kept


def _restore(entry: RenamedRecord, stored: Mapping[Any, Record]) -> Record:
    record = {**entry.record}
    if "properties" in record:
        record["properties"] = {**record["properties"]}

    for name, value in entry.former.items():
        _place(record, name)[name] = value

    recorded = stored.get(identity(entry.kind, record))
    same = recorded is not None and all(
        _find_stored(recorded, name) == value for name, value in entry.former.items()
    )
    return record if same else entry.record


def _find_stored(record: Record, name: str) -> Any:
    value = _place(record, name).get(name)
    return value.removesuffix(MARK_OF_DELETED) if name == "answered_from" and value else value


def _place(record: Record, name: str) -> Record:
    """Return the part of a record that has a reference."""
    holder: Record = record["properties"] if name in _PROPERTIES else record
    return holder


def _rename(name: str, value: str, names: Mapping[str, str]) -> str:
    """Return the new value of a property that names studies."""
    if name == "based_on":
        return _rename_basis(value, names)

    study, mark, number = value.rpartition("#")
    if name in ("id", "result", "answered_from", "derived_from"):
        return f"{names[study]}#{number}" if mark and study in names else value

    return names.get(value, value)


def _rename_basis(text: str, names: Mapping[str, str]) -> str:
    basis = from_json(text)
    changed = False
    for entry in ("observations", "partial", "coupling"):
        if isinstance(by_study := basis.get(entry), dict) and not names.keys().isdisjoint(by_study):
            basis[entry] = {names.get(study, study): value for study, value in by_study.items()}
            changed = True

    return to_json(basis) if changed else text
