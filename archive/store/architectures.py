"""Architectures in the archive: one node per network and one per layer.

A network that several agents propose is stored once.

An architecture is stored in its canonical order, in one transaction with all its layers and edges,
so an existing node is complete. A property of the node holds the whole network as one text
(`archive.architecture.compact`), for readers of whole networks. The graph of a stored architecture
never changes, so readers may cache it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from archive.architecture import compact
from archive.architecture.aten.vocabulary import NAME as TORCH
from archive.architecture.graph import Architecture, Layer
from archive.architecture.layer_mass import total_mass
from archive.architecture.operations import vocabulary
from archive.database.statements import lock
from archive.errors import InvalidArchitectureError, UnknownNameError, UsageError
from archive.store.properties import read_column

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.database.connection import Connection

Item = TypeVar("Item")
Row = dict[str, Any]

# Names that all layers have: an attribute of such a name is stored with the prefix.
_OWN = frozenset(["index", "op", "units", "stride", "block", "module"])
_PREFIX = "attribute_"
# Attributes that may have megabytes and that no query needs. The network's text has them.
_LARGE = frozenset(["content"])

# Measured: larger batches are not faster, and hold locks and memory for longer.
BATCH = 250
BATCH_LAYERS = 10_000
"""Most layers of a transaction of several networks.

A transaction is in the heap of the embedded server until it is committed: 150,000 layers need more
than its 512 MiB.
"""
READ_BATCH = 5000
CONVERTED = 20
# Maximum number of cached architectures, about 1.5 kB each: a large history is read once, not for
# every proposal.
CACHED = 250_000

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

# The same for one network whose layers have attributes, and whose edges may have arguments. Parameters
# of their own, because ArcadeDB hashes whatever stands beside `collect` for every layer.
ADD_WITH_ATTRIBUTES = """
CREATE (a:Architecture {key: $key})
SET a += $properties
WITH a
UNWIND $layers AS layer
CREATE (a)-[:HAS_LAYER]->(l:Layer)
SET l += layer
WITH collect(l) AS layers
UNWIND $edges AS edge
WITH layers[edge.tail] AS tail, layers[edge.head] AS head, edge.arguments AS arguments
CREATE (tail)-[:FEEDS {arguments: arguments}]->(head)
"""

ADD_BLOCKS = """
MATCH (a:Architecture {key: $key})
USING INDEX SEEK a:Architecture(key)
UNWIND $blocks AS block
CREATE (a)-[:HAS_BLOCK]->(b:Block)
SET b += block
"""

WITHOUT_BLOCKS = """
MATCH (a:Architecture {space: 'torch'})
WHERE NOT EXISTS { (a)-[:HAS_BLOCK]->() }
RETURN a.key AS key ORDER BY key LIMIT $limit
"""

# A list has the block of each layer, by the index of the layer.
PUT_INTO_BLOCKS = """
MATCH (a:Architecture {key: $key})
USING INDEX SEEK a:Architecture(key)
MATCH (a)-[:HAS_LAYER]->(l:Layer)
SET l.block = $block_of[l.index]
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
RETURN collect([a.key, a.space, a.functional_key, a.code]) AS rows
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
       [(a)<-[:MORPHED_INTO]-(parent) | parent.key] AS parents,
       [(a)-[:MORPHED_INTO]->(child:Architecture) | child.key] AS children
