"""Other names for the studies of a file, in their own records and in those that refer to them.

| record     | refers to another study by                                        |
|------------|-------------------------------------------------------------------|
| warm_start | its source                                                        |
| evaluation | `answered_from`, the result of another study that it is a copy of |
| proposal   | its result, and its basis: the studies that the agent learnt from |

A record that the archive has under the same references keeps them: both copies of its study agree,
and used the archive's copy of the renamed study. All other records refer to the file's copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from archive.errors import UsageError
from archive.exchange.apply import existing, identity
from archive.exchange.record_schema import Record
from archive.store.properties import from_json, to_json
from archive.store.studies.creation import check_new_name
from archive.store.studies.deletion import MARK_OF_DELETED

if TYPE_CHECKING:
    from archive.exchange.export_queries import Ask

_OWN = {"study": "name", "warm_start": "study", "proposal": "study", "evaluation": "id"}
"""What names the study that a record belongs to."""

_REFERENCES = {
    "warm_start": ("source",),
    "evaluation": ("answered_from",),
    "proposal": ("result", "based_on"),
}


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


def check_renames(rename: Mapping[str, str] | None) -> dict[str, str]:
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


def rename(kind: str, record: Record, names: Mapping[str, str]) -> RenamedRecord:
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


def kept(ask: Ask, entries: Sequence[RenamedRecord]) -> list[tuple[str, Record]]:
    """Return kinds and records, with former references where the archive has them."""
    stored = {}
    for kind in {entry.kind for entry in entries if entry.former}:
        stored[kind] = existing(
            ask, kind, [entry.record for entry in entries if entry.kind == kind and entry.former]
        )

    return [
        (entry.kind, _kept(entry, stored[entry.kind]) if entry.former else entry.record)
        for entry in entries
    ]


def _kept(entry: RenamedRecord, stored: Mapping[Any, Record]) -> Record:
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
    holder: Record = record["properties"] if name in ("answered_from", "based_on") else record
    return holder


def _rename(name: str, value: str, names: Mapping[str, str]) -> str:
    """Return the new value of a property that names studies."""
    if name == "based_on":
        return _rename_basis(value, names)

    study, mark, number = value.rpartition("#")
    if name in ("id", "result", "answered_from"):
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
