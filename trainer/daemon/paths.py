"""Where a daemon works: its folders and device, and what a trial there is told.

    HOME/checkpoints/    weights of finished trials, unless they are kept elsewhere
    HOME/states/         states of unfinished ones, for whoever goes on with them
    HOME/logs/           what each trial printed
    HOME/outbox/         how trials ended, until the archive has it

Daemons that share a home go on with each other's trials.
"""

from __future__ import annotations

import logging
import math
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from archive import cpu_count
from archive.errors import SettingsError, StoreError
from archive.queue import successive_halving
from archive.store.records import Claim, Study
from archive.trainer.daemon.options import Options
from archive.trainer.daemon.result_spool import Outbox
from archive.trainer.storage import checkpoints
from archive.trainer.tasks import registry
from archive.trainer.tasks.file_access import Access
from archive.trainer.tasks.registry import Task
from archive.trainer.tasks.tabular import TabularTask
from archive.trainer.trial import failures
from archive.trainer.trial import log as triallog
from archive.trainer.trial.job import Job
from archive.trainer.trial.process import resolve_device

if TYPE_CHECKING:
    from archive.api import Archive

log = logging.getLogger("archive.trainer")

STATE_SECONDS = 30 * 86_400.0
"""Age at which a state that nobody came back for is removed."""
SWEEP_SECONDS = 86_400.0
"""Time between two looks for such states."""


class Workplace:
    """The folders of a daemon, and the device that it trains on.

    Args:
        home: Folder of everything.
        options: How the daemon works.
        weights: Where weights are kept instead, a folder or an fsspec URL.

    Attributes:
        home: As given.
        weights: Where weights are kept.
        readable: Where weights may be read from, for networks to begin with.
        device: As torch names it, once it is known.
        access: Which files of users may be opened for studies.
    """

    def __init__(self, home: Path, options: Options, weights: Path | str | None = None) -> None:
        self.home, self.device = home, options.device
        self.weights = home / "checkpoints" if weights is None else weights
        self.access = Access.of(home, options.data_folders)
        self.readable = (self.weights, home / "checkpoints", *options.weights_from)
        self._options = options
        self._over: set[tuple[str, str]] = set()
        self._swept_at = -math.inf

    def find_device(self, archive: Archive) -> str:
        """Set the device, and return its hardware; for one study's table, without torch, which takes seconds to load.

        Raises:
            SettingsError: The device cannot be used.
            StoreError: The archive cannot be asked.
        """
        self.device, hardware = self._found(archive)
        return hardware

    def outbox(self, archive: str) -> Outbox:
        """Return the outbox for an archive, which is named without a login."""
        return Outbox(self.home / "outbox", archive)

    def task(self, study: Study) -> Task | TabularTask:
        """Return the task of a study, as far as its file, if it is one, may be opened here.

        Raises:
            ArchiveError: It is not known here, or its file may not be opened or used.
        """
        return registry.of_study(study, self.access)

    def job(self, claim: Claim, task: Task) -> Job:
        """Return what the trial of a claim is told.

        Raises:
            UnknownNameError: The task has no such protocol here.
        """
        return Job(
            architecture=claim.architecture,
            task=task,
            protocol=task.protocol(claim.study.protocol),
            seed=claim.study.seed,
            device=self.device,
            threads=self._threads(),
            folder=self.weights,
            about={"proposal": claim.id},
            hyperparameters=claim.proposal.hyperparameters,
            proposal=claim.id,
            resume_folder=self.home / "states",
            checkpoint_seconds=self._options.checkpoint_seconds,
            log=triallog.path_of(self.home, claim.id),
            epochs=successive_halving.epochs_of(claim.study, claim.proposal.rung),
            precision=self._options.precision,
        )

    def forget(self, claim: Claim) -> None:
        """Note that nobody will go on with a trial: `tidy` removes its state."""
        self._over.add((claim.id, claim.token))

    def tidy(self, outbox: Outbox) -> None:
        """Remove states that are of no more use: now and then, those that nobody came back for.

        Args:
            outbox: A trial's state goes once this one does not hold its end in memory alone: a kill would take both.
        """
        for id_, token in [claim for claim in self._over if outbox.is_safe(*claim)]:
            self._over.discard((id_, token))
            checkpoints.forget(self.home / "states", id_)
        # A trainer may stay for months.
        if time.monotonic() - self._swept_at > SWEEP_SECONDS:
            self._swept_at = time.monotonic()
            checkpoints.sweep(self.home / "states", STATE_SECONDS)

    def _found(self, archive: Archive) -> tuple[str, str]:
        study = self._options.study
        try:
            if study is not None and isinstance(self.task(archive.studies.get(study)), TabularTask):
                return "table", "no training"
        except StoreError:
            raise
        except Exception as error:
            # Each of its proposals will say so, too, whatever a task of another package raises.
            log.warning("cannot work on study=%s reason=%r", study, failures.failed(error).reason)
        device, hardware = resolve_device(self._options.device)
        if self._options.precision == "tf32" and not device.startswith("cuda"):
            raise SettingsError(f"precision tf32 needs a GPU, got the device {device}")
        return device, hardware

    def _threads(self) -> int | None:
        if self._options.threads is None and "OMP_NUM_THREADS" in os.environ:
            return None
        return self._options.threads or max(1, cpu_count.available() // self._options.slots)
