"""Pairwise distances: one `DISTANCE` relationship for each unordered pair.

It leads from the smaller key to the larger.

Each kind of distance is one property, a number or a list of numbers (OTMANN has one for each
nu_str). A writer first locks the architecture with the smaller key, so that two writers cannot both
find the pair missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, LiteralString

import numpy as np
from numpy.typing import ArrayLike, NDArray

from archive.database.statements import lock
from archive.errors import UsageError
from archive.store import architectures
from archive.store.architectures import batched

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.database.connection import Connection

Pair = tuple[str, str]

BATCH = 2000
"""Pairs of one transaction."""
KEYS = 200
"""Architectures of one read."""

PRESENT = """
UNWIND $keys AS key
MATCH (a:Architecture {key: key})-[d:DISTANCE]->(b)
USING INDEX SEEK a:Architecture(key)
WHERE $neighbours[b.key] IS NOT NULL
RETURN key, b.key AS other
"""

CREATE = """
UNWIND $groups AS group
MATCH (a:Architecture {key: group.key})
USING INDEX SEEK a:Architecture(key)
UNWIND group.rows AS row
MATCH (b:Architecture {key: row.key})
USING INDEX SEEK b:Architecture(key)
CREATE (a)-[d:DISTANCE]->(b)
SET d += row.properties
RETURN count(d) AS written
"""

UPDATE = """
UNWIND $groups AS group
UNWIND group.rows AS row
MATCH (a:Architecture {key: group.key})-[d:DISTANCE]->(:Architecture {key: row.key})
USING INDEX SEEK a:Architecture(key)
SET d += row.properties
RETURN count(d) AS written
"""

READ = """
UNWIND $keys AS key
MATCH (a:Architecture {key: key})-[d:DISTANCE]->(b:Architecture)
WHERE $neighbours[b.key] IS NOT NULL AND d[$property] IS NOT NULL
RETURN key, collect(b.key) AS others, collect(d[$property]) AS distances
"""

# The pairs of a few architectures, from either end.
READ_ROWS = """
UNWIND $keys AS key
MATCH (a:Architecture {key: key})-[d:DISTANCE]-(b:Architecture)
WHERE $neighbours[b.key] IS NOT NULL AND d[$property] IS NOT NULL
RETURN key, collect(b.key) AS others, collect(d[$property]) AS distances
"""


class Distances:
    """Writer and reader of distances between architectures of the archive."""

    def __init__(self, connection: Connection) -> None:
        """Read and write through this connection."""
        self._connection = connection

    def store(self, pairs: Sequence[Pair], values: Mapping[str, ArrayLike]) -> None:
        """Store distances of pairs of keys; existing values of the same kind are replaced.

        Both architectures of a pair must be in the archive. Each batch is one transaction. Neither
        a repeated call nor another process with the same pairs adds a second relationship.

        Args:
            pairs: n unordered pairs of different keys.
            values: Values by kind of distance (`"otmann"`), (n,) or (n, components).

        Raises:
            UsageError: A pair joins an architecture to itself, a shape does not fit, or an
                architecture is missing.
        """
        for part in batched(sorted(_rows(pairs, values).items()), BATCH):
            self._connection.write(partial(_write, rows=dict(part)), alone=True)

    def matrix(self, keys: Sequence[str], kind: str) -> NDArray[np.float64]:
        """Return all distances of one kind between architectures.

        Args:
            keys: n keys; a key may occur twice.
            kind: Kind of distance.

        Returns:
            (n, n), or (components, n, n) for a distance with components: symmetric, 0 on the
            diagonal, NaN where nothing is stored.
        """
        distinct = sorted(set(keys))
        indexes = {key: index for index, key in enumerate(distinct)}
        stored = self._read(distinct, kind)
        inner = np.shape(stored[0][2]) if stored else ()
        full = np.full((len(distinct), len(distinct), *inner), np.nan)
        full[np.arange(len(distinct)), np.arange(len(distinct))] = 0.0
        if stored:
            rows = [indexes[first] for first, _, _ in stored]
            columns = [indexes[second] for _, second, _ in stored]
            full[rows, columns] = full[columns, rows] = np.array([value for _, _, value in stored])

        order = [indexes[key] for key in keys]
        return np.moveaxis(full[np.ix_(order, order)], (0, 1), (-2, -1))

    def rows(self, first: Sequence[str], second: Sequence[str], kind: str) -> NDArray[np.float64]:
        """Return the distances from some architectures to others, one row for each of the former.

        Args:
            first: m different keys.
            second: n different keys.
            kind: Kind of distance.

        Returns:
            (m, n), or (components, m, n): 0 where both keys are equal, NaN where nothing is stored.
        """
        row = {key: index for index, key in enumerate(first)}
        column = {key: index for index, key in enumerate(second)}
        stored = self._read(list(first), kind, READ_ROWS, second)
        inner = np.shape(stored[0][2]) if stored else ()
        block = np.full((len(first), len(second), *inner), np.nan)
        if stored:
            cells = [row[a] for a, _, _ in stored], [column[b] for _, b, _ in stored]
            block[cells] = np.array([value for _, _, value in stored])

        same = [(row[key], column[key]) for key in row.keys() & column.keys()]
        for cell in same:
            block[cell] = 0.0

        return np.moveaxis(block, (0, 1), (-2, -1))

    def _read(
        self,
        keys: Sequence[str],
        kind: str,
        query: LiteralString = READ,
        others: Iterable[str] | None = None,
    ) -> list[tuple[str, str, Any]]:
        # A map, because a lookup takes constant time; `IN $list` would search the list for each
        # pair.
        neighbours = dict.fromkeys(keys if others is None else others, True)
        stored: list[tuple[str, str, Any]] = []
        for part in batched(keys, KEYS):
            for row in self._connection.read(
                partial(_read_part, query=query, keys=part, neighbours=neighbours, kind=kind)
            ):
                for other, distance in zip(row["others"], row["distances"], strict=True):
                    stored.append((row["key"], other, distance))

        return stored


def _read_part(
    tx: ManagedTransaction,
    query: LiteralString,
    keys: Sequence[str],
    neighbours: Mapping[str, bool],
    kind: str,
) -> list[dict[str, Any]]:
    return tx.run(query, keys=keys, neighbours=neighbours, property=kind).data()


def _rows(pairs: Sequence[Pair], values: Mapping[str, ArrayLike]) -> dict[Pair, dict[str, Any]]:
    """Return the properties of each pair, smaller key first."""
    columns = {}
    for kind, numbers in values.items():
        column = np.asarray(numbers, dtype=np.float64)
        if column.ndim not in (1, 2) or len(column) != len(pairs):
            raise UsageError(
                f"{kind} must have the shape ({len(pairs)},) or ({len(pairs)}, "
                f"c), got {column.shape}"
            )

        columns[kind] = column.tolist()

    rows = {}
    for index, (a, b) in enumerate(pairs):
        if a == b:
            raise UsageError(f"a distance joins two architectures, got {a} twice")

        rows[min(a, b), max(a, b)] = {kind: column[index] for kind, column in columns.items()}

    return rows


def _write(tx: ManagedTransaction, rows: Mapping[Pair, Mapping[str, Any]]) -> None:
    keys = sorted({a for a, _ in rows})
    lock(tx, "Architecture", keys)
    neighbours = dict.fromkeys((b for _, b in rows), True)
    existing = set()
    for row in tx.run(PRESENT, keys=keys, neighbours=neighbours):
        existing.add((row["key"], row["other"]))

    written = _put(tx, CREATE, {pair: row for pair, row in rows.items() if pair not in existing})
    written += _put(tx, UPDATE, {pair: row for pair, row in rows.items() if pair in existing})
    if written < len(rows):
        ends = {*chain.from_iterable(rows)}
        absent = ", ".join(sorted(ends - architectures.known(tx, ends))[:3])
        raise UsageError(f"distances need architectures that the archive has, got {absent}")


def _put(tx: ManagedTransaction, query: str, rows: Mapping[Pair, Mapping[str, Any]]) -> int:
    groups: dict[str, list[dict[str, Any]]] = {}
    for (a, b), properties in sorted(rows.items(), key=lambda item: item[0]):
        groups.setdefault(a, []).append({"key": b, "properties": properties})

    if not groups:
        return 0

    table = [{"key": key, "rows": group} for key, group in groups.items()]
    return int(tx.run(query, groups=table).single(strict=True)["written"])