"""


class Architectures:
    """Writer and reader of architectures. Safe to share between threads."""

    def __init__(self, connection: Connection) -> None:
        """Read and write through this connection."""
        self._connection = connection
        self._cached: OrderedDict[str, Architecture] = OrderedDict()
        self._guard = Lock()

    def add(self, architectures: Iterable[Architecture]) -> int:
        """Store architectures with their layers and edges; existing ones do not change.

        Each batch is one transaction, so an interrupted call has stored whole architectures, and
        repeating the call stores the rest.

        Returns:
            Number of networks in the call, isomorphic ones counted once.
        """
        by_key = {architecture.key: architecture for architecture in architectures}
        for part in _parts(by_key[key] for key in sorted(by_key)):
            self._connection.write(partial(store, architectures=part), alone=True)

        return len(by_key)

    def get(self, key: str) -> Architecture:
        """Return the architecture of a key, in canonical order.

        Raises:
            UnknownNameError: The archive has no architecture with this key.
        """
        networks = self.get_many([key])
        if key not in networks:
            raise self._unknown_key_error(key)

        return networks[key]

    def get_many(self, keys: Iterable[str]) -> dict[str, Architecture]:
        """Return the architectures of the existing keys.

        There is one read for each 5,000 that are not cached.
        """
        requested = list(dict.fromkeys(keys))
        with self._guard:
            networks = {key: self._cached[key] for key in requested if key in self._cached}

        for part in batched([key for key in requested if key not in networks], READ_BATCH):
            read = self._connection.read(partial(load, keys=part))
            networks.update(read)
            self._cache(read)

        return networks

    def get_readable(self, keys: Iterable[str]) -> dict[str, Architecture]:
        """Return the architectures that this process can read, which may lack a plug-in space.

        Raises:
            UsageError: It can read none of them.
        """
        requested = list(keys)
        try:
            return self.get_many(requested)
        except UsageError:
            networks: dict[str, Architecture] = {}
            for key in requested:
                with suppress(UsageError):
                    networks[key] = self.get(key)

            if not networks:
                raise

            return networks

    def remember(self, rows: Iterable[Sequence[Any]]) -> None:
        """Cache networks that another statement has read.

        Each has key, space, functional key and code.
        """
        networks = {}
        for row in rows:
            # Reading it again raises the error for the caller that needs it.
            with suppress(UsageError):
                networks[row[0]] = compact.decode(*row)

        self._cache(networks)

    def keep(self, networks: Iterable[Architecture]) -> None:
        """Cache networks that were just stored, as a read returns them.

        Large networks, of operations, are read.
        """
        self.remember(
            (network.key, network.space, network.functional_key, compact.encode(network.canonical))
            for network in networks
            if not network.arguments
        )

    def find(self, prefix: str) -> str:
        """Return the only key that begins with a prefix.

        Raises:
            UnknownNameError: No key begins with it.
            UsageError: Several keys begin with it.
        """
        keys = self._beginning_with(prefix)
        if prefix in keys:
            return prefix

        if not keys:
            raise self._unknown_key_error(prefix)

        if len(keys) > 1:
            shown = ", ".join(key[: len(prefix) + 4] for key in keys[:4]) + (
                ", …" if len(keys) > 4 else ""
            )
            raise UsageError(f"several architectures begin with {prefix!r}: {shown}")

        return keys[0]

    def details(self, key: str) -> dict[str, Any]:
        """Return a node's properties with the keys of its morph `parents` and `children`.

        Raises:
            UnknownNameError: The archive has no architecture with this key.
        """
        row = self._connection.read(lambda tx: tx.run(DETAILS, key=key).single())
        if row is None:
            raise self._unknown_key_error(key)

        properties = {name: value for name, value in row["properties"].items() if name != "code"}
        return {
            **properties,
            "parents": sorted(row["parents"]),
            "children": sorted(row["children"]),
        }

    def record_morph(
        self, parent: Architecture, child: Architecture, operations: Sequence[str]
    ) -> None:
        """Store two architectures and the operations from parent to child.

        The first operations of a pair stay.
        """

        def work(tx: ManagedTransaction) -> None:
            store(tx, [parent, child])
            morph(tx, [(parent.key, child.key, operations)])

        self._connection.write(work)

    def _unknown_key_error(self, key: str) -> UnknownNameError:
        """Return the error of a key that no network has.

        It names no other keys but those with a slip.
        """
        similar = get_close_matches(key, self._beginning_with(key[:4]))
        none = (
            "no network has a key that begins so"
            if self._beginning_with("")
            else "the archive has none yet"
        )
        return UnknownNameError("architecture", key, similar, none)

    def _beginning_with(self, prefix: str) -> list[str]:
        rows = self._connection.read(lambda tx: tx.run(FIND, prefix=prefix, limit=20).data())
        return read_column(rows, "key")

    def _cache(self, read: Mapping[str, Architecture]) -> None:
        with self._guard:
            self._cached.update(read)
            while len(self._cached) > CACHED:
                self._cached.popitem(last=False)


def _parts(architectures: Iterable[Architecture]) -> Iterator[list[Architecture]]:
    """Cut architectures into lists for one transaction each, of limited number and layers."""
    part: list[Architecture] = []
    layers = 0
    for architecture in architectures:
        if part and (len(part) == BATCH or layers + len(architecture.layers) > BATCH_LAYERS):
            yield part
            part = []
            layers = 0

        part.append(architecture)
        layers += len(architecture.layers)

    if part:
        yield part


def batched(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Cut items into lists of at most this size."""
    iterator = iter(items)
    while part := list(islice(iterator, size)):
        yield part


