"""Cleanup of old records: departed workers, and proposals that ended long ago.

A worker counts as departed when its last heartbeat is older than the limit, by the server's clock,
and none of its claims is of an open proposal. Its claims are deleted with it: the entries of a
study's log about attempts and the reasons of their failures. The proposals, their results and
reasons stay, with the id of the worker that ended each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from archive.database.statements import lock

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.database.connection import Connection

HISTORY_SECONDS = 90 * 86_400.0
"""Default age of the records to clean up."""

BATCH = 100
"""Workers that one transaction deletes."""

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
    """Return the ids of the workers that departed at least this many seconds ago."""
    return connection.read(lambda tx: _gone(tx, seconds, None))


def forget(
    connection: Connection, workers: Sequence[str], seconds: float = HISTORY_SECONDS
) -> list[str]:
    """Delete those of these workers that have not returned, and return their ids."""
    forgotten: list[str] = []
    for at in range(0, len(workers), BATCH):
        part = sorted(workers[at : at + BATCH])

        def work(tx: ManagedTransaction, part: Sequence[str] = part) -> list[str]:
            # A worker that returns writes to its node, too, so one of the two transactions comes
            # first.
            lock(tx, "Worker", part)
            ids = _gone(tx, seconds, part)
            tx.run(FORGET, ids=ids).consume()
            return ids

        forgotten += connection.write(work)

    return forgotten


def ended(connection: Connection, seconds: float = HISTORY_SECONDS) -> list[str]:
    """Return the ids of the proposals that ended at least this many seconds ago."""
    rows = connection.read(lambda tx: tx.run(ENDED, milliseconds=round(1000 * seconds)).data())
    return [row["id"] for row in rows]


def _gone(tx: ManagedTransaction, seconds: float, ids: Sequence[str] | None) -> list[str]:
    return [row["id"] for row in tx.run(GONE, milliseconds=round(1000 * seconds), ids=ids).data()]
