"""The command that stays with its fleet, and follows the length of the queue."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from archive.cli.render import print_message
from archive.errors import TrainingError
from archive.launchers import records
from archive.launchers.keeper import TRUST_SECONDS, FleetKeeper, passed_over, queue_length
from archive.searches.interruption import InterruptedBySignal, Interruption

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.launchers.base import Launcher
    from archive.launchers.fleet import TrainerFleet


def follow(archive: Archive, launcher: Launcher, fleet: TrainerFleet) -> None:
    """Adjust a fleet to the queue until Ctrl-C, or until another command stops the fleet.

    Args:
        archive: The archive with the queue.
        launcher: The engine.
        fleet: The fleet, on record.

    Raises:
        InterruptedBySignal: Ctrl-C, or another signal that ends the command.
        SettingsError: A trainer refused its settings.
        StoreError: The database does not answer within the patience.
        TrainingError: Trainers fail or end early, one after another, without a result.
        UnknownNameError: The fleet's study was deleted.
    """
    print_message(
        f"following the queue with up to {fleet.upper} trainers; Ctrl-C ends this, and "
        "they end when idle"
    )
    keeper = FleetKeeper(launcher, fleet)
    try:
        _follow(archive, keeper, fleet)
    except InterruptedBySignal as interrupted:
        # The same command would start a fleet beside this one.
        interrupted.message = (
            f"interrupted: the fleet {fleet.name} gets no further trainers, and those that run "
            "end when idle; "
            f"archive launch stop {fleet.name} ends them now"
        )
        raise


def _follow(archive: Archive, keeper: FleetKeeper, fleet: TrainerFleet) -> None:
    shown: list[str] = []
    with Interruption(partial(print_message, "no longer following the queue")) as interruption:
        while True:
            work, progress = queue_length(archive, fleet.study)
            # A trainer that leaves although proposals wait may lack what they need; so would the
            # next one.
            left = keeper.left_seconds
            recent = left is not None and left < TRUST_SECONDS and work > 0
            lacking = passed_over(archive, fleet) if recent else []
            with records.adjusting(fleet) as kept:
                if not kept:
                    print_message(
                        f"the fleet {fleet.name} is stopped: no longer following the queue"
                    )
                    return

                try:
                    state = keeper.keep(work - sum(each.waiting for each in lacking), progress)
                except TrainingError as error:
                    raise TrainingError("; ".join([str(error), *map(str, lacking)])) from error

            lines = [str(state), *map(str, lacking)]
            for line in lines:
                if line not in shown:
                    print_message(line)

            shown = lines
            interruption.wait(max(1.0, keeper.launcher.poll_seconds))
            interruption.check()
