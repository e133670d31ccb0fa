"""Long texts of recorded runs: `(:Proposal)-[:HAS_TEXT]->(:RunText)`.

Readers of a study scan its proposals, and ArcadeDB reads a node as a whole: a difference of its source
files and the end of its output would make a run ten times as long as what is shown of it. So they are
a node of their own, whose id is the id of the proposal. Suggestions, and the records of a dump, have
these texts among the properties of the proposal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from archive.store.properties import read_column

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.database.connection import Connection

TEXTS = ("diff", "log_end")
"""Properties of a `RunText`."""

BATCH = 200
"""Nodes of one transaction: a node may have 80,000 letters."""

PUT = """
UNWIND $rows AS row
MATCH (p:Proposal {id: row.id})
USING INDEX SEEK p:Proposal(id)
MERGE (t:RunText {id: row.id})
SET t.diff = row.diff, t.log_end = row.log_end
MERGE (p)-[:HAS_TEXT]->(t)
"""

# The archives of schema 11 and before.
WITHIN_PROPOSALS = """
MATCH (p:Proposal)
WHERE p.diff IS NOT NULL OR p.log_end IS NOT NULL
RETURN p.id AS id
"""

COPY = """
UNWIND $ids AS id
MATCH (p:Proposal {id: id})
USING INDEX SEEK p:Proposal(id)
WHERE p.diff IS NOT NULL OR p.log_end IS NOT NULL
MERGE (t:RunText {id: id})
SET t.diff = p.diff, t.log_end = p.log_end
MERGE (p)-[:HAS_TEXT]->(t)
"""

REMOVE = """
UNWIND $ids AS id
MATCH (p:Proposal {id: id})
USING INDEX SEEK p:Proposal(id)
SET p.diff = null, p.log_end = null
"""


def split_off(properties: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the properties of a proposal without long texts, and these texts."""
    kept = {}
    texts = {}
    for name, value in properties.items():
        if name in TEXTS:
            texts[name] = value
        else:
            kept[name] = value

    return kept, texts


def put(tx: ManagedTransaction, texts: Mapping[str, Mapping[str, Any]]) -> None:
    """Store the texts of proposals in place of any that they have, within a transaction.

    Args:
        tx: The transaction.
        texts: Texts by name, by the id of their proposal.
    """
    rows = []
    for id_ in sorted(texts):
        rows.append({"id": id_, **dict.fromkeys(TEXTS), **texts[id_]})

    if rows:
        tx.run(PUT, rows=rows).consume()


def move_out_of_proposals(connection: Connection) -> None:
    """Give the texts of runs that an earlier release stored nodes of their own.

    The call may be interrupted, and repeated: a batch is one transaction.
    """
    rows = connection.read(lambda tx: tx.run(WITHIN_PROPOSALS).data())
    ids = sorted(read_column(rows, "id"))
    for begin in range(0, len(ids), BATCH):
        connection.write(partial(_move_some, ids=ids[begin : begin + BATCH]), alone=True)


def _move_some(tx: ManagedTransaction, ids: Iterable[str]) -> None:
    # A queue that stores texts does not need the schema, which loads the driver.
    from archive.store.schema import LOCK_LABEL

    # Neo4j would copy null where another process has moved a text since the nodes were matched.
    tx.run(LOCK_LABEL).consume()
    tx.run(COPY, ids=ids).consume()
    tx.run(REMOVE, ids=ids).consume()
