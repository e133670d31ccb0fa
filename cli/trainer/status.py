"""`archive trainer status`: the trainers of an archive, and proposals that none of them can run."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from archive.cli.parameters import Duration
from archive.cli.render import (
    json_option,
    open_archive,
    print_json,
    print_message,
    print_table,
    span,
)
from archive.errors import StoreUnavailableError
from archive.queue.workers import RunningTrial, WorkerState

if TYPE_CHECKING:
    from archive.queue.backlog import Unreachable
    from archive.queue.workers import WorkerStatus

COLUMNS = (
    "worker",
    "state",
    "device",
    "uptime",
    "last heartbeat",
    "proposal",
    "attempt",
    "epochs",
    "training for",
    "fleet",
)


@dataclass(frozen=True)
class TrainerItem:
    """A trainer, as the archive knows it.

    Attributes:
        id: Its id.
        state: Whether it works, waits, rests after failures of its machine, is silent for too long,
            or has left.
        host: Machine.
        pid: Process on that machine.
        device: Device that it trains on.
        slots: Trials it runs at a time.
        study: The one study that it serves; null means any.
        seconds: From its arrival to its end in order, or until now.
        silent_seconds: Since its last heartbeat.
        trials: Running trials, the oldest first.
        rest_reason: Reason of the failure after which it rests; null in other states.
        devices: Its devices, each with the name of the hardware.
        fleet: Fleet that it belongs to (`archive launch list`); null where it was started by hand.
        tasks: Tasks that it knows; one that ends with a colon stands for files of users. Null means
            any.
        spaces: Spaces that it knows; null means any.
        recipes: Recipes that it may run; null means any.
        memory_bytes: Memory of its largest device.
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
    trials: Sequence[RunningTrial]
    rest_reason: str | None
    devices: Sequence[str]
    fleet: str | None
    tasks: tuple[str, ...] | None
    spaces: tuple[str, ...] | None
    recipes: tuple[str, ...] | None
    memory_bytes: int | None


@dataclass(frozen=True)
class UnreachableItem:
    """Waiting proposals of a study that no living trainer can run.

    Attributes:
        study: Name of the study.
        proposals: Their number.
        first: Id of the first one.
        reasons: What each living trainer lacks, by its id.
    """

    study: str
    proposals: int
    first: str
    reasons: dict[str, str]


@dataclass(frozen=True)
class TrainerList:
    """The trainers.

    Attributes:
        workers: In the order of their arrival.
        unreachable: Waiting proposals that no living trainer can run.
    """

    workers: list[TrainerItem]
    unreachable: list[UnreachableItem]


@click.command(short_help="Show the trainers and their running trials.")
@click.option(
    "--all",
    "everyone",
    is_flag=True,
    help="Include trainers that ended, or fell silent, over a day ago.",
)
@click.option(
    "--stale",
    "stale_seconds",
    type=Duration(open_minimum=True),
    default="150s",
    help="Call a trainer stale after this long without a heartbeat.",
)
@click.option(
    "--healthcheck",
    is_flag=True,
    help="Exit with 1 unless a trainer of this machine is working or idle.",
)
@json_option
@click.pass_context
def status(
    ctx: click.Context, everyone: bool, stale_seconds: float, healthcheck: bool, as_json: bool
) -> None:
    """Show the trainers: state, device, last heartbeat, and running trials.

    Times are read from the database's clock. With --healthcheck, an unreachable database counts as
    healthy: trainers survive outages.
    """
    from archive.queue import backlog, workers

    recent = 10 * 365 * 86_400.0 if everyone else workers.RECENT_SECONDS
    try:
        with open_archive(ctx, patience=5.0) as archive:
            statuses = workers.statuses(
                archive.connection, stale_seconds=stale_seconds, recent_seconds=recent
            )
            unreachable = backlog.unreachable(archive.connection, statuses)
    except StoreUnavailableError as error:
        if not healthcheck:
            raise

        print_message(f"the state of the trainers is unknown: {error}")
        return

    if healthcheck:
        host = platform.node()
        statuses = [worker for worker in statuses if worker.trainer and worker.host == host]

    if as_json:
        print_json(_document(statuses, unreachable))
    else:
        print_workers(statuses, unreachable)

    if healthcheck and not any(worker.alive for worker in statuses):
        print_message(f"no trainer is running on {platform.node()}")
        sys.exit(1)


def _document(statuses: Sequence[WorkerStatus], unreachable: Sequence[Unreachable]) -> TrainerList:
    return TrainerList(
        workers=[_item(worker) for worker in statuses],
        unreachable=[
            UnreachableItem(group.study, group.proposals, group.first, dict(group.reasons))
            for group in unreachable
        ],
    )


def _item(worker: WorkerStatus) -> TrainerItem:
    capabilities = worker.capabilities
    return TrainerItem(
        id=worker.id,
        state=worker.state,
        host=worker.host,
        pid=worker.pid,
        device=worker.device,
        slots=worker.slots,
        study=worker.study,
        seconds=worker.seconds,
        silent_seconds=worker.silent_seconds,
        trials=worker.trials,
        rest_reason=worker.rest_reason,
        devices=worker.devices,
        fleet=worker.fleet,
        tasks=capabilities.tasks,
        spaces=capabilities.spaces,
        recipes=capabilities.recipes,
        memory_bytes=capabilities.memory_bytes,
    )


def print_workers(statuses: Sequence[WorkerStatus], unreachable: Sequence[Unreachable]) -> None:
    """Write the trainers as a table, and the proposals that no living one can run."""
    if not statuses:
        print_message("no trainer has been active within a day; start one with: archive trainer")
        return

    # Without a fleet, its column would only narrow the others.
    columns = COLUMNS if any(worker.fleet for worker in statuses) else COLUMNS[:-1]
    rows = []
    for worker in statuses:
        rows += [row[: len(columns)] for row in _rows(worker)]

    print_table(columns, rows)
    for worker in statuses:
        if worker.rest_reason is not None:
            print_message(
                f"{worker.id} claims nothing for up to a minute, because a trial failed: "
                f"{worker.rest_reason}"
            )

    for group in unreachable:
        count = "1 proposal waits" if group.proposals == 1 else f"{group.proposals} proposals wait"
        print_message(f"{count} in the study {group.study}, first {group.first}: {group}")


def _rows(worker: WorkerStatus) -> list[list[Any]]:
    """Return one row per trial; the first row of a worker describes the worker, too."""
    about = [
        worker.id,
        worker.state,
        worker.device,
        span(worker.seconds),
        span(worker.silent_seconds),
    ]
    if not worker.trials:
        return [[*about, None, None, None, None, worker.fleet]]

    rows = []
    fleet = worker.fleet
    for trial in worker.trials:
        training = [trial.proposal, trial.attempt, trial.epochs, span(trial.seconds)]
        rows.append([*about, *training, fleet])
        about = [""] * len(about)
        fleet = ""

    return rows
