"""Lineage of architectures: their ancestors, and the trained weights that they can inherit.

    (ancestor:Architecture) -[:MORPHED_INTO {operations}]-> … -> (architecture)
        ^
        └── (:Evaluation) -[:SAVED]-> (:Weights)          (:Evaluation) -[:ON]-> (:Task)

A proposal records the parent of its network (`Suggestion.parent`), and a trainer records the parent
whose weights it uses (`Architectures.record_morph`). An architecture may have several parents, and
mutations that undo each other make circles. Only shortest paths of a bounded number of steps count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from archive.store.architectures import Architectures
from archive.store.properties import read_column, task_id
from archive.store.records import Weights

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.database.connection import Connection

HOPS = 6
"""Maximum number of steps to an ancestor: more distant relatives share little, and the number of
paths multiplies."""

# One generation at a time: a path pattern of variable length would follow each of a multiplying
# number of paths.
WITH_WEIGHTS = """
UNWIND $keys AS key
MATCH (child:Architecture {key: key})
MATCH (child)<-[:MORPHED_INTO]-(ancestor:Architecture)
WITH DISTINCT ancestor
RETURN ancestor.key AS architecture,
       [(ancestor)<-[:OF]-(e:Evaluation)-[:SAVED]->(w:Weights) |
        [e.id, e.value, w.uri, w.sha256, w.bytes, [(e)-[:ON]->(t:Task) | [t.id, t.protocol]]]] AS trained
"""

PARENTS = """
UNWIND $keys AS key
MATCH (child:Architecture {key: key})
MATCH (parent:Architecture)-[m:MORPHED_INTO]->(child)
RETURN parent.key AS parent, key AS child, m.operations AS operations
ORDER BY child, parent
"""

RESERVE = """
MATCH (w:Weights {uri: $uri})
USING INDEX SEEK w:Weights(uri)
SET w.used = timestamp()
"""

PRESENT = "MATCH (w:Weights {uri: $uri}) RETURN w.uri AS uri"


@dataclass(frozen=True)
class Descent:
    """One step of a lineage: keys of parent and child, and the operations between them."""

    parent: str
    child: str
    operations: tuple[str, ...]


@dataclass(frozen=True)
class Ancestor:
    """An ancestor with stored weights.

    Attributes:
        architecture: Key of the ancestor.
        hops: Number of steps from the ancestor to the requested architecture.
        evaluation: Id of the evaluation that saved the weights.
        value: Objective of that evaluation, in the task's own unit.
        protocol: Training protocol of that evaluation.
        weights: Address and digest of its weights.
    """

    architecture: str
    hops: int
    evaluation: str
    value: float
    protocol: str
    weights: Weights


class Lineage:
    """Reader of lineages."""

    def __init__(self, connection: Connection, architectures: Architectures) -> None:
        """Read and write through this connection; `architectures` finds keys."""
        self._connection = connection
        self._architectures = architectures

    def of(self, key: str, hops: int = HOPS) -> list[Descent]:
        """Return the steps that led to an architecture, the last one first; each step once.

        Args:
            key: Key of the architecture, or its beginning; without parents, there is no lineage.
            hops: Number of generations.

        Raises:
            UnknownNameError: The archive has no such architecture.
            UsageError: Several keys have this beginning.
        """
        key = self._architectures.find(key)
        steps: dict[tuple[str, str], Descent] = {}
        generation = [key]
        seen = {key}
        for _ in range(hops):
            rows = self._rows(PARENTS, generation)
            for row in rows:
                descent = Descent(row["parent"], row["child"], tuple(row["operations"] or ()))
                steps.setdefault((descent.parent, descent.child), descent)

            generation = sorted(set(read_column(rows, "parent")) - seen)
            seen.update(generation)

        return list(steps.values())

    def with_weights(
        self,
        key: str,
        task: str,
        protocols: Sequence[str],
        *,
        maximise: bool = True,
        limit: int = 16,
    ) -> list[Ancestor]:
        """Return ancestors with stored weights, the nearest first.

        Among equally near ones, the best is first.

        One query for each generation, until there are enough.

        Args:
            key: Key of an architecture.
            task: Name of the task that the weights were trained for.
            protocols: Accepted training protocols.
            maximise: Whether a larger value is better.
            limit: Maximum number of ancestors.
        """
        tasks = {task_id(task, protocol) for protocol in protocols}
        nearest: list[Ancestor] = []
        generation = [key]
        seen = {key}
        for hops in range(1, HOPS + 1):
            rows = self._rows(WITH_WEIGHTS, generation)
            rows = [row for row in rows if row["architecture"] not in seen]
            nearest += sorted(
                chain.from_iterable(_ancestors(row, hops, tasks) for row in rows),
                key=lambda ancestor: (
                    ancestor.value != ancestor.value,
                    -ancestor.value if maximise else ancestor.value,
                    ancestor.evaluation,
                ),
            )
            generation = sorted(read_column(rows, "architecture"))
            seen.update(generation)
            if len(nearest) >= limit or not generation:
                break

        return nearest[:limit]

    def reserve(self, weights: Weights) -> bool:
        """Mark weights as about to be used.

        This protects them from garbage collection for a while.

        Returns:
            Whether they still exist.
        """

        def work(tx: ManagedTransaction) -> bool:
            # A statement that waited for a deleting transaction may still return a row, so a second
            # one checks.
            tx.run(RESERVE, uri=weights.uri).consume()
            return tx.run(PRESENT, uri=weights.uri).single() is not None

        return self._connection.write(work)

    def _rows(self, query: str, keys: Sequence[str]) -> list[dict[str, Any]]:
        return self._connection.read(lambda tx: tx.run(query, keys=keys).data()) if keys else []


def ancestors(tx: ManagedTransaction, keys: Sequence[str], hops: int = HOPS) -> set[str]:
    """Return the keys of all ancestors of these architectures within a transaction.

    There is one query for each generation.
    """
    reached: set[str] = set()
    generation = sorted(set(keys))
    for _ in range(hops):
        if not generation:
            break

        rows = tx.run(PARENTS, keys=generation)
        generation = sorted(set(read_column(rows, "parent")) - reached)
        reached.update(generation)

    return reached


def _ancestors(row: dict[str, Any], hops: int, tasks: set[str]) -> Iterator[Ancestor]:
    for evaluation, value, uri, sha256, size, on in row["trained"]:
        for task, protocol in on:
            if task in tasks:
                saved = Weights(uri, sha256, size)
                yield Ancestor(row["architecture"], hops, evaluation, value, protocol, saved)
