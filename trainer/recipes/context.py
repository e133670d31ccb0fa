"""Context of a trial: everything that a recipe receives, and all that it may tell the trainer.

    saved = trial.checkpoint.load()
    for epoch in range(1 + (saved.state["epoch"] if saved else 0), trial.epochs + 1):
        …                                                              one epoch of training
        stop = trial.report(epoch, {"train_loss": …, "valid_accuracy": …})
        if stop or trial.checkpoint.due():
            trial.checkpoint.save({"epoch": epoch}, tensors=model.state_dict())
        if stop:
            break

`TrialContext(architecture, task)` alone saves nothing and is never interrupted: a recipe can be
tried with it in a notebook (`archive.trainer.recipes.run`).
"""

from __future__ import annotations

import logging
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archive.architecture import parameter_operations
from archive.architecture.graph import Architecture
from archive.errors import SettingsError, UsageError, WeightsError
from archive.store.records import Direction
from archive.trainer.intake.reads import Reads, RecordedParameters
from archive.trainer.protocols.base import TrainingProtocol
from archive.trainer.recipes.base import Resources, Stop
from archive.trainer.recipes.checkpoint import CHECKPOINT_SECONDS, CheckpointSlot
from archive.trainer.recipes.curve import Curve, Metrics
from archive.trainer.recipes.loading import ModelSource
from archive.trainer.tasks.base import Task

if TYPE_CHECKING:
    from torch import Tensor, nn

    from archive.trainer.datasets.splits import Splits

log = logging.getLogger("archive.trainer")

HEARTBEAT_SECONDS = 2.0
"""Time between two heartbeats during an epoch."""

Initial = Mapping[str, "Tensor"] | Callable[[], Mapping[str, "Tensor"]]
"""Weights to start from, by the names of the module's `state_dict`, or a function that returns
them."""


