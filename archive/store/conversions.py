"""Conversions: changes that a migration makes to stored data.

A conversion works in batches of one transaction each, and continues after an interruption, because
converted nodes no longer match. Its statements run on both servers.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.database.connection import Connection

BATCH = 500
"""Number of nodes in one transaction."""

# Of several processes that migrate at once, one converts at a time: each reads the remaining nodes
# under this lock.
LOCK = "MATCH (m:SchemaMigration) WITH m ORDER BY m.version LIMIT 1 SET m.name = m.name"


def rename_label(connection: Connection, old: str, new: str, key: str) -> None:
    """Rename the label of nodes; their properties and relationships stay.

    ArcadeDB cannot change the label of a node. So a new node with the properties and relationships
    of the old one replaces it; further labels of the old one are not kept.

    Args:
        connection: Connection to the archive.
        old: Present label of the nodes.
        new: Their future label.
        key: Property that identifies a node under both labels. Nodes without it are left unchanged.
    """
    while connection.write(partial(_rename_batch, old=old, new=new, key=key), alone=True):
        pass


def _rename_batch(tx: ManagedTransaction, old: str, new: str, key: str) -> int:
    """Rename the label of some nodes within a transaction; return their number, 0 if none is
    left.
    """
    tx.run(LOCK).consume()
    # The assignment locks the nodes: no other transaction adds a relationship to one that is about
    # to be deleted.
    chosen = (
        f"MATCH (n:{old}) WHERE n.{key} IS NOT NULL WITH n LIMIT $batch SET n.{key} = "
        f"n.{key} RETURN n.{key} AS id"
    )
    ids = sorted({row["id"] for row in tx.run(chosen, batch=BATCH)})
    if not ids:
        return 0

    each = f"UNWIND $ids AS id {_seek('n', old, key)}"
    tx.run(
        f"{each} MERGE (m:{new} {{{key}: id}}) ON CREATE SET m += properties(n)", ids=ids
    ).consume()
    types = [
        row["type"]
        for row in tx.run(f"{each} MATCH (n)-[r]-() RETURN DISTINCT type(r) AS type", ids=ids)
    ]
    for name in types:
        # A type cannot be a parameter. A relationship between two renamed nodes is copied once for
        # each end, and its copies at old nodes are deleted with them.
        for left, right in (("<-", "-"), ("-", "->")):
            ends = (
                f"MATCH (n){left}[r:`{name}`]{right}(other) CREATE "
                f"(m){left}[s:`{name}`]{right}(other)"
            )
            tx.run(
                f"{each} {_seek('m', new, key)} {ends} SET s += properties(r)", ids=ids
            ).consume()

    tx.run(f"{each} DETACH DELETE n", ids=ids).consume()
    return len(ids)


def _seek(node: str, label: str, key: str) -> str:
    """Return the clause that looks a node up by `id`; without the hint, Neo4j may scan
    (`archive.store.schema`).
    """
    return f"MATCH ({node}:{label} {{{key}: id}}) USING INDEX SEEK {node}:{label}({key})"
