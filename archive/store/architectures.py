"""The architectures of the archive: one node a network, one a layer, however many agents find it.

An architecture is stored in its canonical order, in one transaction with all its layers and edges: a node that
exists is whole. The node says the same again as one text (`archive.architecture.compact`), for whoever wants the whole
network. Nothing about its graph ever changes afterwards, so readers keep what they have read.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from archive.architecture import compact
from archive.architecture.graph import Architecture
from archive.architecture.layer_mass import total_mass
from archive.database.statements import lock
from archive.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.database.connection import Connection

Item = TypeVar("Item")

# Measured: beyond a few hundred a transaction gains nothing, and its locks and memory last longer.
BATCH = 250
READ_BATCH = 5000
# About 1.5 kB each: the history of a large archive is read once, not for every proposal.
KEPT = 250_000

ADD = """
UNWIND $rows AS row
CREATE (a:Architecture {key: row.key})
SET a += row.properties
WITH a, row
UNWIND row.layers AS layer
CREATE (a)-[:HAS_LAYER]->(l:Layer {index: layer.index, op: layer.op, units: layer.units, stride: layer.stride})
WITH row.key AS key, row.edges AS edges, collect(l) AS layers
UNWIND edges AS edge
WITH layers[edge[0]] AS tail, layers[edge[1]] AS head
CREATE (tail)-[:FEEDS]->(head)
"""

KNOWN = """
UNWIND $keys AS key
MATCH (a:Architecture {key: key})
USING INDEX SEEK a:Architecture(key)
RETURN a.key AS key
"""

READ = """
UNWIND $keys AS key
MATCH (a:Architecture {key: key})
RETURN collect([a.key, a.space, a.functional_key, a.code]) AS found
"""

FIND = """
MATCH (a:Architecture) WHERE a.key STARTS WITH $prefix
RETURN a.key AS key ORDER BY key LIMIT $limit
"""

MORPH = """
UNWIND $rows AS row
MATCH (parent:Architecture {key: row.parent})
USING INDEX SEEK parent:Architecture(key)
MATCH (child:Architecture {key: row.child})
USING INDEX SEEK child:Architecture(key)
MERGE (parent)-[m:MORPHED_INTO]->(child)
ON CREATE SET m.operations = row.operations
"""

DETAILS = """
MATCH (a:Architecture {key: $key})
RETURN properties(a) AS properties,
       [(parent:Architecture)-[:MORPHED_INTO]->(a) | parent.key] AS parents,
       [(a)-[:MORPHED_INTO]->(child:Architecture) | child.key] AS children