class TrialContext:
    """What a recipe trains, and how it talks to the trainer.

    Args:
        architecture: The network.
        task: Task to learn.
        protocol: Training protocol; if None, the task's default for the space.
        seed: Seed of the weights and of the order of the inputs.
        hyperparameters: Training settings of this proposal.
        parameters: The same as a tree, in a space with groups of parameters beside its networks;
            None for the settings as they are.
        objective: Name of the metric that is optimised; the task's if None.
        direction: Whether larger or smaller values of the objective are better; the task's if None.
        epochs: Number of reports after which to stop; None stands for the protocol's epochs.
        precision: `auto`, `float32`, `bf16` or `tf32`, as the trainer was told.
        resources: Devices, threads and limits.
        initial: Weights to start from (`inherited_weights`).
        inherited: Record of `initial`, as JSON values.
        recipe: Record of the recipe: its name and version. A checkpoint of another version is not
            resumed.
        model: Function that builds the network of a configuration of parameters, or its source;
            None for none.
        scratch: Folder of temporary files; None creates one at first use.
        checkpoint: File of the checkpoint, or its fsspec URL; None saves none.
        checkpoint_seconds: Least time between two checkpoints.
        on_report: Called with the entries of each report, and whether they come from a checkpoint.
        on_heartbeat: Called every few seconds while the recipe looks at `stop` or at
            `checkpoint.due()`.
        cancelled: Set from any thread to interrupt the trial.
        rank: Number of this process among the processes of the trial.
        world_size: Number of these processes.

    Attributes:
        architecture: The network, in its canonical order, so that relabellings are trained alike.
        task: Task to learn.
        protocol: Training protocol: split, epochs and further rules, as far as the recipe follows
            them.
        seed: Seed.
        hyperparameters: Training settings of this proposal.
        objective: Name of the metric that is optimised.
        direction: `maximise` or `minimise` it.
        epochs: Number of reports after which to stop, by the protocol or a rung of successive
            halving.
        precision: As requested from the trainer.
        resources: Devices, threads and limits.
        rank: Number of this process among the processes of the trial: 0 reports, saves and has the
            result, whatever the others do.
        world_size: Number of these processes, 1 but for trials on several devices.
        checkpoint: Saves and loads the state to resume from.
        inherited: Record of the inherited weights in the evaluation.
        recipe: Record of the recipe.
        resumed: Number of resumptions.
        stepping: Whether the recipe looks at `stop`: an interruption before that ends the process
            at once.
        told_to_stop: Whether the recipe has been told of an interruption.
        overran: Whether the recipe has continued beyond its rung: the result is that at the rung.
        built: Whether the recipe has asked for the module, so that its costs are the
            trained network's.
        reads: Names of the parameters that the recipe has read, besides its model.
    """

    def __init__(
        self,
        architecture: Architecture,
        task: Task,
        protocol: TrainingProtocol | None = None,
        *,
        seed: int = 0,
        hyperparameters: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        objective: str | None = None,
        direction: Direction | None = None,
        epochs: int | None = None,
        precision: str = "auto",
        resources: Resources | None = None,
        initial: Initial | None = None,
        inherited: Mapping[str, Any] | None = None,
        recipe: Mapping[str, str] | None = None,
        model: ModelSource | Callable[..., Any] | None = None,
        scratch: Path | None = None,
        checkpoint: Path | str | None = None,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
        on_report: Callable[[Metrics, bool], None] | None = None,
        on_heartbeat: Callable[[], None] | None = None,
        cancelled: threading.Event | None = None,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        """Check the number of epochs.

        Raises:
            UsageError: It is not one of the protocol's, or a budget in operations is too small for
                the network.
        """
        self.architecture = architecture.canonical
        self.task = task
        self.protocol = task.protocol_of(self.architecture, protocol)
        self.seed = seed
        self.hyperparameters = dict(hyperparameters or {})
        self.precision = precision
        self.objective = task.objective if objective is None else objective
        self.direction = direction or task.direction
        self.epochs = self.protocol.epochs if epochs is None else epochs
        if not 1 <= self.epochs <= self.protocol.epochs:
            raise UsageError(
                f"epochs must be between 1 and the {self.protocol.epochs} of "
                f"{self.protocol.name}, got {self.epochs}"
            )

        self.resources = resources or Resources()
        self.rank = rank
        self.world_size = world_size
        self.checkpoint = CheckpointSlot(self, checkpoint, checkpoint_seconds)
        self.inherited: Mapping[str, Any] = {}
        self.recipe = dict(recipe or {})
        self.resumed = 0
        self.stepping = self.told_to_stop = self.overran = self.built = False
        self._beside = self.hyperparameters if parameters is None else dict(parameters)
        self.reads = Reads()
        self._initial = initial
        self._model = model
        self._record = dict(inherited or {})
        self._scratch = scratch
        self._on_report = on_report
        self._on_heartbeat = on_heartbeat
        self._cancelled = cancelled or threading.Event()
        self._curve = Curve()
        self._start = time.perf_counter()
        self._heartbeat_at = time.monotonic()

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the proposal: a group is a dictionary, a repeated one a list of them.

        Those of the space `parameters`, or those beside a network.
        """
        if self.architecture.space != parameter_operations.NAME:
            return dict(self._beside)

        return RecordedParameters(self._configuration, self.reads)

    @property
    def _configuration(self) -> dict[str, Any]:
        return {**parameter_operations.parameters_of(self.architecture), **self.hyperparameters}

    @property
    def device(self) -> str:
        """First device, in torch's notation."""
        return self.resources.devices[0]

    @property
    def curve(self) -> Mapping[str, list[float]]:
        """Reports of the whole trial: one list for `epoch`, each metric and `seconds`."""
        return self._curve.columns

    @property
    def reports(self) -> int:
        """Number of reports so far, with those before a resumption."""
        return len(self._curve)

    @property
    def seconds(self) -> float:
        """Time since the start of the trial, with that before a resumption."""
        return time.perf_counter() - self._start

    @cached_property
    def scratch(self) -> Path:
        """Folder for temporary files, which is deleted after the trial."""
        if self._scratch is not None:
            return self._scratch

        folder = Path(tempfile.mkdtemp(prefix="archive-trial-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return folder

    def data(self) -> Splits:
        """Return training, validation and test parts of the data, as the protocol splits them.

        Raises:
            SettingsError: The data are not on this machine, and cannot be fetched.
        """
        return self.task.load(self.protocol)

    def module(self) -> nn.Module:
        """Return the architecture's torch module on the CPU, with weights drawn from the seed.

        It maps inputs (n, *task.input_shape) to (n, task.outputs): logits of the classes, or
        predictions in a regression (`archive.trainer.nn.base`). A configuration of parameters has
        the module that the model of its space makes of it, called with the parameters that its
        signature names.

        Raises:
            InvalidArchitectureError: The space has no builder, or the network does not suit the
                task.
            SettingsError: The trainer's machine names no model for the space, or it cannot be
                imported.
            UsageError: The model lacks a parameter, or returns no module.
        """
        if self.architecture.space == parameter_operations.NAME:
            return self._configured_module()

        from archive.trainer.nn import builders

        module = builders.build(self.architecture, self.task.form(self.protocol), self.seed)
        self.built = True
        return module

    def _configured_module(self) -> nn.Module:
        import torch

        from archive.trainer.intake import configured

        if self._model is None:
            raise SettingsError(
                "this machine names no model for the configuration: write model = "
                '"models.py:build" beside fit of the recipe in recipes.toml'
            )

        model = self._model.load() if isinstance(self._model, ModelSource) else self._model
        with torch.random.fork_rng(devices=()):
            torch.default_generator.manual_seed(self.seed)
            module = configured.build(model, self._configuration)

        self.built = True
        return module

    def inherited_weights(self) -> Mapping[str, Tensor] | None:
        """Return an ancestor's weights, adapted to `module()`; None for weights from the seed.

        Call it where no checkpoint is resumed. A recipe lets the error pass: the trial then starts
        again without inherited weights, by the rules for such trials.

        Raises:
            WeightsError: They cannot be loaded, and the protocol has rules for networks with such
                weights.
        """
        if self._initial is None:
            return None

        try:
            weights = self._initial if isinstance(self._initial, Mapping) else self._initial()
        except WeightsError as error:
            if self.protocol.inherited_epochs is not None:
                raise

            log.warning("starts from the seed reason=%r", error.reason)
            self.inherited = {"error": error.reason}
            return None

        self.inherited = self._record
        return weights

    def report(self, step: int, metrics: Mapping[str, Any]) -> Stop | None:
        """Record the metrics of an epoch, and return why the trial must stop, or None to continue.

        Reports beyond a rung are not recorded.

        Args:
            step: Number of the epoch, larger than in the report before.
            metrics: Finite numbers by name; any number of them, and not always the same.

        Raises:
            TrainingError: A name or a value cannot be recorded.
        """
        if self.epochs <= self.reports and self.epochs < self.protocol.epochs:
            if not self.overran:
                log.warning(
                    "continues beyond its rung, which is not recorded epochs=%d", self.epochs
                )

            self.overran = True
            return self.stop

        row = self._curve.add(step, metrics, self.seconds)
        self._heartbeat_at = time.monotonic()
        if self._on_report is not None:
            self._on_report(row, False)

        return self.stop

    @property
    def stop(self) -> Stop | None:
        """Why the trial must stop, or None to continue.

        It may be read between reports, and only looks at the clock.
        """
        interrupted = self.beat()
        if self.reports >= self.epochs:
            return Stop.EPOCHS if self.epochs >= self.protocol.epochs else Stop.RUNG

        self.told_to_stop = self.told_to_stop or interrupted
        return Stop.INTERRUPTED if interrupted else None

    @property
    def interrupted(self) -> bool:
        """Whether the trainer wants the trial to stop.

        Unlike `stop`, it costs nothing and sends no sign of life.
        """
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Interrupt the trial, from any thread."""
        self._cancelled.set()

    def beat(self) -> bool:
        """Send a heartbeat if one is due, and return whether the trial is interrupted."""
        self.stepping = True
        now = time.monotonic()
        if now - self._heartbeat_at > HEARTBEAT_SECONDS:
            self._heartbeat_at = now
            if self._on_heartbeat is not None:
                self._on_heartbeat()

        return self._cancelled.is_set()

    def _resume_reads(self, names: list[str] | None) -> None:
        """Add what an earlier attempt read; None for an unknown part."""
        if names is None:
            self.reads.whole = True
        else:
            self.reads.names |= set(names)

    def progress(self) -> dict[str, Any]:
        """Return the trial's part of a checkpoint, without its recipe's, as JSON values."""
        return {
            "curve": self.curve,
            "seconds": self.seconds,
            "resumed": self.resumed,
            "inherited": dict(self.inherited),
            "reads": self.reads.known(),
        }

    def resume(self, progress: Mapping[str, Any]) -> bool:
        """Continue after the progress of an earlier attempt; False if that went beyond `epochs`."""
        curve = Curve(progress["curve"])
        if len(curve) > self.epochs:
            return False

        self._curve = curve
        self._start -= progress["seconds"]
        self.resumed = progress["resumed"] + 1
        self.inherited = progress["inherited"]
        self._resume_reads(progress.get("reads"))
        for row in curve.rows() if self._on_report is not None else ():
            self._on_report(row, True)  # type: ignore[misc]

        return True
