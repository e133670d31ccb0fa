"""Cancellation of proposals, and retries of cancelled and of failed ones.

    WAITING | RUNNING  --cancel-->  FAILED with the reason "cancelled"      PRUNED where an earlier rung has a result
    FAILED             --retry--->  WAITING with all its attempts           also PRUNED that did not reach its rung

A cancelled proposal is no failure: it uses nothing of the budget, agents learn nothing from it, and
it is not one of the failures after which a search gives up. Its network is not proposed again in
the study, but can be retried.

A running proposal loses its lease. Its trainer stops the trial at once where it has the same home
(`archive.store.wake_up`), and otherwise within seconds, at its next report or look at its leases. A
result that arrives in spite of that is kept, and the proposal is COMPLETE: whichever of completion
and cancellation is committed first, no finished training is lost.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from archive.database.statements import by_column
from archive.errors import ProposalStateError, UnknownNameError
from archive.queue import leases
from archive.queue.leases import ProposalChange, Row
from archive.store.records import CANCELLED, State, is_cancelled

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.database.connection import Connection

# Read after the lock: the change is decided on these values.
REASONS = """
UNWIND $ids AS id
MATCH (p:Proposal {id: id})
USING INDEX SEEK p:Proposal(id)
RETURN p.id AS id, p.reason AS reason, p.cancelled AS cancelled, p.retried AS retried,
       p.change_token AS change_token, timestamp() AS now
"""

REASON_LENGTH = 1000
"""Maximum number of characters of a user's reason that are kept."""


def cancel(connection: Connection, ids: Sequence[str], reason: str | None = None) -> list[bool]:
    """Cancel proposals in one transaction: all of them, or none where one is refused.

    Args:
        connection: Connection to the archive.
        ids: Ids of the proposals.
        reason: Reason for other users; it is recorded after the word "cancelled".

    Returns:
        For each id, whether this call cancelled it; False where it was cancelled before.

    Raises:
        ProposalStateError: One has a result, or has failed.
        UnknownNameError: There is no proposal of an id.
    """
    text = CANCELLED if not reason else f"{CANCELLED}: {reason[:REASON_LENGTH]}"

    def change(row: Row) -> ProposalChange | None:
        return _cancel(row, text)

    return _change_all(connection, ids, change)


def retry(connection: Connection, ids: Sequence[str]) -> list[bool]:
    """Put proposals that failed or were cancelled back into the queue.

    If one is refused, none is put back.

    A retried proposal counts towards the budget again, even beyond it: the caller asked for this
    one.

    Returns:
        For each id, whether this call put it back; False where it waits already.

    Raises:
        ProposalStateError: One is running, or has a result.
        UnknownNameError: There is no proposal of an id.
    """
    return _change_all(connection, ids, _retry)


def _change_all(
    connection: Connection, ids: Sequence[str], decide: Callable[[Row], ProposalChange | None]
) -> list[bool]:
    # By its token, a second run of the transaction knows the changes of the first, whose
    # acknowledgement was lost.
    token = uuid.uuid4().hex

    def work(tx: ManagedTransaction) -> set[str]:
        changed = set[str]()
        changes = []
        for id_, row in sorted(_lock_proposals(tx, ids).items()):
            change = decide(row)
            if change is not None:
                properties = {**change.properties, "change_token": token}
                changes.append(replace(change, properties=properties))

            if change is not None or row["change_token"] == token:
                changed.add(id_)

        leases.apply(tx, changes)
        return changed

    changed = connection.write(work) if ids else set()
    return [id_ in changed for id_ in ids]


def _lock_proposals(tx: ManagedTransaction, ids: Sequence[str]) -> Mapping[str, Row]:
    """Lock proposals and return their properties.

    Raises:
        UnknownNameError: There is no proposal of an id.
    """
    locked = leases.lock(tx, ids)
    for id_ in ids:
        if id_ not in locked:
            raise UnknownNameError("proposal", id_, (), "archive study show lists those of a study")

    about = by_column(tx.run(REASONS, ids=sorted(locked)).data(), "id")
    return {id_: {**row, **about[id_]} for id_, row in locked.items()}


def _cancel(row: Row, reason: str) -> ProposalChange | None:
    state = State(row["state"])
    if is_cancelled(state, row["reason"]):
        return None

    if state not in (State.WAITING, State.RUNNING):
        what = "has failed" if state is State.FAILED else "has its result"
        raise ProposalStateError(row["id"], state.value, f"cannot be cancelled: it {what}")

    properties = {
        "state": leases.given_up(row).value,
        "reason": reason,
        "cause": None,
        "cancelled": [*(row["cancelled"] or ()), row["now"]],
    }
    end = {
        "token": row["token"],
        "outcome": CANCELLED,
        "reason": reason,
        "cause": None,
        "log": None,
    }
    return ProposalChange(row["id"], properties, claim_end=end if state is State.RUNNING else None)


def _retry(row: Row) -> ProposalChange | None:
    state = State(row["state"])
    if state is State.WAITING:
        return None

    # A promotion that was given up leaves the result of the rung before, and the number of the rung
    # that it missed.
    missed = state is State.PRUNED and len(row["rung_values"] or ()) == (row["rung"] or 0) > 0
    if state is not State.FAILED and not missed:
        what = "is being trained" if state is State.RUNNING else "has its result"
        raise ProposalStateError(row["id"], state.value, f"cannot be tried again: it {what}")

    properties = {
        "state": State.WAITING.value,
        # The worker or the device that could not train it may have been repaired.
        **dict.fromkeys(("reason", "cause", "refused_by", "memory_bytes", "alone")),
        "attempts": 0,
        "retried": [*(row["retried"] or ()), row["now"]],
    }
    return ProposalChange(row["id"], {**properties, **leases.without_curve(row)})
