"""Depth of the queue: the waiting and running proposals of each study, by which fleets are sized,
and their total.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, LiteralString

from archive.queue.admission import COUNT
from archive.store.records import State
from archive.store.studies import studies

if TYPE_CHECKING:
    from archive.database.connection import Connection

OPEN: LiteralString = """
MATCH (p:Proposal {state: $state})
USING INDEX SEEK p:Proposal(state)
RETURN p.study AS study, count(*) AS count, timestamp() - min(p.created) AS age
ORDER BY study
"""

# Both servers keep the number of nodes of a label.
ALL: LiteralString = """
MATCH (p:Proposal)
RETURN count(p) AS total
"""

ADMITTED: LiteralString = """
MATCH (s:Study {name: $study})
USING INDEX SEEK s:Study(name)
RETURN s.admitted AS total
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
        return tx.run(OPEN, state=State.WAITING.value).data(), tx.run(
            OPEN, state=State.RUNNING.value
        ).data()

    waiting, running = ({row["study"]: row for row in rows} for rows in connection.read(work))
    return {
        study: _depth(waiting.get(study), running.get(study))
        for study in sorted(waiting.keys() | running.keys())
    }


def total(connection: Connection, study: str | None = None) -> int:
    """Return the number of proposals in any state, of one study or of all.

    A study's own number is missing after a load or a user's query (`archive.queue.admission`): its
    proposals are counted then.

    Raises:
        UnknownNameError: There is no study of this name.
    """
    if study is None:
        return int(connection.read(lambda tx: tx.run(ALL).single(strict=True)["total"]))

    name = studies.read(connection, study).name

    def work(tx: Any) -> int:
        admitted = tx.run(ADMITTED, study=name).single(strict=True)["total"]
        return int(
            tx.run(COUNT, study=name).single(strict=True)["total"] if admitted is None else admitted
        )

    return connection.read(work)


def _depth(waiting: dict[str, Any] | None, running: dict[str, Any] | None) -> QueueDepth:
    return QueueDepth(
        waiting=waiting["count"] if waiting else 0,
        running=running["count"] if running else 0,
        oldest_seconds=max(0, waiting["age"] or 0) / 1000 if waiting else 0.0,
    )
