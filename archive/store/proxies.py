"""Zero-cost proxies: scores of untrained networks on a task.

Each network and source of scores has one relationship.

    (:Architecture)-[:MEASURED {source, proxy_synflow, …}]->(:Task)

A source is one set of definitions: `archive.trainer.proxies`, or a published table. Scores
of different sources are not comparable, so readers use one source at a time. Scores of a network
are stored once and shared by all studies of the task.

| module                               | use                                                    |
|--------------------------------------|--------------------------------------------------------|
| `archive.trainer.proxies`            | definitions, and their measurement                     |
| `archive.trainer.daemon.proxy_measurer` | measurement by a trainer, beside its trials         |
| `archive.searches.trainers`          | networks of a search that are to be measured           |
| `archive.exchange.importers.proxies` | import of published scores                             |
| `archive.agents.proxies`             | features of a surrogate, and initial designs           |
| `archive.cli.architecture.proxies`   | the command that measures networks of a task           |
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, Any, final

from archive.database.statements import lock
from archive.errors import UsageError
from archive.store import architectures
from archive.store.architectures import Architectures, batched
from archive.store.evaluations import TASK
from archive.store.properties import PROXY, plain, read_column, task_id

if TYPE_CHECKING:
    import numpy as np
    from neo4j import ManagedTransaction
    from numpy.typing import NDArray

    from archive.architecture.graph import Architecture
    from archive.database.connection import Connection


@final
@dataclass(frozen=True, eq=False)
class ProxyTable:
    """Scores of n networks by p proxies, all of one source; networks of one functional key are one.

    Attributes:
        source: Name of the source.
        names: Names of the proxies, sorted.
        networks: The n networks.
        scores: (n, p) float64, NaN where a proxy is not defined.
        until: Time of the latest measurement, in milliseconds since 1970; 0 where unknown.
    """

    source: str
    names: tuple[str, ...]
    networks: tuple[Architecture, ...]
    scores: NDArray[np.float64]
    until: int = 0

    @cached_property
    def rows(self) -> Mapping[str, int]:
        """Row of each network, by functional key."""
        return {network.functional_key: row for row, network in enumerate(self.networks)}

    def __len__(self) -> int:
        """Return n."""
        return len(self.networks)


BATCH = 250

ADD = """
MATCH (t:Task {id: $task})
USING INDEX SEEK t:Task(id)
UNWIND $rows AS row
MATCH (a:Architecture {key: row.key})
USING INDEX SEEK a:Architecture(key)
MERGE (a)-[m:MEASURED {source: $source}]->(t)
WITH m, row, properties(m) AS stored
SET m += row.properties, m.created = timestamp()
SET m += stored
RETURN count(m) AS written
"""

# Readers read the scores again when this number has changed.
REVISED = """
MATCH (t:Task {id: $task})
USING INDEX SEEK t:Task(id)
SET t.measured = coalesce(t.measured, 0) + $count
"""

REVISION = """
MATCH (t:Task {id: $task})
RETURN t.measured AS measured
"""

OF_TASK = """
MATCH (t:Task {id: $task})<-[m:MEASURED]-(a:Architecture)
WHERE a.space = $space AND ($source IS NULL OR m.source = $source) AND ($until IS NULL OR m.created <= $until)
RETURN a.key AS key, a.functional_key AS functional_key, properties(m) AS properties
"""

OF_NETWORKS = """
UNWIND $keys AS key
MATCH (a:Architecture {key: key})-[m:MEASURED]->(t:Task)
USING INDEX SEEK a:Architecture(key)
WHERE t.id = $task AND m.source = $source
RETURN key, properties(m) AS properties
"""

OF_ARCHITECTURE = """
MATCH (a:Architecture {key: $key})-[m:MEASURED]->(t:Task)
RETURN t.name AS task, t.protocol AS protocol, properties(m) AS properties
"""


class ProxyScores:
    """Writer and reader of proxies. Safe to share between threads.

    Args:
        connection: Connection to the archive.
        architectures: Reader of networks, which it caches.
    """

    def __init__(self, connection: Connection, architectures: Architectures) -> None:
        """Start with an empty cache."""
        self._connection = connection
        self._architectures = architectures
        self._cached: dict[tuple[str, str], tuple[int, ProxyTable | None]] = {}
        self._guard = Lock()

    def add(
        self, task: str, protocol: str, source: str, scores: Mapping[str, Mapping[str, float]]
    ) -> None:
        """Store scores of networks; stored scores of the same source do not change.

        Each batch is one transaction. A repeated call changes nothing.

        Args:
            task: Name of the task.
            protocol: Name of the training protocol.
            source: Name of the definitions.
            scores: Key of each network to its scores by proxy, NaN where a proxy is not defined for
                it.

        Raises:
            UsageError: The archive has no such network.
        """
        node_id = task_id(task, protocol)
        row = {"id": node_id, "task": task, "protocol": protocol, "direction": None}
        self._connection.write(lambda tx: tx.run(TASK, rows=[row]).consume())
        for keys in batched(sorted(scores), BATCH):
            rows = [{"key": key, "properties": _properties(scores[key])} for key in keys]
            self._connection.write(
                partial(_add, task=node_id, source=source, rows=rows), alone=True
            )

    def of_networks(
        self, task: str, protocol: str, source: str, keys: Iterable[str]
    ) -> dict[str, dict[str, float | None]]:
        """Return the scores of networks from a source by key; None where a score is undefined."""
        node_id = task_id(task, protocol)
        scores = dict[str, dict[str, float | None]]()
        for part in batched(sorted(set(keys)), BATCH):
            parameters = {"keys": part, "task": node_id, "source": source}
            rows = self._connection.read(partial(_rows, query=OF_NETWORKS, parameters=parameters))
            scores.update((row["key"], _scores(row["properties"])) for row in rows)

        return scores

    def of_architecture(self, key: str) -> list[dict[str, Any]]:
        """Return the rows `task`, `protocol`, `source`, `proxy`, `score` (or None) of a network."""
        rows = self._connection.read(partial(_rows, query=OF_ARCHITECTURE, parameters={"key": key}))
        scores: list[dict[str, Any]] = []
        for row in rows:
            source = row["properties"]["source"]
            origin = {"task": row["task"], "protocol": row["protocol"], "source": source}
            for name, value in _scores(row["properties"]).items():
                scores.append({**origin, "proxy": name, "score": value})

        return sorted(
            scores,
            key=lambda score: [score[name] for name in ("task", "protocol", "source", "proxy")],
        )

    def of_task(
        self,
        task: str,
        protocol: str,
        space: str,
        *,
        source: str | None = None,
        until: int | None = None,
    ) -> ProxyTable | None:
        """Return the scores of a space's networks on a task, from the source with the most.

        The table is read again only after scores were added through this class.

        Args:
            task: Name of the task.
            protocol: Name of the training protocol.
            space: Name of the space.
            source: Name of the source; None for the one with the most networks, of equals the first
                by name.
            until: Leaves out later measurements, in milliseconds since 1970; None for no limit.

        Returns:
            None without stored scores of this source.
        """
        node_id = task_id(task, protocol)
        row = self._connection.read(lambda tx: tx.run(REVISION, task=node_id).single())
        revision = 0 if row is None else int(row["measured"] or 0)
        if not revision:
            return None

        if source is not None or until is not None:
            return self._read(node_id, space, source, until)

        with self._guard:
            if self._cached.get((node_id, space), (0, None))[0] != revision:
                self._cached[node_id, space] = revision, self._read(node_id, space, None, None)

            return self._cached[node_id, space][1]

    def _read(
        self, task: str, space: str, source: str | None, until: int | None
    ) -> ProxyTable | None:
        parameters = {"task": task, "space": space, "source": source, "until": until}
        rows = self._connection.read(partial(_rows, query=OF_TASK, parameters=parameters))
        by_source: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            by_source.setdefault(row["properties"]["source"], []).append(row)

        if not by_source:
            return None

        largest = min(by_source, key=lambda name: (-len(by_source[name]), name))
        return self._table(largest, by_source[largest])

    def _table(self, source: str, rows: Sequence[Mapping[str, Any]]) -> ProxyTable:
        # Imported lazily: the trainer does not read scores and should not pay for importing numpy.
        import numpy as np

        from archive.store.proxies import ProxyTable

        by_function: dict[str, Mapping[str, Any]] = {}
        # Of networks with one functional key, the one without dead layers counts, or else the first
        # by key.
        for row in sorted(rows, key=lambda row: (row["key"] != row["functional_key"], row["key"])):
            by_function.setdefault(row["functional_key"], row)

        scores = {row["key"]: _scores(row["properties"]) for row in by_function.values()}
        names = tuple(sorted({*chain.from_iterable(scores.values())}))
        values = np.array(
            [list(map(by_name.get, names)) for by_name in scores.values()], np.float64
        )
        networks = self._architectures.get_many(scores)
        until = max(int(row["properties"].get("created", 0)) for row in rows)
        return ProxyTable(source, names, tuple(networks[key] for key in scores), values, until)


def _properties(scores: Mapping[str, float]) -> dict[str, Any]:
    """Return scores as properties: a score that is not finite is named in `undefined`."""
    finite: dict[str, Any] = {}
    undefined = []
    for name, value in scores.items():
        if math.isfinite(value):
            finite[PROXY + name] = float(value)
        else:
            undefined.append(name)

    return {**finite, "undefined": sorted(undefined) or None}


def _scores(properties: Mapping[str, Any]) -> dict[str, float | None]:
    finite = {}
    for name, value in properties.items():
        if name.startswith(PROXY):
            finite[name.removeprefix(PROXY)] = value

    return {**finite, **dict.fromkeys(properties.get("undefined") or ())}


def _rows(
    tx: ManagedTransaction, query: str, parameters: Mapping[str, Any]
) -> list[dict[str, Any]]:
    return plain(tx.run(query, parameters))  # type: ignore[arg-type]


def _add(tx: ManagedTransaction, task: str, source: str, rows: Sequence[Mapping[str, Any]]) -> None:
    keys = read_column(rows, "key")
    # Two writers cannot both find a relationship missing.
    lock(tx, "Architecture", keys)
    written = tx.run(ADD, task=task, source=source, rows=rows).single(strict=True)["written"]
    if written < len(rows):
        absent = ", ".join(sorted({*keys} - architectures.known(tx, keys))[:3])
        raise UsageError(f"proxies need architectures that the archive has, got {absent}")

    tx.run(REVISED, task=task, count=len(rows)).consume()
