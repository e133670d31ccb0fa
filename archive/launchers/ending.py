"""Fleets that have ended: no trainer of theirs runs or is pending, and none will be started."""

from __future__ import annotations

from collections.abc import Sequence

from archive.launchers import records
from archive.launchers.base import LaunchedTrainer, Launcher
from archive.launchers.fleet import TrainerFleet


def running(launcher: Launcher, fleet: TrainerFleet) -> tuple[Sequence[LaunchedTrainer], bool]:
    """Return the trainers of a fleet that are pending or running, and whether the fleet has ended.

    Raises:
        LaunchError: The engine does not answer.
    """
    # First: a process that ends now has started its trainers before the engine is asked.
    attended = records.is_attended(fleet)
    trainers = launcher.running(fleet)
    return trainers, not (attended or trainers or launcher.has_unlisted(fleet))
