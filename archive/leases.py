"""Leases: how one proposal is held by one worker at a time, and what becomes of it.

    WAITING --take--> RUNNING --finish--> COMPLETE | PRUNED
       ^                 |
       +-- lose, while --+-- lose, at the limit --> FAILED
           attempts are left

Each function runs inside the caller's transaction and may run again from the start of that transaction. A
proposal is locked by writing to it before its state is tested: on Neo4j, which reads what is committed at the
moment of each read, the write waits for other writers; on the embedded server it makes a concurrent change
a conflict at commit, and the loser starts again. What decides is the server's clock, never the caller's.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from archive.errors import LeaseLostError, UnknownNameError
from archive.records import Curve, Proposal, State
from archive.rows import CURVE, curve_properties, proposal_from

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

Row = Mapping[str, Any]

HEAD = 32
TRIES = 8

LOCK = """
MATCH (p:Proposal {id: $id})
SET p.touched = timestamp()
RETURN p.id AS id, p.state AS state, p.token AS token, p.attempts AS attempts, p.worker AS worker,
       p.state = 'RUNNING' AND p.lease_until < timestamp() AS expired, keys(p) AS keys
"""

QUEUE = """
OPTIONAL MATCH (p:Proposal {state: 'RUNNING'})
WHERE $study IS NULL OR p.study = $study
WITH count(p) AS running, collect(CASE WHEN p.lease_until < timestamp() THEN p.id END) AS expired
OPTIONAL MATCH (q:Proposal {state: 'WAITING'})
WHERE $study IS NULL OR q.study = $study
WITH running, expired, q.id AS id, q.priority AS priority, q.number AS number
ORDER BY priority DESC, number, id LIMIT $head
RETURN running, expired, collect([id, priority]) AS waiting
"""

HELD = """
MATCH (p:Proposal {state: 'RUNNING'}) WHERE p.token = $token
RETURN properties(p) AS proposal
"""

# The write comes before the test: see above.
TAKE = """
MATCH (p:Proposal {id: $id})
SET p.touched = timestamp()
WITH p WHERE p.state = 'WAITING'
MERGE (w:Worker {id: $worker})
SET w.heartbeat = timestamp(),
    p.state = 'RUNNING', p.worker = $worker, p.token = $token, p.started = timestamp(),
    p.lease_until = timestamp() + $milliseconds
CREATE (w)-[:CLAIMED {token: $token, at: timestamp()}]->(p)
RETURN properties(p) AS proposal
"""

RENEW = """
MATCH (p:Proposal {id: $id})
SET p += $curve, p.lease_until = timestamp() + $milliseconds
"""

LOSE = """
MATCH (p:Proposal {id: $id})
SET p.attempts = $attempts, p.state = $state, p.reason = $reason,
    p.finished = CASE WHEN $state = 'FAILED' THEN timestamp() END, p += $cleared
