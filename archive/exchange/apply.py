"""Writing of dump records to the database: a batch of records is one idempotent transaction.

Each record is merged with the existing one (`archive.exchange.merge`) and written if it changes
anything. Nodes with concurrent writers are locked first: studies, to which searches add proposals,
and networks, to which agents add distances.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from archive.architecture.layer import BESIDE
from archive.database.statements import lock
from archive.errors import SettingsError
from archive.exchange import export_queries as reading
from archive.exchange.merge import merge_records
from archive.exchange.record_schema import SHAPES, Record, architecture_of, text_of
from archive.store import architectures, distances
from archive.store import dump_statements as statements
from archive.store.evaluations import TASK
from archive.store.properties import (
    from_json,
    proposal_id,
    read_column,
    space_id,
    study_of,
    task_id,
)
from archive.store.records import State
from archive.store.studies import configurations, creation, run_texts
from archive.store.studies.creation import agent_id

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.exchange.export_queries import Ask

Batch = Sequence[tuple[str, Record]]


def store(tx: ManagedTransaction, batch: Batch) -> dict[str, int]:
    """Write records in a transaction; return the number of effective ones of each kind.

    Raises:
        UsageError: A record contradicts the archive.
    """
    changed: dict[str, int] = {}
    for kind in SHAPES:
        records = [record for its_kind, record in batch if its_kind == kind]
        if records:
            changed[kind] = _WRITERS[kind](tx, records)

    return changed


def compare(ask: Ask, batch: Batch) -> None:
    """Check that no record of a batch contradicts the archive.

    Raises:
        UsageError: A record contradicts it.
    """
    for kind, read in _READERS.items():
        records = [record for its_kind, record in batch if its_kind == kind]
        if records:
            _merge(kind, read(ask, records), records)


def missing(ask: Ask, batch: Batch) -> dict[str, list[Any]]:
    """Return identities of records that the archive lacks or has in an earlier state, by kind.

    Raises:
        UsageError: A record contradicts the archive.
    """
    identities: dict[str, list[Any]] = {}
    for kind, read in _READERS.items():
        records = [record for its_kind, record in batch if its_kind == kind]
        if records:
            identities[kind] = list(_merge(kind, read(ask, records), records))

    return identities


def existing(ask: Ask, kind: str, records: Sequence[Record]) -> Mapping[Any, Record]:
    """Return the archive's records of the same identities, by identity; of `compare`'s kinds."""
    return _READERS[kind](ask, records)


def identity(kind: str, record: Record) -> Any:
    """Return the identity of a record: two records of one identity are merged."""
    if kind == "agent":
        return agent_id(record["kind"], record["config"], record["version"])

    if kind == "proposal":
        return proposal_id(record["study"], record["number"])

    names = {
        "study": ("name",), "warm_start": ("study", "source"), "architecture": ("key",), "morph": ("parent", "child"),
        "build": ("configuration", "network", "model"),
        "distances": ("of",), "proxies": ("of", "task", "protocol", "source"), "task": ("task", "protocol"),
    }  # fmt: skip
    values = tuple(record[name] for name in names.get(kind, ("id",)))
    return values if len(values) > 1 else values[0]


def _merge(kind: str, stored: Mapping[Any, Record], records: Iterable[Record]) -> dict[Any, Record]:
    """Return the records to write, by identity: new ones, and merged ones with differences."""
    present = dict(stored)
    changed: dict[Any, Record] = {}
    for record in records:
        key = identity(kind, record)
        new = merge_records(kind, present[key], record) if key in present else record
        if key not in present or text_of(new) != text_of(present[key]):
            present[key] = changed[key] = new

    return dict(sorted(changed.items()))


def _tasks(ask: Ask, records: Sequence[Record]) -> dict[tuple[str, str], Record]:
    ids = sorted({task_id(record["task"], record["protocol"]) for record in records})
    return {(task["task"], task["protocol"]): task for task in reading.tasks(ask, ids)}


def _studies(ask: Ask, records: Sequence[Record]) -> dict[str, Record]:
    names = read_column(records, "name")
    return {study["name"]: study for study in reading.studies(ask, names)}


def _warm_starts(ask: Ask, records: Sequence[Record]) -> dict[tuple[str, str], Record]:
    names = sorted(set(read_column(records, "study")))
    return {identity("warm_start", row): row for row in reading.warm_starts(ask, names)}


def _evaluations(ask: Ask, records: Sequence[Record]) -> dict[str, Record]:
    return dict(reading.evaluations(ask, read_column(records, "id")))


def _proposals(ask: Ask, records: Sequence[Record]) -> dict[str, Record]:
    return {id_: reading.proposal_of(row) for id_, row in _rows_of_proposals(ask, records).items()}


def _rows_of_proposals(ask: Ask, records: Sequence[Record]) -> dict[str, Mapping[str, Any]]:
    rows = ask(
        statements.PROPOSALS, ids=sorted({identity("proposal", record) for record in records})
    )
    return {row["properties"]["id"]: row for row in rows}


def _write_agents(tx: ManagedTransaction, records: Sequence[Record]) -> int:
    stored = dict(
        reading.agents(reading.asking_within(tx), [identity("agent", record) for record in records])
    )
    changed = _merge("agent", stored, records)
    return _run(tx, statements.AGENT, [{"id": id_, **record} for id_, record in changed.items()])


def _write_workers(tx: ManagedTransaction, records: Sequence[Record]) -> int:
    stored = dict(reading.workers(reading.asking_within(tx), read_column(records, "id")))
    changed = _merge("worker", stored, records)
    return _run(
        tx,
        statements.WORKER,
        [_replacing(stored.get(id_), record) for id_, record in changed.items()],
    )


def _write_tasks(tx: ManagedTransaction, records: Sequence[Record]) -> int:
    changed = _merge("task", _tasks(reading.asking_within(tx), records), records)
    rows = [{**record, "id": task_id(*names)} for names, record in changed.items()]
    return _run(tx, TASK, rows)


def _write_studies(tx: ManagedTransaction, records: Sequence[Record]) -> int:
    lock(tx, "Study", set(read_column(records, "name")))
    stored = _studies(reading.asking_within(tx), records)
    changed = _merge("study", stored, records)
    rows = []
    for record in changed.values():
        rows.append(
            {
                **record,
                "task_id": task_id(record["task"], record["protocol"]),
                "space_id": space_id(record["space"], record["space_config"]),
                "direction": record["properties"]["direction"],
            }
        )

    _run(tx, statements.STUDY, rows)
    for row in rows:
        before = stored.get(row["name"])
        if before is not None and before["space_config"] != row["space_config"]:
            former = space_id(before["space"], before["space_config"])
            tx.run(creation.GROW, row, before=former).consume()
            configurations.supply(tx, row["name"], from_json(row["space_config"]))

    return _run(tx, creation.PLACE, rows)


def _write_warm_starts(tx: ManagedTransaction, records: Sequence[Record]) -> int:
    lock(tx, "Study", set(read_column(records, "study")))
    stored = _warm_starts(reading.asking_within(tx), records)
    return _run(tx, statements.WARM_START, list(_merge("warm_start", stored, records).values()))


def prepare(batch: Batch) -> list[tuple[str, Record]]:
    """Return records with networks in canonical order, computed before the transaction.

    Raises:
        UsageError: A network does not have its key.
    """
    prepared = []
    for kind, record in batch:
        if kind == "architecture":
            network = architecture_of(record)
            architectures.prepare([network])
            record = {**record, "architecture": network}

        prepared.append((kind, record))

    return prepared


def _write_architectures(tx: ManagedTransaction, records: Sequence[Record]) -> int:
    networks = list(map(architecture_of, records))
    new = {network.key for network in networks} - architectures.known(
        tx, {network.key for network in networks}
    )
    architectures.store(tx, networks)
    rows = reading.properties_of_networks(
        reading.asking_within(tx), [network.key for network in networks]
    )
    stored = {key: {"key": key, "properties": properties} for key, properties in rows}
    loaded = [{"key": record["key"], "properties": record["properties"]} for record in records]
    changed = _merge("architecture", stored, loaded)
    _run(tx, statements.NETWORK, list(changed.values()))
    return len(new | changed.keys())


def _write_morphs(tx: ManagedTransaction, records: Sequence[Record]) -> int:
    lock(tx, "Architecture", set(read_column(records, "parent")))
    pages = reading.morphs(reading.asking_within(tx), sorted(set(read_column(records, "child"))))
    stored = {}
    for page in pages:
        for row in page:
            stored[identity("morph", row)] = row

    return _run(tx, statements.MORPH, list(_merge("morph", stored, records).values()))


def _write_builds(tx: ManagedTransaction, records: Sequence[Record]) -> int:
    configurations = sorted(set(read_column(records, "configuration")))
    lock(tx, "Architecture", configurations)
    stored = {}
    for row in reading.builds(reading.asking_within(tx), configurations):
        stored[identity("build", row)] = row

    return _run(tx, statements.BUILD, list(_merge("build", stored, records).values()))


def _write_evaluations(tx: ManagedTransaction, records: Sequence[Record]) -> int:
    stored = _evaluations(reading.asking_within(tx), records)
    changed = _merge("evaluation", stored, records)
    _run(
        tx, statements.REWRITTEN, [{"study": name} for name in sorted(set(map(study_of, changed)))]
    )
    rows = _at_tasks(tx, [_replacing(stored.get(id_), record) for id_, record in changed.items()])
    _run(tx, statements.EVALUATION, rows)
    _run(
        tx,
        statements.WEIGHTS,
        [{"id": row["id"], **row["weights"]} for row in rows if row["weights"]],
    )
    return len(rows)


def _write_proposals(tx: ManagedTransaction, records: Sequence[Record]) -> int:
    names = set(read_column(records, "study"))
    lock(tx, "Study", names)
    records = _supply(reading.asking_within(tx), sorted(names), records)
    rows = _rows_of_proposals(reading.asking_within(tx), records)
    changed = _merge(
        "proposal", {id_: reading.proposal_of(row) for id_, row in rows.items()}, records
    )
    nodes = {id_: row["properties"] for id_, row in rows.items()}
    new = []
    texts = {}
    for id_, record in changed.items():
        properties, texts_of_run = run_texts.split_off(record["properties"])
        settled = _settle(nodes.get(id_), {**record, "properties": properties})
        new.append({**settled, "id": id_})
        if texts_of_run or (id_ in rows and any(rows[id_]["texts"].values())):
            texts[id_] = texts_of_run

    studies = sorted(set(read_column(new, "study")))
    _run(tx, statements.REWRITTEN, [{"study": name} for name in studies])
    _run(tx, statements.PROPOSAL, new)
    run_texts.put(tx, texts)
    _run(tx, statements.MADE, [row for row in new if row["agent"]])
    _run(tx, statements.RESULT, [row for row in new if row["result"]])
    claims = []
    for row in new:
        for worker, time, about in row["claims"]:
            claims.append({"id": row["id"], "worker": worker, "at": time, "properties": about})

    _run(tx, statements.CLAIM, claims)
    return len(new)


def _supply(ask: Ask, names: Sequence[str], records: Sequence[Record]) -> list[Record]:
    """Return proposals with the defaults of parameters that their studies have got."""
    parameters = {}
    for study in reading.studies(ask, names):
        config = from_json(study["space_config"])
        if study["space"] == creation.PARAMETERS or BESIDE in config:
            # A space that this release cannot read has not grown here.
            with suppress(SettingsError):
                parameters[study["name"]] = configurations.read_parameters(config)

    supplied = []
    for record in records:
        properties = record["properties"]
        if record["study"] in parameters:
            column, space = parameters[record["study"]]
            values = configurations.supply_values(column, space, properties.get(column))
            properties = {**properties, **values}

        supplied.append({**record, "properties": properties})

    return supplied


def _settle(node: Mapping[str, Any] | None, record: Record) -> Record:
    """Return a proposal to write over the stored one, which may be running."""
    if node is None:
        return record

    if record["properties"]["state"] == State.WAITING and node["state"] == State.RUNNING:
        # The worker that holds it continues.
        kept = {name: value for name, value in record["properties"].items() if name != "state"}
        return {**record, "properties": kept}

    computed = SHAPES["proposal"].computed - {"token", "lease_until"}
    gone = dict.fromkeys(node.keys() - computed - record["properties"].keys())
    return {**record, "properties": {**gone, **record["properties"]}}


def _replacing(stored: Record | None, record: Record) -> Record:
    """Return a record that removes the stored properties that it lacks."""
    gone = {} if stored is None else dict.fromkeys(stored["properties"])
    return {**record, "properties": {**gone, **record["properties"]}}


def _write_distances(tx: ManagedTransaction, records: Sequence[Record]) -> int:
    lock(tx, "Architecture", set(read_column(records, "of")))
    pairs = []
    for record in records:
        pairs.append({"of": record["of"], "neighbours": dict.fromkeys(record["to"], True)})

    stored: dict[str, Record] = {}
    for row in tx.run(statements.PAIRS, rows=pairs):
        entry = stored.setdefault(row["key"], {"of": row["key"], "to": {}})
        entry["to"][row["other"]] = row["properties"]

    changed: set[int] = set()
    for query, update in ((distances.CREATE, False), (distances.UPDATE, True)):
        groups = []
        for record in records:
            groups.append(
                _pairs(stored.get(record["of"], {"of": record["of"], "to": {}}), record, update)
            )

        if any(read_column(groups, "rows")):
            tx.run(query, groups=[group for group in groups if group["rows"]]).consume()

        changed.update(index for index, group in enumerate(groups) if group["rows"])

    return len(changed)


def _pairs(stored: Record, record: Record, update: bool) -> Record:
    """Return the pairs of a record to create, or to change if `known`."""
    ours = stored["to"]
    whole = merge_records("distances", stored, record)["to"]
    pairs = []
    for key, kinds in sorted(whole.items()):
        if (key in ours) is update and kinds != ours.get(key):
            pairs.append({"key": key, "properties": kinds})

    return {"key": record["of"], "rows": pairs}


def _write_proxies(tx: ManagedTransaction, records: Sequence[Record]) -> int:
    keys = sorted(set(read_column(records, "of")))
    lock(tx, "Architecture", keys)
    stored = {}
    for row in reading.proxies(reading.asking_within(tx), keys):
        stored[identity("proxies", row)] = row

    changed = list(_merge("proxies", stored, records).values())
    return _run(tx, statements.PROXIES, _at_tasks(tx, changed))


def _at_tasks(tx: ManagedTransaction, records: Iterable[Record]) -> list[Record]:
    """Return records with the ids of their tasks, which are created where the archive has none."""
    rows = []
    for record in records:
        rows.append({**record, "task_id": task_id(record["task"], record["protocol"])})

    tasks = {}
    for row in rows:
        tasks[row["task_id"]] = {
            "id": row["task_id"],
            "task": row["task"],
            "protocol": row["protocol"],
            "direction": None,
        }

    _run(tx, TASK, [tasks[id_] for id_ in sorted(tasks)])
    return rows


def _run(tx: ManagedTransaction, query: str, rows: Sequence[Mapping[str, Any]]) -> int:
    if rows:
        tx.run(query, rows=list(rows)).consume()

    return len(rows)


_READERS: dict[str, Callable[[Ask, Sequence[Record]], Mapping[Any, Record]]] = {
    "task": _tasks,
    "study": _studies,
    "warm_start": _warm_starts,
    "evaluation": _evaluations,
    "proposal": _proposals,
}

_WRITERS: dict[str, Callable[[ManagedTransaction, Sequence[Record]], int]] = {
    "agent": _write_agents,
    "worker": _write_workers,
    "task": _write_tasks,
    "study": _write_studies,
    "warm_start": _write_warm_starts,
    "architecture": _write_architectures,
    "morph": _write_morphs,
    "build": _write_builds,
    "evaluation": _write_evaluations,
    "proposal": _write_proposals,
    "distances": _write_distances,
    "proxies": _write_proxies,
}
