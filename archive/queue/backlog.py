"""Backlog of the queue: open proposals by study, by which fleets are sized, and unreachable ones.

A worker cannot run a proposal whose task, space or recipe it lacks, that it has refused, or that
needs more memory than its largest device has. Without living workers there is nothing to report:
the proposals wait for the first one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, LiteralString

from archive.database.statements import by_column
from archive.queue.admission import COUNT
from archive.queue.capabilities import STUDIES
from archive.queue.workers import WorkerStatus
from archive.store.records import State
from archive.store.studies import studies

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

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

    def work(tx: ManagedTransaction) -> list[dict[str, dict[str, Any]]]:
        states = (State.WAITING, State.RUNNING)
        return [by_column(tx.run(OPEN, state=state.value).data(), "study") for state in states]

    waiting, running = connection.read(work)
    studies = sorted(waiting.keys() | running.keys())
    return {study: _depth(waiting.get(study), running.get(study)) for study in studies}


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


# Proposals with the same requirements are one row, with the id of the first one.
WAITING = """
MATCH (p:Proposal {state: 'WAITING'})
USING INDEX SEEK p:Proposal(state)
WHERE $id IS NULL OR p.id = $id
RETURN p.study AS study, p.refused_by AS refused_by, p.memory_bytes AS memory_bytes, p.reason AS reason,
       count(*) AS proposals, min(p.id) AS first
ORDER BY first
"""

MOST_WORKERS = 3
"""Most workers whose reasons a text contains."""


@dataclass(frozen=True, slots=True)
class Unreachable:
    """Waiting proposals that no living worker can run.

    Attributes:
        study: Name of their study.
        proposals: Their number.
        first: Id of the first one.
        reasons: For each living worker, its id and the reason why it cannot run them.
        last: Reason of the last attempt; None without one.
    """

    study: str
    proposals: int
    first: str
    reasons: tuple[tuple[str, str], ...]
    last: str | None = None

    def __str__(self) -> str:
        """Return the reasons in words."""
        parts = list(map(": ".join, self.reasons[:MOST_WORKERS]))
        more = len(self.reasons) - len(parts)
        if more:
            parts.append(f"and {more} more")

        return f"no living worker can run it ({'; '.join(parts)})"


def unreachable(
    connection: Connection, statuses: Iterable[WorkerStatus], proposal: str | None = None
) -> list[Unreachable]:
    """Return the waiting proposals that no living worker can run.

    There are none if no worker is alive.

    Args:
        connection: Connection to the archive.
        statuses: The workers.
        proposal: Id of the one proposal to examine; None for all.
    """
    living = [worker for worker in statuses if worker.alive]

    def work(tx: ManagedTransaction) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
        rows = tx.run(WAITING, id=proposal).data()
        names = sorted(by_column(rows, "study"))
        return rows, by_column(tx.run(STUDIES, names=names).data(), "study")

    if not living:
        return []

    rows, studies = connection.read(work)
    entries = []
    for row in rows:
        study = row["study"]
        reasons = _reasons(row, studies.get(study), living)
        if reasons is not None:
            entries.append(
                Unreachable(study, row["proposals"], row["first"], tuple(reasons), row["reason"])
            )

    return entries


def lacking(
    connection: Connection, studies: Iterable[str], statuses: Sequence[WorkerStatus]
) -> dict[str, str]:
    """Return the studies whose task, space or recipe each of the workers lacks.

    Each has the reason of the last worker.

    Args:
        connection: Connection to the archive.
        studies: Names of studies.
        statuses: The workers, alive or not; without one, no study is returned.
    """
    if not statuses:
        return {}

    rows = connection.read(lambda tx: tx.run(STUDIES, names=sorted(studies)).data())
    lacks = {}
    for row in rows:
        needs = (row["task"], row["protocol"], row["space"])
        reason = None
        for status in statuses:
            reason = status.capabilities.lacks(*needs)
            if reason is None:
                break

        if reason is not None:
            lacks[row["study"]] = reason

    return lacks


def _reasons(
    row: Mapping[str, Any], study: Mapping[str, Any] | None, living: Sequence[WorkerStatus]
) -> list[tuple[str, str]] | None:
    """Return why each worker cannot run a proposal; None if one can."""
    reasons = []
    for worker in living:
        reason = _reason(row, study, worker)
        if reason is None:
            return None

        reasons.append((worker.id, reason))

    return reasons


def _reason(
    row: Mapping[str, Any], study: Mapping[str, Any] | None, worker: WorkerStatus
) -> str | None:
    if worker.study not in (None, row["study"]):
        return f"it serves the study {worker.study!r}"

    if worker.id in (row["refused_by"] or ()):
        return "it could not begin the training"

    needed = row["memory_bytes"] or 0
    memory = worker.capabilities.memory_bytes
    if memory is not None and needed > memory:
        return (
            f"its largest device has {memory / 2**30:.1f} GiB, and the training needs "
            f"{needed / 2**30:.1f} GiB"
        )

    return (
        None
        if study is None
        else worker.capabilities.lacks(study["task"], study["protocol"], study["space"])
    )
