"""Depth of the queue: the waiting and running proposals of each study, by which fleets are sized."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, LiteralString

from archive.store.records import State

if TYPE_CHECKING:
    from archive.database.connection import Connection

OPEN: LiteralString = """
MATCH (p:Proposal {state: $state})
USING INDEX SEEK p:Proposal(state)
RETURN p.study AS study, count(*) AS count, timestamp() - min(p.created) AS age
ORDER BY study
"""


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """The open proposals of one study.

    Attributes:
        waiting: Number of proposals that wait for a worker.
        running: Number of claimed proposals.
        oldest_seconds: Age of the oldest waiting proposal; 0 without one.
    """

    waiting: int = 0
    running: int = 0
    oldest_seconds: float = 0.0


def depths(connection: Connection) -> dict[str, QueueDepth]:
    """Return the depth of each study that has open proposals, by the name of the study."""

    def work(tx: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        return tx.run(OPEN, state=State.WAITING.value).data(), tx.run(OPEN, state=State.RUNNING.value).data()

    waiting, running = ({row["study"]: row for row in rows} for rows in connection.read(work))
    return {study: _depth(waiting.get(study), running.get(study)) for study in sorted(waiting.keys() | running.keys())}


def _depth(waiting: dict[str, Any] | None, running: dict[str, Any] | None) -> QueueDepth:
    return QueueDepth(
        waiting=waiting["count"] if waiting else 0,
        running=running["count"] if running else 0,
        oldest_seconds=max(0, waiting["age"] or 0) / 1000 if waiting else 0.0,
    )
