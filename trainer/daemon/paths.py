"""Folders of a daemon, and the specification of each trial.

    HOME/weights/        trained weights of finished trials, unless they are kept elsewhere
    HOME/checkpoints/    checkpoints of unfinished trials, unless they are kept elsewhere
    HOME/logs/           output of each trial
    TMPDIR/…             temporary files of running trials (`archive.trainer.daemon.scratch`)
    HOME/outbox/         undelivered results (`archive.trainer.daemon.result_spool`)

Daemons with the same home, or the same location of checkpoints, resume each other's trials.
"""

from __future__ import annotations

import math
import os
import queue
import threading
import time
from pathlib import Path
from typing import Any

from archive import rungs, runtime
from archive.architecture.layer import BESIDE
from archive.architecture.parameter_operations import NAME as PARAMETERS
from archive.errors import UsageError
from archive.files import expanded
from archive.queue.capabilities import Capabilities
from archive.settings import Settings
from archive.store.records import Claim, Study
from archive.trainer.daemon.options import TrainerOptions
from archive.trainer.daemon.result_spool import ResultSpool
from archive.trainer.daemon.scratch import ScratchFolders, in_background
from archive.trainer.recipes.registry import DEFAULT_SOURCE, RecipeAccess
from archive.trainer.recipes.source import RecipeSource
from archive.trainer.recipes.suitability import check_known, check_suitable
from archive.trainer.storage import checkpoints
from archive.trainer.storage.file_names import trial_log_path
from archive.trainer.storage.locations import check_location, local_folder
from archive.trainer.storage.timeouts import ANSWER_SECONDS
from archive.trainer.tasks import registry, tabular, text, user_files
from archive.trainer.tasks.file_access import FileAccess
from archive.trainer.tasks.registry import Task
from archive.trainer.tasks.tabular import TabularTask
from archive.trainer.trial.costs import LatencyOptions
from archive.trainer.trial.devices import Device
from archive.trainer.trial.ranks import Ranks
from archive.trainer.trial.spec import TrialSpec, run_of

CHECKPOINT_LIFETIME = 30 * 86_400.0
"""Age in seconds at which a checkpoint that no attempt has resumed is removed."""
SWEEP_SECONDS = 86_400.0
"""Time between two looks for such checkpoints."""


