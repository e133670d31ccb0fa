"""Workers: trainers and other evaluators, their heartbeats and their running trials.

| state   | meaning                                                                               |
|---------|---------------------------------------------------------------------------------------|
| working | a recent heartbeat, and claimed proposals                                             |
| idle    | a recent heartbeat, and no proposal                                                   |
| resting | idle, and claims nothing for a while: trials failed for a reason of its machine       |
| stale   | unresponsive without having left: killed, hung or cut off; its leases expire          |
| left    | ended in an orderly way                                                               |

All durations are measured by the server's clock, so that machines with different clocks are treated
alike.

A worker counts as departed when its last heartbeat is older than the limit, by the server's clock,
and none of its claims is of an open proposal. Its claims are deleted with it: the entries of a
study's log about attempts and the reasons of their failures. The proposals, their results and
reasons stay, with the id of the worker that ended each.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from archive.database.statements import lock
from archive.queue.capabilities import Capabilities

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.database.connection import Connection

WorkerState = Literal["working", "idle", "resting", "stale", "left"]

STALE_SECONDS = 150.0
"""Time without a heartbeat after which a worker counts as stale; a healthy one sends one every 90
s."""
RECENT_SECONDS = 86_400.0
"""Time without a heartbeat after which a worker is not listed by default."""
FLEET = "ARCHIVE_FLEET"
"""Variable with the name of a trainer's fleet, which the fleet's launcher sets."""

BEAT = """
MERGE (w:Worker {id: $id})
SET w += $properties, w.heartbeat = timestamp()
"""

ARRIVE = """
MERGE (w:Worker {id: $id})
SET w += $properties, w.heartbeat = timestamp(), w.started = coalesce(w.started, timestamp()), w.ended = null
"""

REST = """
MATCH (w:Worker {id: $id})
SET w.heartbeat = timestamp(), w.rests_until = timestamp() + $milliseconds, w.rest_reason = $reason
"""

LEAVE = """
MATCH (w:Worker {id: $id})
SET w.heartbeat = timestamp(), w.ended = timestamp()
"""

LEAVE_IDLE = """
UNWIND $ids AS id
MATCH (w:Worker {id: id})
OPTIONAL MATCH (p:Proposal {state: 'RUNNING', worker: id})
WITH w, count(p) AS held WHERE held = 0
SET w.heartbeat = timestamp(), w.ended = timestamp()
"""

LEAVE_SECONDS = 1.0
"""Longest time for storing the end of idle workers: an ending process does not wait for a server
that is away."""

WORKERS = """
MATCH (w:Worker)
WHERE timestamp() - w.heartbeat <= $milliseconds
RETURN properties(w) AS worker, timestamp() - w.heartbeat AS silent,
       coalesce(w.ended, timestamp()) - w.started AS age,
       w.rests_until - timestamp() AS rest
ORDER BY w.started, w.id
"""

LARGEST = """
MATCH (w:Worker)
WHERE w.ended IS NULL AND timestamp() - w.heartbeat <= $milliseconds
RETURN coalesce(max(w.memory_bytes), 0) AS bytes
"""

RUNNING = """
MATCH (p:Proposal {state: 'RUNNING'})
RETURN p.id AS proposal, p.study AS study, p.architecture AS architecture, p.worker AS worker,
       p.attempts AS attempts, p.curve_epoch AS epochs, timestamp() - p.started AS since,
       p.lease_until - timestamp() AS lease
