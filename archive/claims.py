"""Claims: which of the waiting proposals a worker gets, one or several in one transaction.

    queue ──> the head of it, cut into shares ──> one share at random ──> taken, as far as it still waits

The head is as long as the number of claims that may be under way, so that workers do not all reach for the same
nodes; a worker that is alone gets them strictly in order. Nobody takes more than his part of what waits: the last
proposals of a study end at the same time everywhere.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from archive import leases
from archive.leases import Row
from archive.records import Proposal
from archive.rows import proposal_from

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

HEAD = 32
TRIES = 8

QUEUE = """
OPTIONAL MATCH (p:Proposal {state: 'RUNNING'})
WHERE $study IS NULL OR p.study = $study
WITH count(DISTINCT CASE WHEN p.worker <> $worker THEN p.worker END) AS others,
     collect(CASE WHEN p.lease_until < timestamp()
                   AND (p.suspected IS NULL OR p.suspected + coalesce(p.lease, 0) / 3 <= timestamp())
                  THEN p.id END) AS expired
OPTIONAL MATCH (q:Proposal {state: 'WAITING'})
WHERE $study IS NULL OR q.study = $study
WITH others, expired, q.id AS id, q.priority AS priority, q.number AS number
ORDER BY priority DESC, number, id LIMIT $head
RETURN others, expired, collect([id, priority]) AS waiting
"""

HELD = """
MATCH (p:Proposal {state: 'RUNNING'}) WHERE p.token = $token
RETURN properties(p) AS proposal
"""

# The write comes before the test: see `archive.leases`.
TAKE = """
MERGE (w:Worker {id: $worker})
SET w.heartbeat = timestamp()
WITH w
UNWIND $ids AS id
MATCH (p:Proposal {id: id})
SET p.touched = timestamp()
WITH w, p WHERE p.state = 'WAITING'
SET p.state = 'RUNNING', p.worker = $worker, p.token = $token, p.started = timestamp(), p.suspected = null,
    p.lease = $milliseconds, p.lease_until = timestamp() + $milliseconds
CREATE (w)-[:CLAIMED {token: $token, at: timestamp()}]->(p)
RETURN properties(p) AS proposal
"""


@dataclass(frozen=True)
class Wish:
    """One wish for proposals; `token` makes a repetition of it known as such.

    Attributes:
        worker: Who asks.
        token: Of the wish; proves the leases.
        study: Of which study; None for any.
        milliseconds: How long the leases last.
        limit: How many workers may lose a proposal.
        count: Most that are wanted.
    """

    worker: str
    token: str
    study: str | None
    milliseconds: int
    limit: int
    count: int = 1


def claim(tx: ManagedTransaction, wish: Wish, *, again: bool) -> list[Proposal]:
    """Give proposals to a worker, by number; none when nothing is to be had. Expired leases end here.

    Args:
        tx: The transaction.
        wish: Who asks, and for what.
        again: Whether the wish may have been granted before: it then gets what it got.
    """
    if again and (held := _proposals(tx.run(HELD, token=wish.token).data())):
        return held
    for _ in range(TRIES):
        queue = _queue(tx, wish.worker, wish.study, wish.count)
        if queue["expired"] and expire(tx, queue["expired"], wish.limit):
            queue = _queue(tx, wish.worker, wish.study, wish.count)
        if not queue["waiting"]:
            return []
        ids = sorted(_share(queue["waiting"], wish.count, queue["others"]))
        at = {"ids": ids, "worker": wish.worker, "token": wish.token, "milliseconds": wish.milliseconds}
        if taken := _proposals(tx.run(TAKE, at).data()):
            return taken
    return []


def expire(tx: ManagedTransaction, ids: Sequence[str], limit: int) -> int:
    """End those of these leases that have run out, and return how many there were."""
    changes = [change for row in leases.lock(tx, ids).values() if (change := leases.expire(row, limit))]
    leases.apply(tx, changes)
    return sum(not change.suspect for change in changes)


def expired(tx: ManagedTransaction, study: str | None) -> list[str]:
    """Return the ids of the proposals whose lease has run out."""
    return list(_queue(tx, "", study, 1)["expired"])


def _queue(tx: ManagedTransaction, worker: str, study: str | None, count: int) -> Row:
    head = max(HEAD, 8 * count)
    row = tx.run(QUEUE, study=study, worker=worker, head=head).single(strict=True).data()
    # An empty queue is one row of nulls, for an optional match has no other way to say so.
    return {**row, "waiting": [tuple(entry) for entry in row["waiting"] if entry[0] is not None]}


def _share(waiting: Sequence[tuple[str, float]], count: int, others: int) -> list[str]:
    """Choose neighbours in the queue, which never reach past the highest priority."""
    highest = waiting[0][1]
    head = [id_ for id_, priority in waiting if priority == highest]
    size = max(1, min(count, len(head) // (1 + others)))
    return random.choice([head[at : at + size] for at in range(0, len(head), size)][: 1 + 2 * others])


def _proposals(rows: Sequence[dict[str, Any]]) -> list[Proposal]:
    return sorted((proposal_from(row["proposal"]) for row in rows), key=lambda proposal: (proposal.number, proposal.id))
