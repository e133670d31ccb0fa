"""Waiting proposals that the trainers of a fleet pass over, because they lack the study's task,
space or recipe.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archive.launchers.fleet import TrainerFleet
from archive.queue import reachability, workers
from archive.queue.depth import depths
from archive.queue.workers import WorkerStatus

if TYPE_CHECKING:
    from archive.api import Archive

TRUST_SECONDS = 600.0
"""Time after the end of a trainer in which what it lacks is taken for what the next one would
lack."""


@dataclass(frozen=True, slots=True)
class PassedOver:
    """Waiting proposals of a study that no trainer of a fleet can run.

    Attributes:
        study: Name of the study.
        waiting: Number of its waiting proposals.
        reason: Capability that the trainer that started last lacks.
    """

    study: str
    waiting: int
    reason: str

    def __str__(self) -> str:
        """Return them with the reason."""
        one = self.waiting == 1
        count = "1 proposal waits" if one else f"{self.waiting} proposals wait"
        them = "it" if one else "them"
        return (
            f"{count} in the study {self.study}, and no trainer of the fleet can run {them}: "
            f"{self.reason}"
        )


def passed_over(archive: Archive, fleet: TrainerFleet) -> list[PassedOver]:
    """Return the waiting proposals that none of the trainers since the fleet's beginning can run,
    by study.

    Trainers of other fleets may be among them. If one of those can run a study, its proposals are
    left out.

    Args:
        archive: The archive.
        fleet: The fleet, on record.
    """
    waiting = {
        name: depth.waiting
        for name, depth in depths(archive.connection).items()
        if depth.waiting and fleet.study in (None, name)
    }
    if not waiting:
        return []

    lacking = reachability.lacking(archive.connection, waiting, list(_trainers(archive, fleet)))
    return [PassedOver(study, waiting[study], reason) for study, reason in sorted(lacking.items())]


def _trainers(archive: Archive, fleet: TrainerFleet) -> Iterator[WorkerStatus]:
    age = time.time() - fleet.created
    for worker in workers.statuses(archive.connection, recent_seconds=TRUST_SECONDS):
        # By the server's clock; that of a trainer that has left stopped at its end.
        since = (worker.seconds or 0.0) + (worker.silent_seconds if worker.state == "left" else 0.0)
        if worker.seconds is not None and worker.study == fleet.study and since <= age:
            yield worker
