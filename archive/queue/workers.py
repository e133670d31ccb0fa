"""Workers: trainers and other evaluators, their heartbeats, and the trials that each of them runs.

| state   | meaning                                                                               |
|---------|---------------------------------------------------------------------------------------|
| working | a recent heartbeat, and proposals that it holds                                       |
| idle    | a recent heartbeat, and no proposal                                                   |
| stale   | silent without having left: killed, hung or cut off; its leases expire by themselves  |
| left    | ended in order                                                                        |

Every span of time is measured by the server's clock, so that machines with different clocks are treated alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from archive.database.connection import Connection

WorkerState = Literal["working", "idle", "stale", "left"]

STALE_SECONDS = 60.0
"""Silence after which a worker counts as stale: it is heard of every few seconds while all is well."""
RECENT_SECONDS = 86_400.0
"""Workers that have been silent for longer are history, and not shown unless asked for."""

BEAT = """
MERGE (w:Worker {id: $id})
SET w += $properties, w.heartbeat = timestamp()
"""

ARRIVE = """
MERGE (w:Worker {id: $id})
SET w += $properties, w.heartbeat = timestamp(), w.started = coalesce(w.started, timestamp()), w.ended = null
"""

LEAVE = """
MATCH (w:Worker {id: $id})
SET w.heartbeat = timestamp(), w.ended = timestamp()
"""

WORKERS = """
MATCH (w:Worker)
WHERE timestamp() - w.heartbeat <= $milliseconds
RETURN properties(w) AS worker, timestamp() - w.heartbeat AS silent, timestamp() - w.started AS age
ORDER BY w.started, w.id
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
    """What a worker has in its hands.

    Attributes:
        proposal: Id of the proposal.
        study: Its study.
        architecture_key: The network.
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
    """One trainer, as the archive knows it.

    Attributes:
        id: Unique among workers.
        state: See the module.
        host: Machine.
        pid: Process on that machine.
        device: What it trains on.
        slots: Trials it runs at a time.
        study: The one study that it serves; None means any.
        seconds: Since it arrived; None where that is not on record.
        silent_seconds: Since it was last heard of.
        trials: What it runs, the oldest first.
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

    @property
    def alive(self) -> bool:
        """Whether it is at work, or ready to be."""
        return self.state in ("working", "idle")


def beat(connection: Connection, worker: str, **properties: str | None) -> None:
    """Store that a worker is alive, with its properties as far as they are given."""
    connection.write(lambda tx: tx.run(BEAT, id=worker, properties=properties).consume())


def arrive(connection: Connection, worker: str, **properties: str | int | None) -> None:
    """Store that a worker begins, with what it says of itself."""
    connection.write(lambda tx: tx.run(ARRIVE, id=worker, properties=properties).consume())


def leave(connection: Connection, worker: str) -> None:
    """Store that a worker ends in order, so that its silence worries nobody."""
    connection.write(lambda tx: tx.run(LEAVE, id=worker).consume())


def statuses(
    connection: Connection, *, stale_seconds: float = STALE_SECONDS, recent_seconds: float = RECENT_SECONDS
) -> list[WorkerStatus]:
    """Return the workers heard of within `recent_seconds`, in the order of their arrival.

    Args:
        connection: The way to the archive.
        stale_seconds: Silence after which a worker is stale.
        recent_seconds: Silence after which it is left out.
    """
    milliseconds = round(1000 * recent_seconds)

    def work(tx: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        return tx.run(WORKERS, milliseconds=milliseconds).data(), tx.run(RUNNING).data()

    workers, running = connection.read(work)
    held: dict[str, list[RunningTrial]] = {}
    for row in running:
        held.setdefault(row["worker"], []).append(_trial(row))
    return [_status(row, tuple(held.get(row["worker"]["id"], ())), stale_seconds) for row in workers]


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


def _status(row: Mapping[str, Any], trials: tuple[RunningTrial, ...], stale_seconds: float) -> WorkerStatus:
    worker, silent = row["worker"], max(0, row["silent"]) / 1000
    state: WorkerState
    if worker.get("ended") is not None:
        state = "left"
    elif silent > stale_seconds:
        state = "stale"
    else:
        state = "working" if trials else "idle"
    return WorkerStatus(
        **{name: worker.get(name) for name in ("id", "host", "pid", "device", "slots", "study")},
        state=state,
        seconds=None if row["age"] is None else max(0, row["age"]) / 1000,
        silent_seconds=silent,
        trials=trials,
    )
