"""Leases: the exclusive, time-limited hold of a worker on a proposal, and its ends.

    WAITING --take--> RUNNING --finish--> COMPLETE | PRUNED
       ^                 |
       +-- lose, while --+-- lose, at the limit --> FAILED
           attempts are left

A proposal that is PRUNED at a rung may wait again (`archive.queue.successive_halving`).

A transaction writes to a proposal before it tests the state, which locks the proposal. On Neo4j,
where each read sees the latest commits, the write waits for other writers. On ArcadeDB a concurrent
change becomes a conflict at commit, and the later transaction runs again. The new state of a locked
proposal is a `ProposalChange`, decided here without the database; one statement writes any number of them.
Only the server's clock decides, never the caller's.

An expired lease is first marked as suspected, and ends if it is still not renewed a third of its
duration later. After an outage of the server all leases have expired, and the first worker to
return must not take proposals that others are still training.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from archive.database.statements import by_column, follows_from_state, write_all
from archive.errors import LeaseLostError, UsageError
from archive.queue.causes import Cause, MemoryNeed
from archive.store.properties import CURVE, curve_properties
from archive.store.records import Curve, State
from archive.values import as_float, shown, storable

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

Row = Mapping[str, Any]

_CENTURY = 100 * 365 * 86400.0
LOG_LENGTH = 4000
"""Maximum number of characters of a trial's log that are kept with a failed attempt."""
MOST_REFUSALS = 200
"""Most ids in `Proposal.refused_by`: a machine whose trainer restarts for days would add many."""

LOCK = """
UNWIND $ids AS id
MATCH (p:Proposal {id: id})
USING INDEX SEEK p:Proposal(id)
SET p.touched = timestamp()
RETURN p.id AS id, p.architecture AS architecture, p.state AS state, p.token AS token, p.attempts AS attempts,
       p.worker AS worker, timestamp() - p.lease_until AS late, timestamp() - p.suspected AS suspected,
       coalesce(p.lease, 0) / 3 AS grace, coalesce(p.priority, 0.0) AS priority, p.rung AS rung,
       p.rung_values AS rung_values, p.rung_constrained AS rung_constrained, p.refused_by AS refused_by,
       p.memory_bytes AS memory_bytes, p.alone AS alone, keys(p) AS keys
"""

APPLY = f"""
UNWIND $rows AS change
MATCH (p:Proposal {{id: change.id}})
USING INDEX SEEK p:Proposal(id)
SET p += change.properties,
    p.lease_until = CASE WHEN change.lease IS NULL THEN p.lease_until ELSE timestamp() + change.lease END,
    p.suspected = CASE WHEN change.suspect THEN timestamp() END
{follows_from_state("timestamp()")}
RETURN count(*) AS written
"""

# Each MATCH starts from a bound node: with a single pattern, ArcadeDB scans the claims of all
# workers.
END_CLAIMS = """
UNWIND $rows AS row
MATCH (p:Proposal {id: row.id})
USING INDEX SEEK p:Proposal(id)
MATCH (p)<-[c:CLAIMED]-()
WHERE c.token = row.token
SET c.ended = timestamp(), c.outcome = row.outcome, c.reason = row.reason, c.log = row.log, c.cause = row.cause
"""


@dataclass(frozen=True, slots=True)
class End:
    """End of a claim without a result; `outcome` is `failed`, `lost` or `returned`."""

    outcome: str
    reason: str | None = None
    cause: Cause | None = None
    log: str | None = None

    def __post_init__(self) -> None:
        """Keep texts that a server can hold; a trial's texts may have parts of odd file names."""
        for name in ("reason", "log"):
            if (text := getattr(self, name)) is not None:
                object.__setattr__(self, name, storable(text))


@dataclass(frozen=True)
class ProposalChange:
    """A change of a locked proposal.

    Attributes:
        id: Id of the proposal.
        properties: Properties to set; None removes one.
        lease: New duration of the lease in milliseconds, from now on; None leaves its end as it is.
        suspect: Whether to mark the lease as expired but not ended yet.
        claim_end: End of the claim without a result: its token, `outcome`, `reason`, `cause` and
            `log`; None leaves it as it is.
    """

    id: str
    properties: dict[str, Any] = field(default_factory=dict)
    lease: int | None = None
    suspect: bool = False
    claim_end: dict[str, Any] | None = None


