"""Claims: the choice of waiting proposals for a worker, one or several in one transaction.

    queue ──> its head, cut into shares ──> one share at random ──> claimed, as far as it still waits

The head is as long as the number of claims that may be under way, so that workers do not all reach for the same nodes.
A single worker gets proposals strictly in order. A worker never takes more than its share of the queue, so that the
last proposals of a study end at the same time on all workers. Only workers that answer immediately (table lookups) may
claim the whole head.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, LiteralString

from archive.queue import leases
from archive.queue.capabilities import ClaimFilter
from archive.store.properties import proposal_from, study_of
from archive.store.records import Proposal, State

if TYPE_CHECKING:
    from neo4j import ManagedTransaction, Record

HEAD = 32
TRIES = 8

OF_ANY = """
MATCH (p:Proposal {state: $state})
USING INDEX SEEK p:Proposal(state)
WHERE ($study IS NULL OR p.study = $study)
"""

# ArcadeDB's index keeps entries of proposals that have left a state, and skips them in each search: with a hundred
# thousand proposals this took 10 ms a search. A study has fewer open proposals.
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

# Proposals that the worker can run.
WAITING = """
AND NOT $worker IN coalesce(p.refused_by, []) AND NOT p.study IN $excluded
AND coalesce(p.memory_bytes, 0) <= $memory AND (p.alone IS NULL OR coalesce(p.memory_bytes, 0) <= $alone)
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
class ClaimRequest:
    """A worker's request for proposals; `token` identifies a repetition of the request.

    Attributes:
        worker: Id of the worker.
        token: Token of the request; it proves the leases.
        study: Name of the study; None for any study.
        milliseconds: Duration of the leases.
        limit: Number of workers that may lose a proposal.
        count: Maximum number of proposals.
        whole: Whether to take the whole head of the queue instead of a fair share. Expired leases are then only
            recovered when the queue is empty, so callers must occasionally claim a fair share.
        fit: What the worker can run.
    """

    worker: str
    token: str
    study: str | None
    milliseconds: int
    limit: int
    count: int = 1
    whole: bool = False
    fit: ClaimFilter = field(default_factory=ClaimFilter)


@dataclass(frozen=True)
class QueueView:
    """The head of the queue, as a claim reads it.

    Attributes:
        waiting: Id and priority of each waiting proposal, in the order of the queue.
        others: Number of other workers that hold proposals; 0 without a count for a request for the whole head.
        expired: Ids of proposals whose lease has expired. A request for the whole head does not search for them while
            proposals wait, or shortly after it has searched.
    """

    waiting: Sequence[tuple[str, float]]
    others: int = 0
    expired: Sequence[str] = ()

    def __bool__(self) -> bool:
        """Whether there is anything to claim, or to put back into the queue."""
        return bool(self.waiting or self.expired)


@dataclass(frozen=True)
class Taken:
    """A claimed proposal with the creation time of its study, because another study may have the same name by now."""

    proposal: Proposal
    study_created: int | None


def claim(tx: ManagedTransaction, request: ClaimRequest, *, again: bool, seen: QueueView | None = None) -> list[Taken]:
    """Claim proposals for a worker, and return them by number; none when the queue is empty. Expired leases end here.

    Args:
        tx: The transaction.
        request: The request.
        again: Whether the request may have been granted before; the call then returns the proposals of that time.
        seen: The head of the queue as read a moment ago, which saves the first read.
    """
    if again and (held := _taken(tx.run(HELD, token=request.token).data())):
        return held
    for _ in range(TRIES):
        queue, seen = seen or look(tx, request), None
        if queue.expired and expire(tx, queue.expired, request.limit):
            queue = look(tx, request)
        if not queue.waiting:
            return []
        ids = sorted(_share(queue, request))
        at = {"ids": ids, "worker": request.worker, "token": request.token, "milliseconds": request.milliseconds}
        if taken := _taken(tx.run(TAKE, at).data()):
            return taken
    return []


def look(tx: ManagedTransaction, request: ClaimRequest, *, lost: bool = True) -> QueueView:
    """Return as much of the queue as a request needs.

    Args:
        tx: The transaction.
        request: The request.
        lost: Whether a request for the whole head searches for expired leases when the queue is empty.
    """
    if request.study is not None and ((queue := _look(tx, request, OF_STUDY, lost)) or not lost):
        return queue
    # This search also finds proposals that another program has put back into the queue without marking them open.
    return _look(tx, request, OF_ANY, lost)


def expire(tx: ManagedTransaction, ids: Sequence[str], limit: int) -> int:
    """End the leases among these that have expired, and return their number."""
    changes = [change for row in leases.lock(tx, ids).values() if (change := leases.expire(row, limit))]
    leases.apply(tx, changes)
    return sum(not change.suspect for change in changes)


def expired(tx: ManagedTransaction, study: str | None) -> list[str]:
    """Return the ids of the proposals whose lease has expired."""
    return list(_running(tx, OF_ANY, study, "")["expired"])


def _look(tx: ManagedTransaction, request: ClaimRequest, match: LiteralString, lost: bool) -> QueueView:
    waiting = _waiting(tx, request, match)
    # Each round excludes a further study.
    while request.fit.examine(tx, {study_of(id_) for id_, _ in waiting}):
        waiting = _waiting(tx, request, match)
    if request.whole and (waiting or not lost):
        return QueueView(waiting)
    running = _running(tx, match, request.study, request.worker)
    return QueueView(waiting, running["others"], running["expired"])


def _waiting(tx: ManagedTransaction, request: ClaimRequest, match: LiteralString) -> list[tuple[str, float]]:
    at = {"study": request.study, "state": State.WAITING.value, "worker": request.worker}
    head = max(HEAD, 8 * request.count)
    row = tx.run(match + WAITING, {**at, "head": head, **request.fit.parameters()}).single(strict=True)
    return [(id_, priority) for id_, priority in row["waiting"]]


def _running(tx: ManagedTransaction, match: LiteralString, study: str | None, worker: str) -> Record:
    return tx.run(match + RUNNING, study=study, state=State.RUNNING.value, worker=worker).single(strict=True)


def _share(queue: QueueView, request: ClaimRequest) -> list[str]:
    """Choose neighbouring proposals at random from those of the highest priority."""
    highest = queue.waiting[0][1]
    head = [id_ for id_, priority in queue.waiting if priority == highest]
    size = request.count if request.whole else max(1, min(request.count, len(head) // (1 + queue.others)))
    shares = [head[at : at + size] for at in range(0, len(head), size)]
    # At random: on Neo4j, simultaneous claims of the same proposals would wait for one another.
    return random.choice(shares[: max(1, len(head) // size)] if request.whole else shares[: 1 + 2 * queue.others])


def _taken(rows: Sequence[dict[str, Any]]) -> list[Taken]:
    taken = [Taken(proposal_from(row["proposal"]), row["created"]) for row in rows]
    return sorted(taken, key=lambda one: (one.proposal.number, one.proposal.id))
