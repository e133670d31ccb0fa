"""A node of a dispatcher: an actor that runs trials, one at a time, and passes on their messages.

    start(spec) ─> TrialProcess on this machine ─> poll() … poll() ─> messages, the last one ends it

Imported on the nodes of the cluster. The limits of a trial are watched here, where its processes
and files are.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from multiprocessing import connection
from pathlib import Path
from typing import NamedTuple

from archive.errors import SettingsError
from archive.queue.causes import Cause
from archive.trainer.daemon.scratch import ScratchFolder, ScratchFolders
from archive.trainer.daemon.trial_limits import TrialMemory, excess
from archive.trainer.trial import devices, group
from archive.trainer.trial.devices import Device
from archive.trainer.trial.group import TrialGroup
from archive.trainer.trial.messages import Message, TrialFailed
from archive.trainer.trial.process import TrialProcess
from archive.trainer.trial.ranks import free_port
from archive.trainer.trial.spec import TrialSpec

POLL_SECONDS = 1.0
"""Longest time of a poll: an interruption waits for its end."""
WATCH_SECONDS = 0.25
"""Time between two looks at the limits."""


class TrialNews(NamedTuple):
    """Answer to a poll.

    Attributes:
        messages: Messages of the trial since the last poll: `EpochReport`s, and at last one other
            message.
        silent_seconds: Time since its last sign of life.
    """

    messages: list[Message]
    silent_seconds: float


class TrialNode:
    """Runs trials on its machine.

    Args:
        scratch: Folder of the temporary files of trials; None stands for the system's temporary
            folder.
    """

    def __init__(self, scratch: str | None = None) -> None:
        self._folders = ScratchFolders(None if scratch is None else Path(scratch))
        self._devices: dict[str, list[Device]] = {}
        self._trial: TrialProcess | TrialGroup | None = None
        self._folder: ScratchFolder | None = None
        self._memory = TrialMemory(())
        self._began = 0.0

    def address(self) -> tuple[str, int]:
        """Return the address of this node in the Ray cluster, and a free port."""
        from ray.util import get_node_ip_address

        find_address: Callable[[], str] = get_node_ip_address
        return find_address(), free_port()

    def start(self, spec: TrialSpec) -> str:
        """Start a trial, and return the name of this machine.

        Raises:
            ArchiveError: It cannot be started here.
        """
        self.kill()
        if spec.device not in self._devices:
            # Ray and Slurm show a process its own GPUs alone.
            self._devices[spec.device] = devices.find(spec.device)

        device = _group_of(self._devices[spec.device], spec.ranks.count)
        self._folder = self._folders.create()
        spec = replace(spec, device=device.name, visible=device.visible, scratch=self._folder.path)
        self._trial = group.start(spec)
        self._memory = TrialMemory(self._trial.pids)
        self._began = time.monotonic()
        return platform.node()

    def poll(self) -> TrialNews:
        """Wait for news for a moment, and return it."""
        trial = self._trial
        deadline = time.monotonic() + POLL_SECONDS
        if trial is None:
            failed = TrialFailed("the node has no such trial", retry=True, cause=Cause.CRASH)
            return TrialNews([failed], 0.0)

        while True:
            messages = trial.messages()
            left = deadline - time.monotonic()
            if messages or left <= 0:
                return TrialNews(messages, time.monotonic() - trial.last_seen)

            if reason := self._excess(trial.spec):
                return TrialNews([trial.abandon(reason, Cause.LIMIT)], 0.0)

            connection.wait(trial.waitable, min(left, WATCH_SECONDS))

    def interrupt(self) -> None:
        """Ask the trial to save a checkpoint and to end."""
        if self._trial is not None:
            self._trial.interrupt()

    def abandon(self, reason: str, cause: Cause) -> TrialFailed:
        """Kill the trial, and return the failure to record, with the end of its log."""
        failed = TrialFailed(reason, cause is not Cause.LIMIT, cause=cause)
        if self._trial is not None:
            failed = self._trial.abandon(reason, cause)

        self.kill()
        return failed

    def kill(self) -> None:
        """End the trial in whatever state it is, and delete its temporary files."""
        if self._trial is not None:
            self._trial.kill()

        if self._folder is not None:
            self._folder.delete()

        self._trial = self._folder = None

    def _excess(self, spec: TrialSpec) -> str | None:
        return excess(
            time.monotonic() - self._began,
            spec.seconds,
            self._folder,
            spec.scratch_bytes,
            self._memory,
            spec.memory_bytes,
        )


def _group_of(usable: Sequence[Device], count: int) -> Device:
    """Return the devices of a trial on this node, as one.

    Raises:
        SettingsError: The node has fewer.
    """
    if not usable[0].uuid:
        return devices.group([usable[0]] * count)

    if len(usable) < count:
        raise SettingsError(
            f"a trial needs {count} devices on each node (--devices-per-trial), and "
            f"{platform.node()} has {len(usable)} for it"
        )

    return devices.group(usable[:count])


def allow_elsewhere(message: Message) -> Message:
    """Replace a refusal by another attempt, which may run on another node."""
    if isinstance(message, TrialFailed) and message.refused:
        return replace(message, retry=True, refused=False)

    return message