def lock(tx: ManagedTransaction, ids: Iterable[str]) -> dict[str, Row]:
    """Lock proposals, in one order for all callers, and return their properties by id.

    Missing ids are left out.
    """
    return by_column(tx.run(LOCK, ids=sorted(set(ids))).data(), "id")


def apply(tx: ManagedTransaction, changes: Sequence[ProposalChange]) -> None:
    """Write changes of locked proposals."""
    if not changes:
        return

    rows = []
    ends = []
    for change in changes:
        rows.append(
            {
                "id": change.id,
                "properties": change.properties,
                "lease": change.lease,
                "suspect": change.suspect,
            }
        )
        if change.claim_end:
            ends.append({"id": change.id, **change.claim_end})

    write_all(tx, APPLY, rows)
    if ends:
        tx.run(END_CLAIMS, rows=ends).consume()


def after(row: Row, change: ProposalChange) -> Row:
    """Return the properties of a locked proposal after a change."""
    kept = {name for name in row["keys"] if change.properties.get(name, "") is not None}
    return {**row, **change.properties, "keys": [*kept, *(change.properties.keys() - kept)]}


def renew(row: Row, token: str, milliseconds: int, curve: Curve | None = None) -> ProposalChange:
    """Renew a lease, and store the curve so far.

    Raises:
        LeaseLostError: The token does not hold the proposal.
    """
    _check_holder(row, token)
    properties = {} if curve is None else curve_properties(curve)
    return ProposalChange(row["id"], {**properties, "lease": milliseconds}, lease=milliseconds)


def finish(row: Row, token: str, state: State) -> ProposalChange:
    """Return the change of a proposal that gets its result (`archive.queue.completion`).

    A worker that has lost its lease may deliver the result, too. The curve moves to the evaluation.
    """
    return ProposalChange(
        row["id"],
        {"state": state.value, "token": token, "reason": None, "cause": None, **without_curve(row)},
    )


def fail(row: Row, token: str, end: End, limit: int, *, retry: bool) -> ProposalChange | None:
    """Return the change of a proposal that its worker could not finish.

    None if the change is recorded already.

    Raises:
        LeaseLostError: Another token holds the proposal, or has finished it.
    """
    # A lost or failed proposal keeps the token of its last worker, which identifies a repeated
    # call.
    if row["token"] == token and row["state"] in (State.WAITING, given_up(row)):
        return None

    _check_holder(row, token)
    return _lose(row, limit, end) if retry else _leave(row, row["attempts"], given_up(row), end)


def exhaust(
    row: Row, token: str, end: End, limit: int, memory: MemoryNeed, largest: int
) -> ProposalChange | None:
    """Return the change of a proposal whose trial ran out of memory.

    None if the change is recorded already.

    It is tried again without neighbours on the device, then on a larger device, and fails after the
    largest.

    Args:
        row: The locked proposal.
        token: Token of the claim.
        end: End of the claim.
        limit: Number of workers that may lose the proposal.
        memory: Memory of the trial.
        largest: Memory of the largest device of the other living workers, in bytes.

    Raises:
        LeaseLostError: Another token holds the proposal, or has finished it.
    """
    if row["token"] == token and row["state"] in (State.WAITING, given_up(row)):
        return None

    _check_holder(row, token)
    needed = max(row["memory_bytes"] or 0, memory.needed)
    if not memory.alone and needed <= memory.capacity:
        properties = {"memory_bytes": needed, "alone": True}
        # Programs other than trainers may share the device each time.
        again = (
            _lose(row, limit, end)
            if row["alone"]
            else _leave(row, row["attempts"], State.WAITING, end)
        )
    elif memory.capacity < largest:
        properties = {"memory_bytes": max(needed, memory.capacity + 1)}
        again = _leave(row, row["attempts"], State.WAITING, end)
    else:
        properties = {"memory_bytes": needed}
        final = replace(
            end,
            reason=f"{end.reason}; alone on the largest device ({memory.capacity / 2**30:.1f} GiB)",
        )
        again = _leave(row, row["attempts"], given_up(row), final)

    return replace(again, properties={**again.properties, **properties})


