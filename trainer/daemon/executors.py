"""Executors: where the trials of a daemon run, on this machine or on others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Protocol

from archive.queue.causes import Cause
from archive.trainer.daemon.network_builder import NetworkReady
from archive.trainer.daemon.scratch import ScratchFolder, ScratchFolders
from archive.trainer.trial import group, spare
from archive.trainer.trial.messages import Message, TrialFailed
from archive.trainer.trial.spec import TrialSpec


class TrialHandle(Protocol):
    """The work on a claim: its network, a trial here or elsewhere, or a table's result."""

    @property
    def last_seen(self) -> float:
        """Time of the last sign of life, by `time.monotonic`."""

    @property
    def pid(self) -> int | None:
        """Id of the process on this machine, or of the first of several; None without one."""

    @property
    def pids(self) -> tuple[int, ...]:
        """Ids of all its processes on this machine, without what they have started."""

    @property
    def waitable(self) -> list[Connection | int]:
        """Objects that become ready with news of the work; empty if it has to be polled.

        They are arguments of `multiprocessing.connection.wait`.
        """

    @property
    def due(self) -> float | None:
        """Time of the result, by `time.monotonic`; None if it is not known in advance."""

    @property
    def enforces_limits(self) -> bool:
        """Whether the handle enforces the limits of the trial itself."""

    def messages(self) -> Sequence[Message | NetworkReady]:
        """Return the messages that have arrived, without waiting.

        Any number of `EpochReport`s, then at most one message of another kind.
        """

    def interrupt(self) -> None:
        """Request a checkpoint, and an end with `TrialInterrupted`."""

    def abandon(self, reason: str, cause: Cause) -> TrialFailed:
        """Kill a trial, and return the failure to record."""

    def kill(self) -> None:
        """End the work at once, in any state."""


class TrialExecutor(Protocol):
    """Starts the trials of one daemon; used by one thread."""

    @property
    def hardware(self) -> str | None:
        """Name of the machines on which trials run; None for this machine."""

    def start(self, spec: TrialSpec) -> tuple[TrialHandle, ScratchFolder | None]:
        """Start a trial; return its handle, and its scratch folder if the daemon must watch it.

        Raises:
            TrainingError: It cannot be started.
        """

    def tidy(self) -> None:
        """Release resources that have been idle for a while; called in every step of the loop."""

    def close(self) -> None:
        """End all trials and release all resources."""


class LocalExecutor:
    """Trials in processes of this machine.

    Args:
        scratch: Folders of temporary files.
    """

    hardware = None

    def __init__(self, scratch: ScratchFolders) -> None:
        self._scratch = scratch

    def start(self, spec: TrialSpec) -> tuple[TrialHandle, ScratchFolder | None]:
        """Start a process."""
        folder = self._scratch.create()
        return group.start(replace(spec, scratch=folder.path)), folder

    def tidy(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """End the process that waits for the next trial, and delete all scratch folders."""
        spare.discard()
        self._scratch.close()