def prepare(architectures: Iterable[Architecture]) -> None:
    """Compute canonical forms in advance, before a transaction.

    The transaction and the transactions that wait for it are not delayed.

    Raises:
        InvalidArchitectureError: A network has parameters beside it: they belong to a proposal.
    """
    for architecture in architectures:
        if architecture.configuration:
            raise InvalidArchitectureError(
                "an archive stores a network alone, and the parameters beside it with a proposal: "
                "give member.network"
            )

        _ = architecture.canonical.functional_key


def store(tx: ManagedTransaction, architectures: Iterable[Architecture]) -> None:
    """Store architectures within a transaction, skipping existing ones.

    If another transaction stores one of them at the same time, this one has to run again, because
    keys are unique.
    """
    # Other spaces have no outlines, and few commands store networks.
    from archive.architecture.outline.summary import block_rows

    by_key = {architecture.key: architecture for architecture in architectures}
    existing = known(tx, by_key)
    networks = [by_key[key].canonical for key in sorted(by_key) if key not in existing]
    plain = [_row(network) for network in networks if not _is_detailed(network)]
    if plain:
        tx.run(ADD, rows=plain).consume()

    for network in networks:
        # One network in a statement, because such a network may have thousands of layers.
        if _is_detailed(network):
            tx.run(ADD_WITH_ATTRIBUTES, _row_with_attributes(network)).consume()

        if network.space == TORCH:
            tx.run(ADD_BLOCKS, key=network.key, blocks=block_rows(network)).consume()


def add_missing_blocks(tx: ManagedTransaction) -> int:
    """Store the blocks of some imported networks without any, and return how many those are.

    Releases before schema version 10 stored none.
    """
    from archive.architecture.outline.summary import block_of_layers, block_rows

    keys = read_column(tx.run(WITHOUT_BLOCKS, limit=CONVERTED), "key")
    for network in load(tx, keys).values():
        tx.run(ADD_BLOCKS, key=network.key, blocks=block_rows(network)).consume()
        block_of = block_of_layers(network)
        listed = [block_of.get(u) for u in range(len(network.layers))]
        tx.run(PUT_INTO_BLOCKS, key=network.key, block_of=listed).consume()

    return len(keys)


def known(tx: ManagedTransaction, keys: Iterable[str]) -> set[str]:
    """Return the stored ones among these keys, within a transaction."""
    return set(read_column(tx.run(KNOWN, keys=list(keys)), "key"))


def load(tx: ManagedTransaction, keys: Sequence[str]) -> dict[str, Architecture]:
    """Read architectures within a transaction, by key."""
    # One list, because the driver spends more time on a row than on its content.
    rows = tx.run(READ, keys=list(keys)).single(strict=True)["rows"]
    return {row[0]: compact.decode(*row) for row in rows}


def morph(tx: ManagedTransaction, morphs: Iterable[tuple[str, str, Sequence[str]]]) -> None:
    """Store morphisms within a transaction: (parent key, child key, operations)."""
    named = sorted(
        (parent, child, list(operations)) for parent, child, operations in morphs if parent != child
    )
    rows = []
    for parent, child, operations in named:
        rows.append({"parent": parent, "child": child, "operations": operations})

    if rows:
        lock(tx, "Architecture", {parent for parent, _, _ in named})
        tx.run(MORPH, rows=rows).consume()


def _is_detailed(architecture: Architecture) -> bool:
    """Return whether the settings of the layers are stored as properties of their nodes."""
    return bool(architecture.arguments or vocabulary(architecture.space).settings)


def _row(architecture: Architecture) -> Row:
    """Return the row of a network in canonical order: its properties, layers and edges."""
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
        "edges": list(map(list, architecture.edges)),
    }


def _row_with_attributes(architecture: Architecture) -> Row:
    """Return the row of a network whose layers have attributes; its edges may have arguments."""
    from archive.architecture.outline.summary import block_of_layers

    whole = _row(architecture)
    block_of = block_of_layers(architecture) if architecture.space == TORCH else {}
    layers = []
    for row, layer in zip(whole["layers"], architecture.layers, strict=True):
        names = {"block": block_of.get(row["index"]), "module": layer.name or None}
        layers.append({**row, **names, **_properties(layer)})

    edges = []
    for tail, head in architecture.edges:
        used = architecture.argument_of.get((tail, head))
        arguments = None if used is None else list(used)
        edges.append({"tail": tail, "head": head, "arguments": arguments})

    return {**whole, "layers": layers, "edges": edges}


def _properties(layer: Layer) -> dict[str, Any]:
    """Return the attributes of a layer as properties of its node."""
    properties: dict[str, Any] = {}
    for name, value in layer.attributes.items():
        if name in _LARGE:
            continue

        key = _PREFIX + name if name in _OWN else name
        properties[key] = list(value) if isinstance(value, tuple) else value

    return properties
