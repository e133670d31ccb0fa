"""Database queries of a dump: records by their names, in pages of one transaction each.

The archive may be written to meanwhile. A proposal, its state and the id of its result are one row.
The ids of a row stay valid, unless its study is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from archive.architecture import codec
from archive.errors import UnknownNameError
from archive.exchange.record_schema import SHAPES, Record, text_of
from archive.exchange.validators import CLAIM_OWN
from archive.store import architectures
from archive.store.architectures import batched
from archive.store.dump_statements import (
    AGENTS,
    BUILDS,
    DISTANCES,
    EVALUATIONS,
    EVERY,
    HOSTS,
    NAMES,
    NETWORKS,
    NUMBERS,
    PROPOSALS,
    PROXY_SCORES,
    SOURCES,
    STUDIES,
    TASKS,
    WORKERS,
)
from archive.store.lineage import PARENTS
from archive.store.properties import CURVE, proposal_id, read_column
from archive.store.records import State

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.database.connection import Connection

Ask = Callable[..., list[dict[str, Any]]]
"""Function that runs a query with named parameters, in a separate transaction or within a given
one."""

PAGE = 250
NEIGHBOURS = 10
"""Number of networks in one read of distances: each may have as many distances as the archive has
networks."""
PAIRS = 500


# Properties of an open proposal that are not valid in another archive.
_TRANSIENT = frozenset(["state", "worker", "started", "finished", "reason"])


def asking(connection: Connection) -> Ask:
    """Return a function that runs a query in a separate transaction."""

    def ask(query: str, **parameters: Any) -> list[dict[str, Any]]:
        return connection.read(lambda tx: tx.run(query, parameters).data())

    return ask


def asking_within(tx: ManagedTransaction) -> Ask:
    """Return a function that runs queries within a transaction."""
    return lambda query, **parameters: tx.run(query, parameters).data()


def choose_studies(ask: Ask, requested: Sequence[str] | None) -> list[str]:
    """Return the studies to dump, oldest first: all, or the requested ones and their sources.

    Raises:
        UnknownNameError: There is no study of a name.
    """
    names = read_column(ask(NAMES), "name")
    if requested is None:
        return names

    selected: set[str] = set()
    waiting = list(requested)
    while waiting:
        name = waiting.pop()
        if name not in names:
            raise UnknownNameError("study", name, names, "the archive has none yet")

        if name not in selected:
            selected.add(name)
            waiting += read_column(ask(SOURCES, names=[name]), "source")

    return [name for name in names if name in selected]


def tasks(ask: Ask, ids: Iterable[str]) -> Iterator[Record]:
    """Yield the tasks with these ids and a known direction."""
    for page in batched(sorted(set(ids)), PAGE):
        yield from ask(TASKS, ids=page)


def studies(ask: Ask, names: Sequence[str]) -> Iterator[Record]:
    """Yield studies, in the order of `names`."""
    for page in batched(names, PAGE):
        rows = {row["name"]: row for row in ask(STUDIES, names=page)}
        for name in page:
            if name in rows:
                yield {**rows[name], "properties": _export("study", rows[name]["properties"])}


def warm_starts(ask: Ask, names: Sequence[str]) -> Iterator[Record]:
    """Yield the warm starts of these studies."""
    for page in batched(names, PAGE):
        yield from ask(SOURCES, names=page)


def proposals(ask: Ask, study: str) -> Iterator[list[Record]]:
    """Yield the proposals of a study by number, a page at a time."""
    for numbers in batched(sorted(ask(NUMBERS, name=study)[0]["numbers"]), PAGE):
        # By id rather than by number, because ids have an index.
        ids = [proposal_id(study, number) for number in numbers]
        yield list(map(proposal_of, ask(PROPOSALS, ids=ids)))


def settle(properties: Mapping[str, Any], result: str | None) -> tuple[dict[str, Any], str | None]:
    """Return a proposal's properties and result for any archive: an open proposal waits.

    A promoted proposal keeps the result of its last rung.
    """
    exported = _export("proposal", properties)
    state = State(exported["state"])
    if state.evaluated and result is not None:
        return exported, result

    if state is State.FAILED:
        return exported, None

    kept = {}
    for name, value in exported.items():
        if name not in _TRANSIENT and not name.startswith(CURVE):
            kept[name] = value

    return {**kept, "state": State.WAITING.value}, result


def agents(ask: Ask, ids: Iterable[str]) -> Iterator[tuple[str, Record]]:
    """Yield agents with their ids."""
    return ((row.pop("id"), row) for row in _by_id(ask, AGENTS, ids))


def workers(ask: Ask, ids: Iterable[str]) -> Iterator[tuple[str, Record]]:
    """Yield workers with their ids."""
    for row in _by_id(ask, WORKERS, ids):
        yield row["id"], {**row, "properties": _export("worker", row["properties"])}


def networks(connection: Connection, keys: Iterable[str]) -> Iterator[tuple[str, Record]]:
    """Yield architectures with their keys."""
    for page in batched(sorted(set(keys)), PAGE):
        loaded = connection.read(partial(architectures.load, keys=page))
        for key, properties in properties_of_networks(asking(connection), page):
            yield (
                key,
                {"key": key, "architecture": codec.to_dict(loaded[key]), "properties": properties},
            )


def properties_of_networks(ask: Ask, keys: Iterable[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield keys of architectures with the properties that do not follow from their layers."""
    for page in batched(sorted(set(keys)), PAGE):
        for row in sorted(ask(NETWORKS, ids=page), key=lambda row: str(row["key"])):
            yield row["key"], _export("architecture", row["properties"])