"""


class Architectures:
    """Adds, finds and reads architectures. Safe to share between threads."""

    def __init__(self, connection: Connection) -> None:
        """Read and write through this connection."""
        self._connection = connection
        self._kept: OrderedDict[str, Architecture] = OrderedDict()
        self._guard = Lock()

    def add(self, architectures: Iterable[Architecture]) -> int:
        """Store architectures with their layers and edges; those that are there already stay as they are.

        Each batch is a transaction of its own, so an interrupted call has stored whole architectures, and the
        same call again stores the rest.

        Returns:
            How many networks the call named, isomorphic ones counted once.
        """
        found = {architecture.key: architecture for architecture in architectures}
        for keys in batched(sorted(found), BATCH):
            part = [found[key] for key in keys]
            self._connection.write(partial(store, architectures=part), alone=True)
        return len(found)

    def get(self, key: str) -> Architecture:
        """Return the architecture of a key, in canonical order.

        Raises:
            UnknownNameError: The archive has none of this key.
        """
        found = self.get_many([key])
        if key not in found:
            raise UnknownNameError("architecture", key, self._beginning_with(key[:4]), "the archive has none yet")
        return found[key]

    def get_many(self, keys: Iterable[str]) -> dict[str, Architecture]:
        """Return the architectures of those keys that exist, in one read for each 5,000 not read before."""
        wanted = list(dict.fromkeys(keys))
        with self._guard:
            found = {key: self._kept[key] for key in wanted if key in self._kept}
        for part in batched([key for key in wanted if key not in found], READ_BATCH):
            read = self._connection.read(partial(load, keys=part))
            found.update(read)
            self._keep(read)
        return found

    def get_readable(self, keys: Iterable[str]) -> dict[str, Architecture]:
        """Return those that can be read here, where not every space may be installed.

        Raises:
            UsageError: None of them can.
        """
        wanted = list(keys)
        try:
            return self.get_many(wanted)
        except UsageError:
            found: dict[str, Architecture] = {}
            for key in wanted:
                with suppress(UsageError):
                    found[key] = self.get(key)
            if not found:
                raise
            return found

    def find(self, prefix: str) -> str:
        """Return the one key that begins with a prefix.

        Raises:
            UnknownNameError: No key does.
            UsageError: Several do.
        """
        keys = self._beginning_with(prefix)
        if prefix in keys:
            return prefix
        if not keys:
            raise UnknownNameError("architecture", prefix, self._beginning_with(""), "the archive has none yet")
        if len(keys) > 1:
            shown = ", ".join(key[: len(prefix) + 4] for key in keys[:4]) + (", …" if len(keys) > 4 else "")
            raise UsageError(f"several architectures begin with {prefix!r}: {shown}")
        return keys[0]

    def details(self, key: str) -> dict[str, Any]:
        """Return a node's properties with the keys of its morph `parents` and `children`.

        Raises:
            UnknownNameError: The archive has none of this key.
        """
        row = self._connection.read(lambda tx: tx.run(DETAILS, key=key).single())
        if row is None:
            raise UnknownNameError("architecture", key, self._beginning_with(key[:4]), "the archive has none yet")
        properties = {name: value for name, value in row["properties"].items() if name != "code"}
        return {**properties, "parents": sorted(row["parents"]), "children": sorted(row["children"])}

    def record_morph(self, parent: Architecture, child: Architecture, operations: Sequence[str]) -> None:
        """Store both and note that these operations turned one into the other; the first note of a pair stays."""

        def work(tx: ManagedTransaction) -> None:
            store(tx, [parent, child])
            morph(tx, [(parent.key, child.key, operations)])

        self._connection.write(work)

    def _beginning_with(self, prefix: str) -> list[str]:
        rows = self._connection.read(lambda tx: tx.run(FIND, prefix=prefix, limit=20).data())
        return [row["key"] for row in rows]

    def _keep(self, read: Mapping[str, Architecture]) -> None:
        with self._guard:
            self._kept.update(read)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)


def batched(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Cut items into lists of at most this size."""
    iterator = iter(items)
    while part := list(islice(iterator, size)):
        yield part


def prepare(architectures: Iterable[Architecture]) -> None:
    """Work out what it takes to store them, which nobody else is to wait for within a transaction."""
    for architecture in architectures:
        _ = architecture.canonical


def store(tx: ManagedTransaction, architectures: Iterable[Architecture]) -> None:
    """Store architectures within a transaction, skipping those that are there.

    Where another transaction stores one of them at the same moment, this one has to run again: keys are unique.
    """
    found = {architecture.key: architecture for architecture in architectures}
    there = known(tx, found)
    rows = [_row(found[key].canonical) for key in sorted(found) if key not in there]
    if rows:
        tx.run(ADD, rows=rows).consume()


def known(tx: ManagedTransaction, keys: Iterable[str]) -> set[str]:
    """Return those of these keys that are stored, within a transaction."""
    return {row["key"] for row in tx.run(KNOWN, keys=list(keys))}


def load(tx: ManagedTransaction, keys: Sequence[str]) -> dict[str, Architecture]:
    """Read architectures within a transaction, by key."""
    # One list: the driver takes longer over a row than over what is in it.
    rows = tx.run(READ, keys=list(keys)).single(strict=True)["found"]
    return {row[0]: compact.decode(*row) for row in rows}


def morph(tx: ManagedTransaction, morphs: Iterable[tuple[str, str, Sequence[str]]]) -> None:
    """Note within a transaction what turned parents into children: (parent key, child key, operations)."""
    named = sorted((parent, child, list(operations)) for parent, child, operations in morphs if parent != child)
    rows = [{"parent": parent, "child": child, "operations": operations} for parent, child, operations in named]
    if rows:
        lock(tx, "Architecture", {parent for parent, _, _ in named})
        tx.run(MORPH, rows=rows).consume()


def _row(architecture: Architecture) -> dict[str, Any]:
    return {
        "key": architecture.key,
        "properties": {
            "functional_key": architecture.functional_key,
            "space": architecture.space,
            "depth": architecture.depth,
            "layers": len(architecture.layers),
            "edges": len(architecture.edges),
            "mass": total_mass(architecture),
            "code": compact.encode(architecture),
        },
        "layers": [
            {"index": index, "op": layer.op, "units": layer.units, "stride": layer.stride}
            for index, layer in enumerate(architecture.layers)
        ],
        "edges": [list(edge) for edge in architecture.edges],
    }
