"""Claims: which of the waiting proposals a worker gets, one or several in one transaction.

    queue ──> the head of it, cut into shares ──> one share at random ──> taken, as far as it still waits

The head is as long as the number of claims that may be under way, so that workers do not all reach for the same
nodes; a worker that is alone gets them strictly in order. Nobody takes more than his part of what waits: the last
proposals of a study end at the same time everywhere. Only who answers as fast as he is asked takes all that he can.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, LiteralString

from archive.queue import leases
from archive.store.properties import proposal_from
from archive.store.records import Proposal, State

if TYPE_CHECKING:
    from neo4j import ManagedTransaction, Record

HEAD = 32
TRIES = 8

OF_ANY = """
MATCH (p:Proposal {state: $state})
USING INDEX SEEK p:Proposal(state)
WHERE $study IS NULL OR p.study = $study
"""

# The index of the embedded server keeps what has left a state, and passes over it at each look: a hundred thousand
# proposals took 10 ms of each. A study has fewer.
OF_STUDY = """
MATCH (p:Proposal {open: $study})
USING INDEX SEEK p:Proposal(open)
WHERE p.state = $state
"""

RUNNING = """
RETURN count(DISTINCT CASE WHEN p.worker <> $worker THEN p.worker END) AS others,
       collect(CASE WHEN p.lease_until < timestamp()
                     AND (p.suspected IS NULL OR p.suspected + coalesce(p.lease, 0) / 3 <= timestamp())
                    THEN p.id END) AS expired
"""

WAITING = """
WITH p.id AS id, coalesce(p.priority, 0.0) AS priority, p.number AS number
ORDER BY priority DESC, number, id LIMIT $head
RETURN collect([id, priority]) AS waiting
"""

HELD = """
MATCH (p:Proposal {state: 'RUNNING'})
USING INDEX SEEK p:Proposal(state)
WHERE p.token = $token
OPTIONAL MATCH (s:Study)-[:PROPOSED]->(p)
RETURN properties(p) AS proposal, s.created AS created
"""

# The write comes before the test: see `archive.queue.leases`.
TAKE = """
MERGE (w:Worker {id: $worker})
SET w.heartbeat = timestamp()
WITH w
UNWIND $ids AS id
MATCH (p:Proposal {id: id})
USING INDEX SEEK p:Proposal(id)
SET p.touched = timestamp()
WITH w, p WHERE p.state = 'WAITING'
SET p.state = 'RUNNING', p.worker = $worker, p.token = $token, p.started = timestamp(), p.suspected = null,
    p.lease = $milliseconds, p.lease_until = timestamp() + $milliseconds
CREATE (w)-[:CLAIMED {token: $token, at: timestamp()}]->(p)
WITH p
OPTIONAL MATCH (s:Study)-[:PROPOSED]->(p)
RETURN properties(p) AS proposal, s.created AS created
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
        whole: Whether it need not leave their part to others. Then leases that have run out come back only where
            nothing waits: who wishes for the whole is to wish for his part from time to time.
    """

    worker: str
    token: str
    study: str | None
    milliseconds: int
    limit: int
    count: int = 1
    whole: bool = False


@dataclass(frozen=True)
class Queue:
    """What was found to wait.

    Attributes:
        waiting: The head of the queue: id and priority of each proposal, in the order in which they are to be had.
        others: How many other workers hold proposals; not looked at where one wishes for the whole of what waits.
        expired: Ids of proposals whose lease has run out; there, not looked at while anything waits, nor by who has
            just looked.
    """

    waiting: Sequence[tuple[str, float]]
    others: int = 0
    expired: Sequence[str] = ()

    def __bool__(self) -> bool:
        """Whether there is anything to claim, or to put back into the queue."""
        return bool(self.waiting or self.expired)


@dataclass(frozen=True)
class Taken:
    """A proposal that was claimed, and when its study was made: a name may be another study's by now."""

    proposal: Proposal
    study_created: int | None


def claim(tx: ManagedTransaction, wish: Wish, *, again: bool, seen: Queue | None = None) -> list[Taken]:
    """Give proposals to a worker, by number; none when nothing is to be had. Expired leases end here.

    Args:
        tx: The transaction.
        wish: Who asks, and for what.
        again: Whether the wish may have been granted before: it then gets what it got.
        seen: What was found to wait a moment ago, which saves the first look.
    """
    if again and (held := _taken(tx.run(HELD, token=wish.token).data())):
        return held
    for _ in range(TRIES):
        queue, seen = seen or look(tx, wish), None
        if queue.expired and expire(tx, queue.expired, wish.limit):
            queue = look(tx, wish)
        if not queue.waiting:
            return []
        ids = sorted(_share(queue, wish))
        at = {"ids": ids, "worker": wish.worker, "token": wish.token, "milliseconds": wish.milliseconds}
        if taken := _taken(tx.run(TAKE, at).data()):
            return taken
    return []


def look(tx: ManagedTransaction, wish: Wish, *, lost: bool = True) -> Queue:
    """Look at the queue, and return as much of it as the wish needs.

    Args:
        tx: The transaction.
        wish: Who asks, and for what.
        lost: Whether who wishes for the whole, and finds nothing that waits, looks for leases that have run out.
    """
    if wish.study is not None and ((found := _look(tx, wish, OF_STUDY, lost)) or not lost):
        return found
    # What is not marked as open, for another program has put it back into the queue, is found as well.
    return _look(tx, wish, OF_ANY, lost)


def expire(tx: ManagedTransaction, ids: Sequence[str], limit: int) -> int:
    """End those of these leases that have run out, and return how many there were."""
    changes = [change for row in leases.lock(tx, ids).values() if (change := leases.expire(row, limit))]
    leases.apply(tx, changes)
    return sum(not change.suspect for change in changes)


def expired(tx: ManagedTransaction, study: str | None) -> list[str]:
    """Return the ids of the proposals whose lease has run out."""
    return list(_running(tx, OF_ANY, study, "")["expired"])


def _look(tx: ManagedTransaction, wish: Wish, match: LiteralString, lost: bool) -> Queue:
    head = max(HEAD, 8 * wish.count)
    found = tx.run(match + WAITING, study=wish.study, state=State.WAITING.value, head=head).single(strict=True)
    waiting = [(id_, priority) for id_, priority in found["waiting"]]
    if wish.whole and (waiting or not lost):
        return Queue(waiting)
    running = _running(tx, match, wish.study, wish.worker)
    return Queue(waiting, running["others"], running["expired"])


def _running(tx: ManagedTransaction, match: LiteralString, study: str | None, worker: str) -> Record:
    return tx.run(match + RUNNING, study=study, state=State.RUNNING.value, worker=worker).single(strict=True)


def _share(queue: Queue, wish: Wish) -> list[str]:
    """Choose neighbours in the queue, which never reach past the highest priority."""
    highest = queue.waiting[0][1]
    head = [id_ for id_, priority in queue.waiting if priority == highest]
    size = wish.count if wish.whole else max(1, min(wish.count, len(head) // (1 + queue.others)))
    shares = [head[at : at + size] for at in range(0, len(head), size)]
    # On Neo4j, all who look at once would wait for one another over the same proposals.
    return random.choice(shares[: max(1, len(head) // size)] if wish.whole else shares[: 1 + 2 * queue.others])


def _taken(rows: Sequence[dict[str, Any]]) -> list[Taken]:
    taken = [Taken(proposal_from(row["proposal"]), row["created"]) for row in rows]
    return sorted(taken, key=lambda one: (one.proposal.number, one.proposal.id))