ORDER BY p.started, p.id
"""


@dataclass(frozen=True)
class RunningTrial:
    """A trial that a trainer runs.

    Attributes:
        proposal: Id of the proposal.
        study: Name of the study.
        architecture_key: Key of the architecture.
        attempt: 1 for the first.
        epochs: Epochs reported so far.
        seconds: Since it was claimed.
        lease_seconds: Until its lease ends; negative when it has.
    """

    proposal: str
    study: str
    architecture_key: str
    attempt: int
    epochs: int
    seconds: float
    lease_seconds: float


@dataclass(frozen=True)
class WorkerStatus:
    """Status of a worker.

    Attributes:
        id: Unique id.
        state: State, as described at the head of the module.
        host: Name of its machine.
        pid: Process id on that machine.
        device: Device for training.
        slots: Number of trials at a time.
        study: The one study that it serves; None for any study.
        seconds: Time from its start to its orderly end, or until now; None where that is not on
            record.
        silent_seconds: Time since the last heartbeat.
        trials: Running trials, the oldest first.
        rest_reason: Reason of the failure after which it is resting; None in other states.
        devices: Its devices, each with the name of the hardware.
        fleet: Name of the fleet whose launcher started it; None for a trainer that was started by
            hand.
        capabilities: Tasks, spaces and recipes that it can run, and its memory.
    """

    id: str
    state: WorkerState
    host: str | None
    pid: int | None
    device: str | None
    slots: int | None
    study: str | None
    seconds: float | None
    silent_seconds: float
    trials: tuple[RunningTrial, ...]
    rest_reason: str | None = None
    devices: tuple[str, ...] = ()
    fleet: str | None = None
    capabilities: Capabilities = field(default_factory=Capabilities)

    @property
    def trainer(self) -> bool:
        """Whether it is a trainer, rather than a program that asks and tells.

        Only a trainer has slots.
        """
        return self.slots is not None

    @property
    def alive(self) -> bool:
        """Whether it is working, idle or resting."""
        return self.state in ("working", "idle", "resting")


def beat(connection: Connection, worker: str, **properties: str | None) -> None:
    """Store a heartbeat of a worker, with any further properties."""
    connection.write(lambda tx: tx.run(BEAT, id=worker, properties=properties).consume())


def arrive(connection: Connection, worker: str, **properties: str | int | list[str] | None) -> None:
    """Store the start of a worker, with its properties."""
    connection.write(lambda tx: tx.run(ARRIVE, id=worker, properties=properties).consume())


def rest(connection: Connection, worker: str, seconds: float, reason: str) -> None:
    """Store that a worker pauses for so many seconds, and the failure that made it pause."""
    milliseconds = round(1000 * seconds)
    connection.write(
        lambda tx: tx.run(REST, id=worker, milliseconds=milliseconds, reason=reason).consume()
    )


def leave(connection: Connection, worker: str) -> None:
    """Store the orderly end of a worker, so that it does not become stale."""
    connection.write(lambda tx: tx.run(LEAVE, id=worker).consume())


def leave_idle(connection: Connection, ids: Collection[str]) -> None:
    """Store the orderly end of those workers that hold no proposal.

    Another program may tell the results of others.
    """
    if ended := sorted(ids):
        connection.write(lambda tx: tx.run(LEAVE_IDLE, ids=ended).consume(), patience=LEAVE_SECONDS)


def largest_memory(tx: ManagedTransaction) -> int:
    """Return the memory of the largest device of the living workers, in bytes."""
    return int(
        tx.run(LARGEST, milliseconds=round(1000 * STALE_SECONDS)).single(strict=True)["bytes"]
    )


def statuses(
    connection: Connection,
    *,
    stale_seconds: float = STALE_SECONDS,
    recent_seconds: float = RECENT_SECONDS,
) -> list[WorkerStatus]:
    """Return the workers with a heartbeat within `recent_seconds`, in the order of their start.

    Args:
        connection: Connection to the archive.
        stale_seconds: Time without a heartbeat after which a worker is stale.
        recent_seconds: Time without a heartbeat after which it is left out.
    """
    milliseconds = round(1000 * recent_seconds)

    def work(tx: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        return tx.run(WORKERS, milliseconds=milliseconds).data(), tx.run(RUNNING).data()

    workers, running = connection.read(work)
    trials: dict[str, list[RunningTrial]] = {}
    for row in running:
        trials.setdefault(row["worker"], []).append(_trial(row))

    return [
        _status(row, tuple(trials.get(row["worker"]["id"], ())), stale_seconds) for row in workers
    ]


def _trial(row: Mapping[str, Any]) -> RunningTrial:
    return RunningTrial(
        proposal=row["proposal"],
        study=row["study"],
        architecture_key=row["architecture"],
        attempt=(row["attempts"] or 0) + 1,
        epochs=(row["epochs"] or [0])[-1],
        seconds=max(0, row["since"]) / 1000,
        lease_seconds=row["lease"] / 1000,
    )


def _status(
    row: Mapping[str, Any], trials: tuple[RunningTrial, ...], stale_seconds: float
) -> WorkerStatus:
    worker = row["worker"]
    silent = max(0, row["silent"]) / 1000
    state: WorkerState
    if worker.get("ended") is not None:
        state = "left"
    elif silent > stale_seconds:
        state = "stale"
    elif trials:
        state = "working"
    else:
        state = "resting" if (row["rest"] or 0) > 0 else "idle"

    return WorkerStatus(
        **{
            name: worker.get(name)
            for name in ("id", "host", "pid", "device", "slots", "study", "fleet")
        },
        state=state,
        seconds=None if row["age"] is None else max(0, row["age"]) / 1000,
        silent_seconds=silent,
        trials=trials,
        rest_reason=worker.get("rest_reason") if state == "resting" else None,
        devices=tuple(worker.get("devices") or ()),
        capabilities=Capabilities.of_worker(worker),
    )


HISTORY_SECONDS = 90 * 86_400.0
"""Default age of the records to clean up."""

FORGET_BATCH = 100
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


def find_departed(connection: Connection, seconds: float = HISTORY_SECONDS) -> list[str]:
    """Return the ids of the workers that departed at least this many seconds ago."""
    return connection.read(lambda tx: _find_departed(tx, seconds, None))


def forget_departed(
    connection: Connection, workers: Sequence[str], seconds: float = HISTORY_SECONDS
) -> list[str]:
    """Delete the workers among these that have not returned, and return their ids."""
    forgotten: list[str] = []
    for start in range(0, len(workers), FORGET_BATCH):
        part = sorted(workers[start : start + FORGET_BATCH])

        def work(tx: ManagedTransaction, part: Sequence[str] = part) -> list[str]:
            # A worker that returns writes to its node, too, so one of the two transactions comes
            # first.
            lock(tx, "Worker", part)
            ids = _find_departed(tx, seconds, part)
            tx.run(FORGET, ids=ids).consume()
            return ids

        forgotten += connection.write(work)

    return forgotten


def find_ended(connection: Connection, seconds: float = HISTORY_SECONDS) -> list[str]:
    """Return the ids of the proposals that ended at least this many seconds ago."""
    rows = connection.read(lambda tx: tx.run(ENDED, milliseconds=round(1000 * seconds)).data())
    return [row["id"] for row in rows]


def _find_departed(tx: ManagedTransaction, seconds: float, ids: Sequence[str] | None) -> list[str]:
    return [row["id"] for row in tx.run(GONE, milliseconds=round(1000 * seconds), ids=ids).data()]
