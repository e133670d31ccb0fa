"""Which run is a change of which: `(:Proposal)-[:DERIVED_FROM]->(:Proposal)`.

The relationship follows from the property `Proposal.derived_from`, as `OF` follows from `architecture`:
the property names the parent without a walk, and the relationship is walked, `-[:DERIVED_FROM*]->`. A
parent may be stored after its child: rows of a table, and records of a dump, come in any order. All
writes here may run twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.database.connection import Connection

BATCH = 500
"""Relationships of one transaction."""

# A parent that the archive does not have leaves its row out.
LINK = """
UNWIND $rows AS row
MATCH (p:Proposal {id: row.id})
USING INDEX SEEK p:Proposal(id)
MATCH (parent:Proposal {id: row.derived_from})
USING INDEX SEEK parent:Proposal(id)
MERGE (p)-[:DERIVED_FROM]->(parent)
"""

# Unordered, because ArcadeDB sorts in its heap.
UNLINKED = """
MATCH (p:Proposal)
WHERE p.derived_from IS NOT NULL AND ($study IS NULL OR p.study = $study)
  AND NOT EXISTS { (p)-[:DERIVED_FROM]->() }
RETURN p.id AS id, p.derived_from AS derived_from
"""


def link(tx: ManagedTransaction, rows: Iterable[Mapping[str, Any]]) -> None:
    """Link proposals to those that they are changes of, within a transaction.

    Args:
        tx: The transaction.
        rows: Properties of proposals; those without `derived_from` are left out.
    """
    derived = []
    for row in rows:
        # Nothing comes from itself.
        if row.get("derived_from") not in (None, row["id"]):
            derived.append({"id": row["id"], "derived_from": row["derived_from"]})

    if derived:
        tx.run(LINK, rows=derived).consume()


def link_missing(connection: Connection, study: str | None = None) -> None:
    """Link proposals whose parents were stored after them.

    Args:
        connection: Connection to the archive.
        study: Name of a study; None for all.
    """
    rows = connection.read(lambda tx: tx.run(UNLINKED, study=study).data())
    rows.sort(key=itemgetter("id"))
    for begin in range(0, len(rows), BATCH):
        connection.write(partial(_link_rows, rows=rows[begin : begin + BATCH]), alone=True)


def _link_rows(tx: ManagedTransaction, rows: Sequence[Mapping[str, Any]]) -> None:
    link(tx, rows)
