"""Which architectures came from which, and whose trained weights an architecture can begin with.

    (ancestor:Architecture) -[:MORPHED_INTO {operations}]-> … -> (architecture)
        ^
        └── (:Evaluation) -[:SAVED]-> (:Checkpoint)          (:Evaluation) -[:ON]-> (:Task)

Agents note what they turned into what when they propose it (`Suggestion.parent`); who lets a network inherit weights
notes that, too (`Architectures.record_morph`). An architecture may have several parents, and mutations that undo each
other make circles: what is looked at is the shortest way, of a bounded number of steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from archive.store.architectures import Architectures
from archive.store.evaluations import task_id
from archive.store.records import Checkpoint

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.database.connection import Connection

HOPS = 6
"""Most steps of the way to an ancestor: relatives that are further off share little, and ways multiply."""

# One generation at a time: a path of variable length is followed along each of its ways, and these multiply.
WITH_WEIGHTS = """
UNWIND $keys AS key
MATCH (child:Architecture {key: key})
MATCH (child)<-[:MORPHED_INTO]-(ancestor:Architecture)
WITH DISTINCT ancestor
RETURN ancestor.key AS architecture,
       [(ancestor)<-[:OF]-(e:Evaluation)-[:SAVED]->(c:Checkpoint) |
        [e.id, e.value, c.uri, c.sha256, c.bytes, [(e)-[:ON]->(t:Task) | [t.id, t.protocol]]]] AS trained
"""

PARENTS = """
UNWIND $keys AS key
MATCH (child:Architecture {key: key})
MATCH (parent:Architecture)-[m:MORPHED_INTO]->(child)
RETURN parent.key AS parent, key AS child, m.operations AS operations
ORDER BY child, parent
"""

RESERVE = """
MATCH (c:Checkpoint {uri: $uri})
USING INDEX SEEK c:Checkpoint(uri)
SET c.used = timestamp()
"""

PRESENT = "MATCH (c:Checkpoint {uri: $uri}) RETURN c.uri AS uri"


@dataclass(frozen=True)
class Descent:
    """One step of a lineage: these operations turned the parent into the child, both named by their keys."""

    parent: str
    child: str
    operations: tuple[str, ...]


@dataclass(frozen=True)
class Ancestor:
    """An ancestor whose weights are kept.

    Attributes:
        architecture: Its key.
        hops: Steps from it to the architecture that was asked about.
        evaluation: Id of the evaluation that saved the weights.
        value: What that evaluation found, in the task's own unit.
        protocol: By which it was trained.
        checkpoint: The weights.
    """

    architecture: str
    hops: int
    evaluation: str
    value: float
    protocol: str
    checkpoint: Checkpoint


class Lineage:
    """Reads where architectures came from."""

    def __init__(self, connection: Connection, architectures: Architectures) -> None:
        """Read and write through this connection; `architectures` knows which there are."""
        self._connection = connection
        self._architectures = architectures

    def of(self, key: str, hops: int = HOPS) -> list[Descent]:
        """Return the steps that led to an architecture, the last one first; each step once.

        Args:
            key: Of the architecture, or its beginning; one without parents has no lineage.
            hops: How many generations to go back.

        Raises:
            UnknownNameError: The archive has no such architecture.
            UsageError: Several keys begin so.
        """
        key = self._architectures.find(key)
        found: dict[tuple[str, str], Descent] = {}
        generation, seen = [key], {key}
        for _ in range(hops):
            rows = self._rows(PARENTS, generation)
            for row in rows:
                descent = Descent(row["parent"], row["child"], tuple(row["operations"] or ()))
                found.setdefault((descent.parent, descent.child), descent)
            generation = sorted({row["parent"] for row in rows} - seen)
            seen.update(generation)
        return list(found.values())

    def with_weights(
        self, key: str, task: str, protocols: Sequence[str], *, maximise: bool = True, limit: int = 16
    ) -> list[Ancestor]:
        """Return ancestors whose weights are kept, the nearest first, among equally near ones the best.

        One query for each generation, up to the first ones that are enough.

        Args:
            key: Of an architecture.
            task: Name of the task that the weights must have learned.
            protocols: By any of which they may have learned it.
            maximise: Whether a larger value is better.
            limit: Most to return.
        """
        tasks = {task_id(task, protocol) for protocol in protocols}
        found: list[Ancestor] = []
        generation, seen = [key], {key}
        for hops in range(1, HOPS + 1):
            rows = self._rows(WITH_WEIGHTS, generation)
            rows = [row for row in rows if row["architecture"] not in seen]
            found += sorted(
                (one for row in rows for one in _ancestors(row, hops, tasks)),
                key=lambda one: (one.value != one.value, -one.value if maximise else one.value, one.evaluation),
            )
            generation = sorted(row["architecture"] for row in rows)
            seen.update(generation)
            if len(found) >= limit or not generation:
                break
        return found[:limit]

    def reserve(self, checkpoint: Checkpoint) -> bool:
        """Note that weights are about to be used, which keeps them from being collected for a while.

        Returns:
            Whether they are still there.
        """

        def work(tx: ManagedTransaction) -> bool:
            # Who waited for the lock of one who deletes them still has a row to return: look again.
            tx.run(RESERVE, uri=checkpoint.uri).consume()
            return tx.run(PRESENT, uri=checkpoint.uri).single() is not None

        return self._connection.write(work)

    def _rows(self, query: str, keys: Sequence[str]) -> list[dict[str, Any]]:
        return self._connection.read(lambda tx: tx.run(query, keys=keys).data()) if keys else []


def ancestors(tx: ManagedTransaction, keys: Sequence[str], hops: int = HOPS) -> set[str]:
    """Return the keys of all ancestors of these architectures within a transaction, one query for each generation."""
    found: set[str] = set()
    generation = sorted(set(keys))
    for _ in range(hops):
        if not generation:
            break
        rows = tx.run(PARENTS, keys=generation)
        generation = sorted({row["parent"] for row in rows} - found)
        found.update(generation)
    return found


def _ancestors(row: dict[str, Any], hops: int, tasks: set[str]) -> Iterator[Ancestor]:
    for evaluation, value, uri, sha256, size, on in row["trained"]:
        for task, protocol in on:
            if task in tasks:
                saved = Checkpoint(uri, sha256, size)
                yield Ancestor(row["architecture"], hops, evaluation, value, protocol, saved)
