"""What is long past: workers that are gone, and proposals whose end is so long ago that nobody asks for details.

A worker is gone when it was not heard of for so long, by the server's clock, and has claimed nothing that is still
open. With it go its claims: what the log of a study tells of who tried a proposal, and why attempts failed. The
proposals, their results and reasons stay, with the name of the worker that ended each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from archive.database.statements import lock

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.database.connection import Connection

HISTORY_SECONDS = 90 * 86_400.0
"""Age of what counts as long past."""

BATCH = 100

GONE = """
MATCH (w:Worker)
WHERE timestamp() - w.heartbeat > $milliseconds AND ($ids IS NULL OR w.id IN $ids)
OPTIONAL MATCH (w)-[:CLAIMED]->(p:Proposal)
WITH w.id AS id, sum(CASE WHEN p.state IN ['WAITING', 'RUNNING'] THEN 1 ELSE 0 END) AS open
WHERE open = 0
RETURN id ORDER BY id
"""

FORGET = """
UNWIND $ids AS id
MATCH (w:Worker {id: id})
USING INDEX SEEK w:Worker(id)
DETACH DELETE w
"""

ENDED = """
MATCH (p:Proposal)
WHERE p.state IN ['COMPLETE', 'PRUNED', 'FAILED'] AND timestamp() - p.finished > $milliseconds
RETURN p.id AS id
"""


def gone(connection: Connection, seconds: float = HISTORY_SECONDS) -> list[str]:
    """Return the ids of the workers that are gone for so long."""
    return connection.read(lambda tx: _gone(tx, seconds, None))


def forget(connection: Connection, workers: Sequence[str], seconds: float = HISTORY_SECONDS) -> list[str]:
    """Forget workers, as far as they are still gone, and return which."""
    forgotten: list[str] = []
    for at in range(0, len(workers), BATCH):
        part = sorted(workers[at : at + BATCH])

        def work(tx: ManagedTransaction, part: Sequence[str] = part) -> list[str]:
            # Whoever is back writes to its node, too: one of the two comes first.
            lock(tx, "Worker", part)
            ids = _gone(tx, seconds, part)
            tx.run(FORGET, ids=ids).consume()
            return ids

        forgotten += connection.write(work)
    return forgotten


def ended(connection: Connection, seconds: float = HISTORY_SECONDS) -> list[str]:
    """Return the ids of the proposals that ended so long ago."""
    rows = connection.read(lambda tx: tx.run(ENDED, milliseconds=round(1000 * seconds)).data())
    return [row["id"] for row in rows]


def _gone(tx: ManagedTransaction, seconds: float, ids: Sequence[str] | None) -> list[str]:
    return [row["id"] for row in tx.run(GONE, milliseconds=round(1000 * seconds), ids=ids).data()]