def hosts(ask: Ask) -> list[str]:
    """Return the hosts of all workers."""
    return read_column(ask(HOSTS), "host")


def evaluations(ask: Ask, ids: Iterable[str]) -> Iterator[tuple[str, Record]]:
    """Yield evaluations with their ids."""
    for row in _by_id(ask, EVALUATIONS, ids):
        uri = row.pop("uri")
        sha256 = row.pop("sha256")
        size = row.pop("bytes")
        row["properties"] = _export("evaluation", row["properties"])
        row["weights"] = None if uri is None else {"uri": uri, "sha256": sha256, "bytes": size}
        yield row["id"], row


def morphs(ask: Ask, children: Iterable[str]) -> Iterator[list[Record]]:
    """Yield the morphisms that led to networks, a page of children at a time."""
    for page in batched(children, PAGE):
        yield [
            {**row, "operations": list(row["operations"] or [])} for row in ask(PARENTS, keys=page)
        ]


def builds(ask: Ask, keys: Iterable[str]) -> Iterator[Record]:
    """Yield the networks that models build of configurations."""
    for page in batched(keys, PAGE):
        for row in ask(BUILDS, ids=page):
            yield {**row, "properties": _export("build", row["properties"])}


def distances(
    ask: Ask, keys: Sequence[str], among: Mapping[str, Any] | set[str]
) -> Iterator[Record]:
    """Yield the stored distances between networks."""
    for page in batched(keys, NEIGHBOURS):
        neighbours: dict[str, list[tuple[str, Any]]] = {}
        for row in ask(DISTANCES, ids=page):
            if row["other"] in among:
                neighbours.setdefault(row["key"], []).append((row["other"], row["properties"]))

        for key in page:
            for part in batched(neighbours.get(key, []), PAIRS):
                yield {"of": key, "to": dict(part)}


def proxies(ask: Ask, keys: Sequence[str]) -> Iterator[Record]:
    """Yield the zero-cost proxies of networks."""
    for page in batched(keys, PAGE):
        for row in ask(PROXY_SCORES, ids=page):
            yield {**row, "properties": _export("proxies", row["properties"])}


def every(ask: Ask, kind: str) -> list[str]:
    """Return the ids of all records of a kind that no other record refers to."""
    return read_column(ask(EVERY[kind]), "id")


def proposal_of(row: Mapping[str, Any]) -> Record:
    """Return the record of a row of `PROPOSALS`."""
    node = row["properties"]
    properties, result = settle({**node, **row["texts"]}, row["result"])
    return {
        "study": node["study"],
        "number": node["number"],
        "architecture": node["architecture"],
        "agent": node.get("agent"),
        "properties": properties,
        "result": result,
        "claims": sorted(
            (_claim(*claim) for claim in row["claims"] if claim[1] is not None), key=text_of
        ),
    }


def _claim(worker: str, time: int, properties: Mapping[str, Any]) -> list[Any]:
    exported = {}
    for name, value in properties.items():
        if name not in CLAIM_OWN and value is not None:
            exported[name] = value

    return [worker, time, exported]


def _export(kind: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties that a file may contain."""
    computed = SHAPES[kind].computed
    exported = {}
    for name, value in properties.items():
        if name not in computed and value is not None:
            exported[name] = value

    return exported


def _by_id(ask: Ask, query: str, ids: Iterable[str]) -> Iterator[dict[str, Any]]:
    for page in batched(sorted(set(ids)), PAGE):
        yield from sorted(ask(query, ids=page), key=lambda row: str(row["id"]))
