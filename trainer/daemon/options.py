"""Options of a trainer daemon, and its tally of trials."""

from __future__ import annotations

import os
from dataclasses import dataclass

from archive.errors import UsageError
from archive.trainer.recipes.checkpoint import CHECKPOINT_SECONDS

SCRATCH_BYTES = 20 * 10**9
TICK_SECONDS = 0.25
"""Time between two steps of a loop without events."""
POLL_SECONDS = 30.0
LEASE_SECONDS = 90.0
"""Duration of a lease.

Renewals are due every third of it, so that a lease survives two failed renewals.
"""
WATCHED_POLL_SECONDS = 5.0
WATCHED_LEASE_SECONDS = 15.0
"""Duration with a parent process, which waits for each result: the proposals of a killed trainer
return soon."""


@dataclass(frozen=True)
class TrainerOptions:
    """Options of a daemon.

    Attributes:
        study: The only study to serve; None serves all.
        slots: Number of trials that run at the same time; None for one on each device, or
            `slots_per_device`.
        slots_per_device: Number of trials that run at the same time on one device; None divides the
            slots.
        devices_per_trial: Number of devices of each trial, with one process on each
            (`archive.trainer.trial.group`). On a CPU, it is the number of processes.
        device: Devices (`archive.trainer.trial.devices`): `auto`, `cpu`, or numbers of GPUs,
            `0,1,3`.
        share_devices: Whether to use GPUs that other trainers of this machine use, too.
        threads: CPU threads of each trial, which its processes share; None follows OMP_NUM_THREADS, else divides the cores
            among the slots.
        poll_seconds: Longest pause between two looks at an empty queue; None means 30, or 5 with a
            parent.
        lease_seconds: Duration of a lease without a report or a heartbeat; None means 90, or 15
            with a parent.
        stall_seconds: Silence after which a trial counts as hung and is killed.
        trial_seconds: Time after which a trial is killed, and its proposal fails; None for no
            limit.
        scratch_bytes: Space of temporary files after which a trial is killed, and its proposal
            fails; None for no limit.
        memory_bytes: Memory of all processes of a trial, without memory of GPUs, after which it is
            killed, and its proposal fails; None for no limit.
        scratch: Folder of the temporary files of trials; None stands for the system's temporary
            folder.
        checkpoint_seconds: Time between two checkpoints of a trial: the most training that a kill
            loses.
        precision: Training precision: `auto`, `float32`, `bf16` or `tf32`
            (`archive.trainer.fit.precision`).
        latency_seconds: Longest time for measuring the latency of a trained network
            (`archive.trainer.trial.costs`); 0 measures none.
        latency_batch: Number of inputs of a measured pass.
        proxies: Number of random networks of a study's space for the measurement of zero-cost
            proxies, beside all trained networks (`archive.trainer.daemon.proxy_measurer`); None
            measures none.
        parting_seconds: Time that trials get to save a checkpoint when the trainer is stopped.
        wait_seconds: Longest wait for an unreachable store at the start; None waits until it
            answers.
        scale: Delay of a table's result, as a multiple of the recorded training time; 0 answers at
            once.
        parent: Process id; the daemon stops when this process is gone.
        max_seconds: Time limit of the daemon, which stops claiming in time, hands back what does
            not finish, and stops (`archive.trainer.daemon.shutdown`); None for no limit.
        idle_seconds: Idle time after which the daemon stops; None never stops it.
        once: Stop after one trial, or when the queue is empty.
        weights_from: Folders and fsspec URLs with weights that may be inherited, beside the
            trainer's.
        data_folders: Folders with files that may be opened for studies, in addition to
            `archive.trainer.tasks.file_access`.
        recipes: Names of the recipes that trials may run; None allows all on this machine
            (`archive.trainer.recipes.registry`).
        drain: SIGTERM and SIGINT wait for running trials; a second signal hands them back.
    """

    study: str | None = None
    slots: int | None = None
    slots_per_device: int | None = None
    devices_per_trial: int = 1
    device: str = "auto"
    share_devices: bool = False
    threads: int | None = None
    poll_seconds: float | None = None
    lease_seconds: float | None = None
    stall_seconds: float = 1800.0
    trial_seconds: float | None = None
    scratch_bytes: int | None = SCRATCH_BYTES
    memory_bytes: int | None = None
    scratch: str | os.PathLike[str] | None = None
    checkpoint_seconds: float = CHECKPOINT_SECONDS
    precision: str = "auto"
    latency_seconds: float = 0.5
    latency_batch: int = 1
    proxies: int | None = None
    parting_seconds: float = 8.0
    wait_seconds: float | None = None
    scale: float = 0.0
    parent: int | None = None
    max_seconds: float | None = None
    idle_seconds: float | None = None
    once: bool = False
    drain: bool = False
    weights_from: tuple[str, ...] = ()
    data_folders: tuple[str | os.PathLike[str], ...] = ()
    recipes: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Check the numbers of devices and slots.

        Raises:
            UsageError: They contradict each other.
        """
        check_devices_per_trial(self.devices_per_trial, self.slots_per_device)

    @property
    def lease(self) -> float:
        """Duration of a lease in seconds."""
        usual = LEASE_SECONDS if self.parent is None else WATCHED_LEASE_SECONDS
        return usual if self.lease_seconds is None else self.lease_seconds

    @property
    def longest_pause(self) -> float:
        """Longest pause between two looks at an empty queue, in seconds.

        An idle trainer looks before it stops.
        """
        pause = self.poll_seconds
        if pause is None:
            pause = POLL_SECONDS if self.parent is None else WATCHED_POLL_SECONDS

        if self.idle_seconds is None:
            return pause

        return min(pause, max(self.idle_seconds / 4, TICK_SECONDS))

    @property
    def tick(self) -> float:
        """Longest pause of the daemon's loop, in seconds."""
        return min(self.longest_pause, TICK_SECONDS)


def check_devices_per_trial(devices_per_trial: int, slots_per_device: int | None) -> None:
    """Check that a trial on several devices has them alone.

    Raises:
        UsageError: Several trials share a device, or there is no device for a trial.
    """
    if devices_per_trial < 1:
        raise UsageError(f"--devices-per-trial must be at least 1, got {devices_per_trial}")

    if devices_per_trial > 1 and (slots_per_device or 1) > 1:
        raise UsageError(
            f"a trial on {devices_per_trial} devices has them alone: leave out "
            f"--slots-per-device {slots_per_device}, or --devices-per-trial"
        )


@dataclass
class Tally:
    """Tally of a trainer: its trials by outcome.

    Attributes:
        complete: Trials with a result.
        failed: Trials without one; with no others, the exit code of the command is 3.
        returned: Proposals that were handed back, or lost to another worker.
        unsaved: Trials with a result, but without saved weights.
    """

    complete: int = 0
    failed: int = 0
    returned: int = 0
    unsaved: int = 0

    @property
    def all(self) -> int:
        """Number of proposals that the daemon no longer works on."""
        return self.complete + self.failed + self.returned
