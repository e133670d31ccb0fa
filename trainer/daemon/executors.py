"""Executors: where the trials of a daemon run, on this machine or on others."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from archive.trainer.daemon.in_flight import TrialHandle
from archive.trainer.daemon.limits.scratch import ScratchFolder, ScratchFolders
from archive.trainer.trial import spare
from archive.trainer.trial.process import TrialProcess
from archive.trainer.trial.spec import TrialSpec


class TrialExecutor(Protocol):
    """Starts the trials of one daemon; used by one thread."""

    @property
    def hardware(self) -> str | None:
        """Name of the machines on which trials run;

        None for this machine, whose device the daemon looks for.
        """

    def start(self, spec: TrialSpec) -> tuple[TrialHandle, ScratchFolder | None]:
        """Start a trial; return it, and its scratch folder if the daemon has to watch and delete
        that folder.

        Raises:
            TrainingError: It cannot be started.
        """

    def tidy(self) -> None:
        """Give back resources that no trial has used for a while; called in every step of the
        daemon's loop.
        """

    def close(self) -> None:
        """End everything."""


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
        return TrialProcess(replace(spec, scratch=folder.path)), folder

    def tidy(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """End the process that waits for the next trial, and delete all scratch folders."""
        spare.discard()
        self._scratch.close()
