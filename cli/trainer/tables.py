"""Trainers of an archive, and proposals that none of them can run, as a table or as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from archive.cli.render import print_json, print_message, print_table, span

if TYPE_CHECKING:
    from archive.queue.reachability import Unreachable
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


def print_workers(
    statuses: Sequence[WorkerStatus], blocked: Sequence[Unreachable], as_json: bool
) -> None:
    """Write the trainers, and the proposals that no living one can run."""
    if as_json:
        print_json(
            {
                "workers": [_item(worker) for worker in statuses],
                "unreachable": [_blocked(one) for one in blocked],
            }
        )
        return

    if not statuses:
        print_message("no trainer has been active within a day; start one with: archive trainer")
        return

    # Without a fleet, its column would only narrow the others.
    columns = COLUMNS if any(worker.fleet for worker in statuses) else COLUMNS[:-1]
    print_table(columns, [row[: len(columns)] for worker in statuses for row in _rows(worker)])
    for worker in statuses:
        if worker.rest_reason is not None:
            print_message(
                f"{worker.id} claims nothing for up to a minute, because a trial failed: "
                f"{worker.rest_reason}"
            )

    for one in blocked:
        count = "1 proposal waits" if one.proposals == 1 else f"{one.proposals} proposals wait"
        print_message(f"{count} in the study {one.study}, first {one.first}: {one}")


def _item(worker: WorkerStatus) -> dict[str, Any]:
    about = asdict(worker)
    capabilities = about.pop("capabilities")
    return {**about, **capabilities}


def _blocked(one: Unreachable) -> dict[str, Any]:
    return {
        "study": one.study,
        "proposals": one.proposals,
        "first": one.first,
        "reasons": dict(one.reasons),
    }


def _rows(worker: WorkerStatus) -> Iterator[list[Any]]:
    """Yield one row a trial; the first row of a worker describes the worker, too."""
    own = [
        worker.id,
        worker.state,
        worker.device,
        span(worker.seconds),
        span(worker.silent_seconds),
    ]
    if not worker.trials:
        yield [*own, None, None, None, None, worker.fleet]

    for place, trial in enumerate(worker.trials):
        about, fleet = (own, worker.fleet) if place == 0 else ([""] * len(own), "")
        yield [*about, trial.proposal, trial.attempt, trial.epochs, span(trial.seconds), fleet]