"""

FINISH = """
MATCH (p:Proposal {id: $id})
SET p.state = $state, p.token = $token, p.reason = null, p.finished = timestamp(), p += $cleared
"""


@dataclass(frozen=True)
class Wish:
    """One wish for a proposal; `token` makes a repetition of it known as such."""

    worker: str
    token: str
    study: str | None
    milliseconds: int
    limit: int


def claim(tx: ManagedTransaction, wish: Wish, *, again: bool) -> Proposal | None:
    """Give one proposal to a worker; None when nothing is to be had. Expired leases end here.

    Args:
        tx: The transaction.
        wish: Who asks, and for what.
        again: Whether the wish may have been granted before: it then gets what it got.
    """
    if again and (held := tx.run(HELD, token=wish.token).single()):
        return proposal_from(held["proposal"])
    for _ in range(TRIES):
        queue = _queue(tx, wish.study)
        if queue["expired"]:
            expire(tx, queue["expired"], wish.limit)
            queue = _queue(tx, wish.study)
        if not queue["waiting"]:
            return None
        chosen = _spread(queue["waiting"], others=queue["running"])
        at = {"id": chosen, "worker": wish.worker, "token": wish.token, "milliseconds": wish.milliseconds}
        if taken := tx.run(TAKE, at).single():
            return proposal_from(taken["proposal"])
    return None


def expire(tx: ManagedTransaction, ids: Sequence[str], limit: int) -> None:
    """End those of these leases that have run out."""
    for id_ in sorted(ids):
        row = locked(tx, id_)
        if row["expired"]:
            lose(tx, row, limit, f"its lease expired without a word from worker {row['worker']}")


def expired(tx: ManagedTransaction, study: str | None) -> list[str]:
    """Return the ids of the proposals whose lease has run out."""
    return list(_queue(tx, study)["expired"])


def renew(tx: ManagedTransaction, id_: str, token: str, milliseconds: int, curve: Curve | None = None) -> None:
    """Lengthen a lease, noting the curve so far.

    Raises:
        LeaseLostError: The token does not hold the proposal.
    """
    row = locked(tx, id_)
    _check_holder(row, token)
    lists = {} if curve is None else curve_properties(curve)
    tx.run(RENEW, id=id_, curve=lists, milliseconds=milliseconds).consume()


def finish(tx: ManagedTransaction, row: Row, token: str, state: State) -> None:
    """Note that a locked proposal has its result; the curve has moved to the evaluation."""
    tx.run(FINISH, id=row["id"], token=token, state=state.value, cleared=_curve_cleared(row)).consume()


def lose(tx: ManagedTransaction, row: Row, limit: int, reason: str) -> None:
    """Take a locked proposal from its holder: back to the queue, or FAILED once `limit` attempts are lost."""
    attempts = row["attempts"] + 1
    end = attempts >= limit
    text = f"{reason}; given up after {attempts} attempts" if end else reason
    state = State.FAILED if end else State.WAITING
    _leave(tx, row, attempts, state, text)


def give_up(tx: ManagedTransaction, row: Row, reason: str) -> None:
    """Note that a locked proposal failed, whatever attempts are left."""
    _leave(tx, row, row["attempts"], State.FAILED, reason)


def fail(tx: ManagedTransaction, id_: str, token: str, reason: str, limit: int, *, retry: bool) -> None:
    """Note why the holder could not finish; the same call again changes nothing.

    Raises:
        LeaseLostError: Another token holds the proposal, or has finished it.
    """
    row = locked(tx, id_)
    # What lost or failed keeps the last holder's token, so a repeated call is known as such.
    if row["token"] == token and row["state"] in (State.WAITING, State.FAILED):
        return
    _check_holder(row, token)
    if retry:
        lose(tx, row, limit, reason)
    else:
        give_up(tx, row, reason)


def release(tx: ManagedTransaction, id_: str, token: str) -> None:
    """Put the holder's proposal back into the queue as if it had never been claimed; a repeated call changes nothing.

    Raises:
        LeaseLostError: Another token holds the proposal, or has finished it.
    """
    row = locked(tx, id_)
    if row["token"] == token and row["state"] == State.WAITING:
        return
    _check_holder(row, token)
    _leave(tx, row, row["attempts"], State.WAITING, None)


def locked(tx: ManagedTransaction, id_: str) -> Row:
    """Lock a proposal and return what it says.

    Raises:
        UnknownNameError: There is no such proposal.
    """
    row = tx.run(LOCK, id=id_).single()
    if row is None:
        raise UnknownNameError("proposal", id_, ())
    return row.data()


def _queue(tx: ManagedTransaction, study: str | None) -> Row:
    row = tx.run(QUEUE, study=study, head=HEAD).single(strict=True).data()
    # An empty queue is one row of nulls, for an optional match has no other way to say so.
    return {**row, "waiting": [tuple(entry) for entry in row["waiting"] if entry[0] is not None]}


def _spread(waiting: Sequence[tuple[str, float]], others: int) -> str:
    """Choose from the head of the queue, strictly in order while nobody else works.

    The head is as long as the number of claims that may be under way, so that workers do not all reach for one
    node; it never reaches past the highest priority.
    """
    highest = waiting[0][1]
    head = [id_ for id_, priority in waiting if priority == highest]
    return random.choice(head[: 1 + 2 * others])


def _check_holder(row: Row, token: str) -> None:
    if row["state"] != State.RUNNING:
        raise LeaseLostError(row["id"], f"it is {row['state']} by now")
    if row["token"] != token:
        raise LeaseLostError(row["id"], f"worker {row['worker']} holds it")


def _leave(tx: ManagedTransaction, row: Row, attempts: int, state: State, reason: str | None) -> None:
    # The curve of a failed trial stays, as the trace of what went wrong; a new attempt starts a new one.
    cleared = _curve_cleared(row) if state is State.WAITING else {}
    parameters = {"id": row["id"], "attempts": attempts, "state": state.value, "reason": reason, "cleared": cleared}
    tx.run(LOSE, parameters).consume()


def _curve_cleared(row: Row) -> dict[str, None]:
    return {name: None for name in row["keys"] if name.startswith(CURVE)}
