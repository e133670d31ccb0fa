"""Claims: the choice of waiting proposals for a worker, one or several in one transaction.

    queue ──> its head, cut into shares ──> one share at random ──> claimed, as far as it still
    waits

A claim reads first, and writes only if there is something to take: idle workers lock nothing. The
head grows with the number of workers, so that they do not all reach for the same nodes. A single
worker gets proposals strictly in order. A worker never takes more than its share of the queue, so
that the last proposals of a study end at the same time on all workers. Only workers that answer
immediately (table lookups) may claim the whole head.

A claim of one proposal names several candidates, and takes the first that still waits: the head may
be older than the claims of other workers (`archive.queue.claimer`).
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

HEAD = 64
CANDIDATES = 64
"""Candidates of a claim of one proposal: other workers may have claimed the first ones since the
look."""
LONGEST_HEAD = 512
"""Longest head, for this number of workers or more.

A longer one takes more time than the collisions that it avoids.
"""
TRIES = 8
"""Most looks of one claim at the queue.

A further look follows if other workers have claimed all candidates.
"""

OF_ANY = """
MATCH (p:Proposal {state: $state})
USING INDEX SEEK p:Proposal(state)
WHERE ($study IS NULL OR p.study = $study)
"""

# ArcadeDB's index keeps entries of proposals that have left a state, and skips them in each search:
# with a hundred thousand proposals this took 5 ms a search. A study has fewer open proposals. The
# state is in a list because ArcadeDB ignores the hint, and would seek by state.
OF_STUDY = """
MATCH (p:Proposal {open: $study})
USING INDEX SEEK p:Proposal(open)
WHERE p.state IN [$state]
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
AND p.token = $token
SET p.touched = timestamp()
WITH p WHERE p.state = 'RUNNING' AND p.token = $token
SET p.lease_until = timestamp() + p.lease, p.suspected = null
WITH p
OPTIONAL MATCH (s:Study)-[:PROPOSED]->(p)
RETURN properties(p) AS proposal, s.created AS created, null AS network
"""

# The write comes before the test: see `archive.queue.leases`. The test before it only skips
# candidates.
TAKE = """
MERGE (w:Worker {id: $worker})
SET w.heartbeat = timestamp()
WITH w
UNWIND $ids AS id
MATCH (p:Proposal {id: id})
USING INDEX SEEK p:Proposal(id)
WHERE p.state = 'WAITING'
WITH w, p LIMIT $count
SET p.touched = timestamp()
WITH w, p WHERE p.state = 'WAITING'
SET p.state = 'RUNNING', p.worker = $worker, p.token = $token, p.started = timestamp(), p.suspected = null,
    p.lease = $milliseconds, p.lease_until = timestamp() + $milliseconds