class TrainerPaths:
    """Folders of a daemon.

    Args:
        home: Folder of all its files.
        options: How the daemon works.
        weights: Location of the weights, a folder or an fsspec URL; None keeps them in the home.
        checkpoints: Location of the checkpoints, likewise; the daemons that share it resume each
            other's trials.

    Attributes:
        home: Folder of all its files.
        weights: Location of the weights.
        checkpoints: Location of the checkpoints.
        readable: Locations of weights that may be inherited.
        access: Files of users that may be opened for studies.
        recipes: Recipes that trials may run.
        scratch: Folders of temporary files.
    """

    def __init__(
        self,
        home: Path,
        options: TrainerOptions,
        weights: Path | str | None = None,
        checkpoints: Path | str | None = None,
    ) -> None:
        self.home = home
        self.weights = home / "weights" if weights is None else weights
        self._shared = checkpoints is not None
        self.checkpoints = (
            home / "checkpoints"
            if checkpoints is None
            else local_folder(checkpoints) or checkpoints
        )
        self._removal = CheckpointRemoval(self.checkpoints)
        self.access = FileAccess.of(home, options.data_folders)
        self.recipes = RecipeAccess(home, options.recipes)
        self.readable = (self.weights, home / "weights", *options.weights_from)
        self.scratch = ScratchFolders(
            None if options.scratch is None else expanded(options.scratch)
        )
        self._options = options
        self._discarded: set[tuple[str, str]] = set()
        self._swept_at = -math.inf

    @classmethod
    def of(
        cls, settings: Settings, options: TrainerOptions, home: Path | None = None
    ) -> TrainerPaths:
        """Return the folders of a daemon.

        Args:
            settings: Location of the archive, and of weights and checkpoints where they are not in
                the home.
            options: How the daemon works.
            home: Folder of all its files; the archive's home if None.
        """
        weights = settings.place_of_weights if settings.weights else None
        checkpoints = settings.place_of_checkpoints if settings.checkpoints else None
        return cls(home or settings.home, options, weights, checkpoints)

    def spool(self, archive: str) -> ResultSpool:
        """Return the spool of an archive, which is named without a login."""
        return ResultSpool(self.home / "outbox", archive)

    def task(self, study: Study) -> Task | TabularTask:
        """Return the task of a study; a task on a file only if the file may be opened here.

        Raises:
            ArchiveError: The task is not known here, or its file may not be opened or used.
        """
        return registry.of_study(study, self.access)

    def check_study(self, study: Study) -> None:
        """Refuse a study that this machine knows and whose recipe is for others.

        A study of an unknown task or recipe is left to other trainers.

        Raises:
            UsageError: The recipe is not written for the study's task or space.
        """
        check_known(study, self.recipes, self.access)

    def capabilities(self, memory_bytes: int | None) -> Capabilities:
        """Return the names of this machine's tasks, spaces and recipes, without loading them.

        Args:
            memory_bytes: Memory of the largest device; None if that is not known.

        Raises:
            SettingsError: `recipes.toml` cannot be used.
        """
        from archive import spaces

        tasks = (*registry.names(), tabular.PREFIX, *user_files.PREFIXES, text.PREFIX)
        return Capabilities(tasks, spaces.names(), self.recipes.names, memory_bytes)

    def spec(self, claim: Claim, task: Task, device: Device, slots: int) -> TrialSpec:
        """Return the specification of a claim's trial.

        Args:
            claim: The claim.
            task: Its task.
            device: Device of the trial.
            slots: Number of trials at a time.

        Raises:
            UnknownNameError: The task has no such protocol here.
            SettingsError: The recipe is not on this machine, or may not run here.
            UsageError: It is not written for the study's task or space.
        """
        study = claim.study
        check_suitable(study, task, self.recipes)
        protocol = task.protocol(claim.study.protocol)
        recipe = self.recipes.find(protocol.recipe)
        name = study.space_config.get("model") if study.space == PARAMETERS else None
        return TrialSpec(
            architecture=claim.architecture,
            task=task,
            protocol=protocol,
            recipe=recipe,
            model=self.recipes.model_of(recipe, name),
            objective=study.objective,
            direction=study.direction,
            seed=claim.seed,
            device=device.name,
            visible=device.visible,
            threads=self._threads(slots),
            weights_folder=self.weights,
            metadata={"proposal": claim.id},
            hyperparameters=claim.proposal.hyperparameters,
            parameters=_parameters_of(claim),
            proposal=claim.id,
            run=run_of(claim),
            checkpoint_folder=self.checkpoints,
            checkpoint_seconds=self._options.checkpoint_seconds,
            seconds=self._options.trial_seconds,
            scratch_bytes=self._options.scratch_bytes,
            memory_bytes=self._options.memory_bytes,
            log=trial_log_path(self.home, claim.id),
            epochs=rungs.epochs_of(study.config, claim.proposal.rung),
            precision=self._options.precision,
            latency=LatencyOptions(self._options.latency_seconds, self._options.latency_batch),
            slots=slots,
            ranks=Ranks(self._count_ranks(recipe)),
        )

    def discard_checkpoint(self, claim: Claim) -> None:
        """Mark the checkpoint of a trial that no attempt will resume; `clean_up` removes it."""
        self._discarded.add((claim.id, claim.token))

    def clean_up(self, spool: ResultSpool) -> None:
        """Remove discarded checkpoints, and once a day old files.

        Old files are checkpoints beyond `CHECKPOINT_LIFETIME`, and temporary files of trainers that
        were killed. Behind a URL, `archive db gc` removes old checkpoints: a thousand trainers must
        not list a bucket each. The removal of old files takes long where there are many, and has a
        separate thread.

        Args:
            spool: A checkpoint stays while the spool holds the trial's end in memory alone: a kill
                would take both. At a location of several machines it stays until the end is
                delivered: the machine may be lost with it.
        """
        is_safe = spool.is_delivered if self._shared else spool.is_safe
        for id_, token in list(self._discarded):
            if is_safe(id_, token):
                self._discarded.discard((id_, token))
                self._removal.remove(id_)

        # A trainer may run for months.
        if time.monotonic() - self._swept_at > SWEEP_SECONDS:
            # The next sweep is due after the end of this one.
            self._swept_at = math.inf
            in_background(self._sweep, "removal of old files")

    def check(self) -> None:
        """Check the locations of files, and the recipes, without connecting to anything.

        Raises:
            SettingsError: A location or `recipes.toml` cannot be used.
            UnknownNameError: An allowed recipe is not on this machine.
        """
        check_location(self.weights, writable=True)
        for location in self._options.weights_from:
            check_location(location)

        check_location(self.checkpoints, "checkpoints", writable=True)
        self.recipes.check()

    def close(self) -> None:
        """Remove the temporary files of this daemon, and finish the removal of checkpoints."""
        self._removal.close()
        self.scratch.close()

    def _sweep(self) -> None:
        try:
            if isinstance(self.checkpoints, Path):
                checkpoints.remove_stale(self.checkpoints, CHECKPOINT_LIFETIME)

            self.scratch.remove_stale()
        finally:
            self._swept_at = time.monotonic()

    def _count_ranks(self, recipe: RecipeSource) -> int:
        """Return the number of processes of a trial: the default recipe trains on one device."""
        return 1 if recipe == DEFAULT_SOURCE else self._options.devices_per_trial

    def _threads(self, slots: int) -> int | None:
        if self._options.threads is None and "OMP_NUM_THREADS" in os.environ:
            return None

        return self._options.threads or max(1, runtime.count_cores() // slots)


def _parameters_of(claim: Claim) -> dict[str, Any] | None:
    """Return the parameters beside a claimed network as a tree; None in a space without such."""
    document = claim.study.space_config.get(BESIDE)
    if document is None:
        return None

    from archive.parameters.parameter_space import ParameterSpace

    try:
        return ParameterSpace.from_json(document).nested(claim.proposal.hyperparameters)
    except UsageError:
        # A later release may have stored them: the recipe gets the values by flat name.
        return None


class CheckpointRemoval:
    """Removes checkpoints from one location. A location that does not answer delays no lease.

    Args:
        location: A folder, or an fsspec URL.
    """

    def __init__(self, location: Path | str) -> None:
        self.location = location
        self._requests: queue.Queue[str] = queue.Queue()
        self._thread: threading.Thread | None = None

    def remove(self, proposal: str) -> None:
        """Remove a proposal's checkpoint: at once from a folder, in the background from a URL."""
        if isinstance(self.location, Path):
            checkpoints.remove(self.location, proposal)
            return

        self._requests.put(proposal)
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, daemon=True, name="checkpoint removal"
            )
            self._thread.start()

    def close(self, seconds: float = ANSWER_SECONDS) -> None:
        """Wait for the requested removals, up to a limit: a checkpoint that stays costs space."""
        deadline = time.monotonic() + seconds
        while self._requests.unfinished_tasks and time.monotonic() < deadline:
            time.sleep(0.02)

    def _run(self) -> None:
        while True:
            checkpoints.remove(self.location, self._requests.get())
            self._requests.task_done()