def release(row: Row, token: str, refusal: End | None = None) -> ProposalChange | None:
    """Return the change that puts a proposal back into the queue without an attempt.

    None if the proposal is there already.

    Args:
        row: The locked proposal.
        token: Token of the claim.
        refusal: Why the worker could not begin; it does not get the proposal again.

    Raises:
        LeaseLostError: Another token holds the proposal, or has finished it.
    """
    if row["token"] == token and row["state"] == State.WAITING:
        return None

    _check_holder(row, token)
    change = _leave(row, row["attempts"], State.WAITING, refusal or End("returned"))
    if refusal is None:
        return change

    others = [worker for worker in row["refused_by"] or () if worker != row["worker"]]
    refused = [*others, row["worker"]][-MOST_REFUSALS:]
    return replace(change, properties={**change.properties, "refused_by": refused})


def expire(row: Row, limit: int) -> ProposalChange | None:
    """Return the change that marks an expired lease, or ends a marked one.

    None if neither is due.
    """
    if row["state"] != State.RUNNING or (row["late"] or 0) <= 0:
        return None

    grace = row["grace"]
    suspected = row["suspected"]
    if grace and (suspected is None or suspected < grace):
        return ProposalChange(row["id"], suspect=True) if suspected is None else None

    reason = f"its lease expired without a report from worker {row['worker']}"
    return _lose(row, limit, End("lost", reason, Cause.LEASE_EXPIRED))


def given_up(row: Row) -> State:
    """Return the final state of a proposal that is not tried again.

    The result of an earlier rung is kept.
    """
    return State.PRUNED if row["rung_values"] else State.FAILED


def without_curve(row: Row) -> dict[str, None]:
    """Return the properties that remove the curve of a locked proposal."""
    return dict.fromkeys(name for name in row["keys"] if name.startswith(CURVE))


def _lose(row: Row, limit: int, end: End) -> ProposalChange:
    """Return the change that takes a proposal from its worker.

    The new state is WAITING, or FAILED once `limit` attempts are lost.
    """
    attempts = row["attempts"] + 1
    if attempts < limit:
        return _leave(row, attempts, State.WAITING, end)

    change = _leave(row, attempts, given_up(row), end)
    reason = f"{end.reason}; given up after {attempts} attempts"
    return replace(change, properties={**change.properties, "reason": reason})


def _leave(row: Row, attempts: int, state: State, end: End) -> ProposalChange:
    """Return the change that takes a proposal from its worker."""
    # The curve of a failed trial stays for diagnosis; a new attempt starts a new curve.
    cleared = without_curve(row) if state is State.WAITING else {}
    cause = None if end.cause is None else end.cause.value
    return ProposalChange(
        row["id"],
        {
            "attempts": attempts,
            "state": state.value,
            "reason": end.reason,
            "cause": cause,
            **cleared,
        },
        claim_end={
            "token": row["token"],
            "outcome": end.outcome,
            "reason": end.reason,
            "cause": cause,
            "log": end.log[-LOG_LENGTH:] if end.log else None,
        },
    )


def _check_holder(row: Row, token: str) -> None:
    if row["state"] != State.RUNNING:
        raise LeaseLostError(row["id"], f"it is {row['state']} by now")

    if row["token"] != token:
        raise LeaseLostError(row["id"], f"worker {row['worker']} holds it")


def milliseconds(seconds: float) -> int:
    """Return the whole milliseconds of a lease, from one to a century.

    Raises:
        UsageError: The length of the lease is no number.
    """
    number = as_float(seconds)
    if number is None or math.isnan(number):
        raise UsageError(f"a lease lasts a number of seconds, got {shown(seconds)}")

    return round(1000 * min(max(number, 0.001), _CENTURY))
