"""Options of commands that start trainers, such as devices, limits, times and observers."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from archive.cli.names import OBSERVER
from archive.cli.parameters import Command, Count, Duration, Size, settings_of
from archive.errors import UsageError

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.trainer.daemon.executors import TrialExecutor
    from archive.trainer.daemon.options import TrainerOptions
    from archive.trainer.observers.base import TrialObserver

PROXY_COUNT = 100
"""Number of networks of the option --proxies without one."""

_DEVICE_OPTIONS = (
    click.option(
        "--devices",
        "--device",
        "device",
        metavar="auto|cpu|N[,N…]",
        default="auto",
        help="Devices of the trials. auto: all GPUs that no other trainer of this machine uses; "
        "the CPU of a machine "
        "without GPUs. 0,1,3: these GPUs. Each trial sees its own GPUs alone.",
    ),
    click.option(
        "--slots",
        type=Count(1),
        show_default="one a device",
        help="Number of trials at a time. With --devices auto, no more GPUs are taken than these "
        "need.",
    ),
    click.option(
        "--slots-per-device",
        type=Count(1),
        show_default="slots / devices",
        help="Number of trials at a time on each device.",
    ),
    click.option(
        "--devices-per-trial",
        type=Count(1),
        default=1,
        help="Devices of each trial, with one process of its recipe on each, under the variables of "
        "torchrun; on a CPU, processes of each trial.",
    ),
    click.option(
        "--share-devices",
        is_flag=True,
        help="Use GPUs that other trainers of this machine use, too, those with the fewest "
        "trainers first.",
    ),
)

_LIMIT_OPTIONS = (
    click.option(
        "--stall",
        "stall_seconds",
        type=Duration(open_minimum=True),
        default="30min",
        help="End a trial that has reported no progress for this long.",
    ),
    click.option(
        "--trial-timeout",
        "trial_seconds",
        type=Duration(open_minimum=True),
        show_default="none",
        help="End a trial that takes longer than this; its proposal fails.",
    ),
    click.option(
        "--scratch-limit",
        "scratch_bytes",
        type=Size(),
        default="20GB",
        help="End a trial whose temporary files take more than this; its proposal fails. A SIZE "
        "is 500MB, 20GB or "
        "4GiB.",
    ),
    click.option(
        "--memory-limit",
        "memory_bytes",
        type=Size(),
        show_default="none",
        help="End a trial whose processes take more memory than this, without that of GPUs; its "
        "proposal fails.",
    ),
)

_TIME_OPTIONS = (
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

observe_option = click.option(
    "--observe",
    type=OBSERVER,
    metavar="NAME[:KEY=VALUE,…]",
    multiple=True,
    help="Report trials to an observer as well: tensorboard, mlflow, wandb (archive observers). "
    "May be repeated.",
)


def proxies_option(command: Command) -> Command:
    """Add the option --proxies to a command."""
    return click.option(
        "--proxies",
        type=Count(0),
        is_flag=False,
        flag_value=PROXY_COUNT,
        show_default="none",
        help="Measure the zero-cost proxies of all trained networks, and of N random ones of the "
        f"study's space ({PROXY_COUNT} without a number), beside the trials. archive arch proxies "
        "measures others.",
    )(command)


def device_options(command: Command) -> Command:
    """Add the options of the devices to a command."""
    return _add(_DEVICE_OPTIONS, command)


def limit_options(command: Command) -> Command:
    """Add the limits of trials to a command: a trial beyond one ends, and the others continue."""
    return _add(_LIMIT_OPTIONS, command)


def time_options(command: Command) -> Command:
    """Add the options of a trainer's time on a lent machine: how long it stays, how it leaves."""
    return _add(_TIME_OPTIONS, command)


def _add(options: Sequence[Callable[[Command], Command]], command: Command) -> Command:
    for option in reversed(options):
        command = option(command)

    return command


def check_times(options: Mapping[str, Any]) -> None:
    """Check that a trainer has time before it must leave.

    Raises:
        UsageError: The time is no longer than the time for the last checkpoints.
    """
    total = options["max_seconds"]
    grace = options["parting_seconds"]
    if total is not None and total <= grace:
        raise UsageError(f"--max-time must be longer than --grace, got {total:g}s and {grace:g}s")


def check_devices(options: Mapping[str, Any]) -> None:
    """Check that a trial on several devices has them alone.

    Raises:
        UsageError: It shares them.
    """
    from archive.trainer.daemon.options import check_devices_per_trial

    check_devices_per_trial(options["devices_per_trial"], options["slots_per_device"])


def shortest(*seconds: float | None) -> float | None:
    """Return the shortest of several times, of which None is unlimited."""
    return min((second for second in seconds if second is not None), default=None)


def subtract_time(options: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """Return the options of a trainer after a part of its time has passed.

    Args:
        options: Options of `archive.trainer.daemon.options.TrainerOptions` by name.
        seconds: The time that has passed.
    """
    left = dict(options)
    if left["max_seconds"] is not None:
        left["max_seconds"] = max(0.0, left["max_seconds"] - seconds)
        left["wait_seconds"] = shortest(left["wait_seconds"], left["max_seconds"])

    # The default is the daemon's.
    if left["lease_seconds"] is None:
        del left["lease_seconds"]

    return left


def create_observers(ctx: click.Context, texts: Sequence[str]) -> list[tuple[str, TrialObserver]]:
    """Return the names and the observers of the option, in its order.

    Raises:
        UsageError: There is no such observer, a package is missing, or an option cannot be used.
    """
    if not texts:
        return []

    from archive import settings
    from archive.trainer.observers import registry

    home = settings.load(**settings_of(ctx)).home
    return [registry.create(text, home) for text in texts]


def create_executor(archive: Archive, text: str, options: TrainerOptions) -> TrialExecutor:
    """Return the executor of a text like `ray:gpus=1,cpus=4`, or `slurm` for a trainer's own job.

    Raises:
        UnknownNameError: There is no such option.
        UsageError: The text names another engine than Ray, or the value of an option cannot be
            used.
        SettingsError: Ray is not installed.
        LaunchError: The cluster cannot be reached.
    """
    from archive.launchers import registry
    from archive.launchers.ray_cluster import RayLauncher

    if text == "slurm":
        from archive.trainer.dispatch.srun_executor import SrunExecutor

        return SrunExecutor(options)

    cluster = registry.create_from(text, archive.connection.settings)
    if not isinstance(cluster, RayLauncher):
        raise UsageError(
            f"--trials-on takes ray or slurm, got {text!r}; archive launch starts trainers on other engines"
        )

    from archive.trainer.dispatch.ray_executor import RayExecutor

    scratch = None if options.scratch is None else os.fspath(options.scratch)
    return RayExecutor(
        cluster.address,
        cluster.request(),
        nodes=cluster.nodes,
        device=options.device,
        threads=options.threads,
        scratch=scratch,
    )
