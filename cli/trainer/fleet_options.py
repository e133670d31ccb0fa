"""Options of `archive trainer` on machines that a batch system lends: how long it stays, and how it
leaves.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

import click

from archive.cli.parameters import Command, Duration
from archive.errors import UsageError

_OPTIONS = (
    click.option(
        "--idle",
        "idle_seconds",
        type=Duration(),
        show_default="never",
        help="Exit after this long without work.",
    ),
    click.option(
        "--max-time",
        "max_seconds",
        type=Duration(open_minimum=True),
        show_default="no limit",
        help="Exit after this long, with 0: stop claiming in time, and hand back what does not "
        "finish, with a "
        "checkpoint, --grace before the end. Set it below the time limit of the job.",
    ),
    click.option(
        "--wait",
        "wait_seconds",
        type=Duration(),
        show_default="forever",
        help="At startup, wait this long for a database that does not answer.",
    ),
    click.option(
        "--lease",
        "lease_seconds",
        type=Duration(minimum=2.0),
        show_default="90s",
        help="Time after which proposals of a trainer that has fallen silent return to the "
        "queue. Leases are renewed "
        "three times as often.",
    ),
    click.option(
        "--grace",
        "parting_seconds",
        type=Duration(),
        default="8s",
        help="Time for running trials to save a checkpoint when the trainer is stopped. Keep it "
        "below the time that "
        "the system allows before it kills (docker stop: 10s, Slurm: 30s).",
    ),
)


def fleet_options(command: Command) -> Command:
    """Add the options to a command."""
    return reduce(lambda inner, option: option(inner), reversed(_OPTIONS), command)


def check_times(chosen: Mapping[str, Any]) -> None:
    """Check that a trainer has time before it must leave.

    Raises:
        UsageError: The whole time is that for the checkpoints.
    """
    most = chosen["max_seconds"]
    grace = chosen["parting_seconds"]
    if most is not None and most <= grace:
        raise UsageError(f"--max-time must be longer than --grace, got {most:g}s and {grace:g}s")


def shortest(*seconds: float | None) -> float | None:
    """Return the shortest of several times, of which None is unlimited."""
    return min((each for each in seconds if each is not None), default=None)


def passed(chosen: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """Return the options of a trainer after a part of its time has passed, without those that were
    left out.

    Args:
        chosen: Options of `archive.trainer.daemon.options.TrainerOptions` by name.
        seconds: The time that has passed.
    """
    left = dict(chosen)
    if left["max_seconds"] is not None:
        left["max_seconds"] = max(0.0, left["max_seconds"] - seconds)
        left["wait_seconds"] = shortest(left["wait_seconds"], left["max_seconds"])

    # The default is the daemon's.
    if left["lease_seconds"] is None:
        del left["lease_seconds"]

    return left