CREATE (w)-[:CLAIMED {token: $token, at: timestamp()}]->(p)
WITH p
OPTIONAL MATCH (s:Study {name: p.study})
USING INDEX SEEK s:Study(name)
OPTIONAL MATCH (a:Architecture {key: p.architecture})
USING INDEX SEEK a:Architecture(key)
RETURN properties(p) AS proposal, s.created AS created, [a.key, a.space, a.functional_key, a.code] AS network
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
        whole: Whether to take the whole head of the queue instead of a fair share. Expired leases
            are then only recovered when the queue is empty, so callers must occasionally claim a
            fair share.
        claim_filter: What the worker can run.
        again: Whether an earlier request with the same token may have been granted, and got no
            answer.
    """

    worker: str
    token: str
    study: str | None
    milliseconds: int
    limit: int
    count: int = 1
    whole: bool = False
    claim_filter: ClaimFilter = field(default_factory=ClaimFilter)
    again: bool = False


@dataclass(frozen=True)
class QueueView:
    """The head of the queue, as a claim reads it.

    Attributes:
        waiting: Id and priority of each waiting proposal, in the order of the queue.
        others: Number of other workers that hold proposals; 0 without a count for a request for the
            whole head.
        expired: Ids of proposals whose lease has expired, as far as the request searches for them.
    """

    waiting: Sequence[tuple[str, float]]
    others: int = 0
    expired: Sequence[str] = ()

    def __bool__(self) -> bool:
        """Whether there is anything to claim, or to put back into the queue."""
        return bool(self.waiting or self.expired)

    def without(self, ids: Sequence[str]) -> QueueView:
        """Return the view without some waiting proposals, and without the expired leases."""
        gone = frozenset(ids)
        return QueueView([entry for entry in self.waiting if entry[0] not in gone], self.others)


@dataclass(frozen=True)
class Taken:
    """A claimed proposal.

    Attributes:
        proposal: The proposal.
        study_created: Creation time of its study, because another study may have the same name by
            now.
        network: Key, space, functional key and code of its network; None where they were not read.
    """

    proposal: Proposal
    study_created: int | None
    network: Sequence[Any] | None = None


def candidates(queue: QueueView, request: ClaimRequest, collisions: int = 0) -> list[str]:
    """Choose waiting proposals of the highest priority at random.

    They are a share, or the candidates for a claim of one.

    Args:
        queue: The head of the queue, with waiting proposals.
        request: The request.
        collisions: Number of times that other workers were faster. Each doubles the part of the
            head to choose from: workers that start together do not know of each other yet.
    """
    highest = queue.waiting[0][1]
    head = [id_ for id_, priority in queue.waiting if priority == highest]
    size = (
        request.count
        if request.whole
        else max(1, min(request.count, len(head) // (1 + queue.others)))
    )
    shares = range(0, len(head), size)
    # At random: on Neo4j, simultaneous claims of the same proposals would wait for one another.
    reach = (
        max(1, len(head) // size)
        if request.whole
        else 1 + 2 * max(queue.others, (1 << collisions) - 1)
    )
    if request.count == 1:
        return _shuffle(head, reach) if reach > 1 else head[:CANDIDATES]

    first = random.choice(shares[:reach])
    return sorted(head[first : first + size])


def take(
    tx: ManagedTransaction, request: ClaimRequest, ids: Sequence[str], *, again: bool
) -> list[Taken]:
    """Claim the first ones of these proposals that still wait, and return them by number.

    Args:
        tx: A transaction, or a session: the work has one statement that writes.
        request: The request.
        ids: The candidates; several workers that claim several at once name them in the order of
            their ids.
        again: Whether the request may have been granted before; the call then returns the proposals
            of that time.
    """
    if again and (taken := held(tx, request)):
        return taken

    parameters = {
        "ids": ids,
        "worker": request.worker,
        "token": request.token,
        "milliseconds": request.milliseconds,
    }
    return _read_taken(tx.run(TAKE, parameters, count=request.count).data())


def held(tx: ManagedTransaction, request: ClaimRequest) -> list[Taken]:
    """Return the proposals that the request was granted before, and renew their leases.

    They are sorted by number.
    """
    parameters = {"study": request.study, "state": State.RUNNING.value, "token": request.token}
    return _read_taken(
        tx.run((OF_ANY if request.study is None else OF_STUDY) + HELD, parameters).data()
    )


def look(
    tx: ManagedTransaction,
    request: ClaimRequest,
    *,
    others: int = 0,
    search: bool = True,
    unmarked: bool = True,
) -> QueueView:
    """Return as much of the queue as a request needs.

    Args:
        tx: A transaction, or a session.
        request: The request.
        others: Number of other workers that hold proposals, by an earlier count: the head grows
            with it.
        search: Whether to count the other workers, and to search their proposals for expired
            leases. A request for the whole head does so only when the queue is empty.
        unmarked: Whether to look, where a study has nothing to claim, for proposals of it that
            another program has put back into the queue without marking them open. It costs time in
            proportion to the archive.
    """
    if request.study is not None and (
        (queue := _look(tx, request, OF_STUDY, others, search)) or not unmarked
    ):
        return queue

    return _look(tx, request, OF_ANY, others, search)


def expire(tx: ManagedTransaction, ids: Sequence[str], limit: int) -> int:
    """End the leases among these that have expired, and return their number."""
    changes = []
    for row in leases.lock(tx, ids).values():
        change = leases.expire(row, limit)
        if change:
            changes.append(change)

    leases.apply(tx, changes)
    return sum(not change.suspect for change in changes)


def expired(tx: ManagedTransaction, study: str | None) -> list[str]:
    """Return the ids of the proposals whose lease has expired."""
    return list(_running(tx, OF_ANY, study, "")["expired"])


def _look(
    tx: ManagedTransaction, request: ClaimRequest, match: LiteralString, others: int, search: bool
) -> QueueView:
    waiting = _waiting(tx, request, match, others)
    # Each round excludes a further study.
    while request.claim_filter.examine(tx, {study_of(id_) for id_, _ in waiting}):
        waiting = _waiting(tx, request, match, others)

    if not search or (request.whole and waiting):
        return QueueView(waiting, others)

    running = _running(tx, match, request.study, request.worker)
    return QueueView(waiting, running["others"], running["expired"])


def _waiting(
    tx: ManagedTransaction, request: ClaimRequest, match: LiteralString, others: int
) -> list[tuple[str, float]]:
    parameters = {"study": request.study, "state": State.WAITING.value, "worker": request.worker}
    head = max(HEAD, 8 * request.count, min((1 + 2 * others) * request.count, LONGEST_HEAD))
    row = tx.run(
        match + WAITING, {**parameters, "head": head, **request.claim_filter.parameters()}
    ).single(strict=True)
    return [(id_, priority) for id_, priority in row["waiting"]]


def _running(
    tx: ManagedTransaction, match: LiteralString, study: str | None, worker: str
) -> Record:
    return tx.run(match + RUNNING, study=study, state=State.RUNNING.value, worker=worker).single(
        strict=True
    )


def _shuffle(head: Sequence[str], reach: int) -> list[str]:
    """Return the first candidates in parts of `reach`, each in random order.

    Of the first parts, none may wait now.
    """
    ids: list[str] = []
    for start in range(0, min(len(head), CANDIDATES), reach):
        part = head[start : start + reach]
        ids += random.sample(part, len(part))

    return ids[:CANDIDATES]


def _read_taken(rows: Sequence[dict[str, Any]]) -> list[Taken]:
    taken = [Taken(proposal_from(row["proposal"]), row["created"], row["network"]) for row in rows]
    return sorted(taken, key=lambda entry: (entry.proposal.number, entry.proposal.id))
