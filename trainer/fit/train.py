"""Training of one network on one task, with one seed, on one device.

    network ── shuffled batches ──> steps ──> validation ──> callback      once an epoch, until convergence
                                                 └─ best so far: weights copied, tested once at the end

The same architecture (in any order of its layers), task, protocol, seed and number of threads give the same result to
the last bit on one CPU, however often the training was interrupted and resumed; on a GPU, the same up to the order of
its sums.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from archive.architecture import codec
from archive.architecture.graph import Architecture
from archive.errors import CheckpointError, TrainingError, UsageError
from archive.trainer.datasets.splits import Splits
from archive.trainer.fit import precision as precisions
from archive.trainer.fit import random_states
from archive.trainer.fit.batches import Batches
from archive.trainer.fit.context import Metrics, TrialContext
from archive.trainer.fit.evaluate import evaluate
from archive.trainer.fit.hyperparameters import Hyperparameters
from archive.trainer.fit.loop import OnEpoch, Training
from archive.trainer.fit.memory import out_of_memory
from archive.trainer.fit.steps import Steps
from archive.trainer.nn import builders, costs
from archive.trainer.protocols.base import TrainingProtocol
from archive.trainer.tasks.base import Task

log = logging.getLogger("archive.trainer")

Initial = Mapping[str, Tensor] | Callable[[], Mapping[str, Tensor]]
"""Initial weights by the names of the module's `state_dict`, or a function that returns them."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a finished training.

    Attributes:
        value: The task's metric on the validation part, at the best epoch, in the task's own unit.
        metrics: `valid_loss`, `train_loss` and the metric on the test part (`test_accuracy`, `test_mse`), all at the
            best epoch; `best_epoch`, `params` and `flops` (see `archive.trainer.nn.costs`).
        curve: `epoch`, `train_loss`, `valid_loss`, `valid_<metric>` and `seconds` since the start, parallel lists.
        epochs: Number of epochs.
        seconds: Wall time from the building of the network to the last test, over all resumptions.
        weights: Tensors of the best epoch by name, on the CPU.
        ended: Why training ended: `epochs` (all of the protocol's), `rung` (those of the argument), or the protocol's
            rule of convergence.
        resumed: Number of resumptions.
        precision: `float32`, `bf16` or `tf32`.
        inherited: Record of the initial weights, as JSON values; empty if they were drawn from the seed.
    """

    value: float
    metrics: Metrics
    curve: dict[str, list[float]]
    epochs: int
    seconds: float
    weights: dict[str, Tensor] = field(repr=False)
    ended: str = "epochs"
    resumed: int = 0
    precision: str = "float32"
    inherited: Mapping[str, Any] = field(default_factory=dict)


def train(
    architecture: Architecture,
    task: Task,
    protocol: TrainingProtocol | None = None,
    *,
    seed: int = 0,
    device: str = "cpu",
    on_epoch: OnEpoch | None = None,
    hyperparameters: Mapping[str, Any] | None = None,
    initial: Initial | None = None,
    inherited: Mapping[str, Any] | None = None,
    epochs: int | None = None,
    precision: str = "auto",
    context: TrialContext | None = None,
) -> Outcome:
    """Train a network and evaluate it.

    Args:
        architecture: The network; built in its canonical order, so that relabellings are trained alike.
        task: Task to learn.
        protocol: Training protocol; the task's default if None.
        seed: Seed of the initial weights and of the order of the inputs.
        device: Device in torch's notation.
        on_epoch: Called after each epoch with that epoch's entries of the curve.
        hyperparameters: Overrides of the protocol (`archive.trainer.fit.hyperparameters`).
        initial: Initial weights, in the canonical order; None draws them from the seed. A function is called unless a
            checkpoint is resumed, and may raise CheckpointError: the weights then come from the seed, unless the
            protocol has other rules for networks that inherit.
        inherited: Record of `initial` in the outcome, as JSON values.
        epochs: Train up to this epoch, with the schedule of all of the protocol's; None trains all. The outcome is
            that of the whole training at this epoch, and the context saves a checkpoint.
        precision: `auto`, `float32`, `bf16` or `tf32` (`archive.trainer.fit.precision`).
        context: Saves checkpoints and may cancel the training; None does neither.

    Raises:
        UnknownNameError: There is no hyperparameter of a name.
        UsageError: The value of an argument cannot be used.
        InvalidArchitectureError: The network does not suit the task.
        TrainingError: The loss is no longer finite, memory ran out, or the initial weights do not fit.
        CheckpointError: The initial weights cannot be loaded, and the protocol has rules for networks with such.
        Cancelled: The context was cancelled.
    """
    start = time.perf_counter()
    protocol = protocol or task.protocol()
    until = protocol.epochs if epochs is None else epochs
    if not 1 <= until <= protocol.epochs:
        raise UsageError(f"epochs must be between 1 and the {protocol.epochs} of {protocol.name}, got {until}")
    architecture, context, target = architecture.canonical, context or TrialContext(), torch.device(device)
    overrides = Hyperparameters.of(hyperparameters or {})
    dtype = precisions.choose(precision, target)
    try:
        splits = task.load(protocol)
        with precisions.tf32_units(dtype), random_states.seeded(seed, target):
            training = _prepared(architecture, task, protocol, splits, overrides, seed, target, dtype, start)
            identity = _identity(architecture, task, protocol, splits, seed, target, dtype, hyperparameters or {})
            checkpoint = context.resume(identity)
            if checkpoint is not None and len(checkpoint.metadata["curve"].get("epoch", ())) <= until:
                training.resume(checkpoint)
                log.info("resumed epoch=%d steps=%d", training.epochs, training.steps.done)
            elif initial is not None:
                _start_from(training, initial, inherited or {})
            ended = training.run(until, context, on_epoch)
            if ended == "rung":
                context.save(training.checkpoint(), training.epochs)
            return _outcome(training, ended, dtype)
    except RuntimeError as error:
        if (reason := out_of_memory(error)) is None:
            raise
        raise TrainingError(f"out of memory on {device}: {reason}") from error


def _prepared(
    architecture: Architecture,
    task: Task,
    protocol: TrainingProtocol,
    splits: Splits,
    overrides: Hyperparameters,
    seed: int,
    device: torch.device,
    precision: str,
    start: float,
) -> Training:
    parts = {name: Batches.of(getattr(splits, name), device) for name in ("train", "valid", "test")}
    network = builders.build(architecture, task.form(protocol), seed)
    network.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    total = protocol.epochs * parts["train"].steps(protocol)
    steps = Steps(network, task, protocol, total, overrides, precision, seed)
    return Training(network, task, protocol, parts, steps, seed, start)


def _identity(
    architecture: Architecture,
    task: Task,
    protocol: TrainingProtocol,
    splits: Splits,
    seed: int,
    device: torch.device,
    precision: str,
    hyperparameters: Mapping[str, Any],
) -> dict[str, Any]:
    """Return what a checkpoint must agree on for this training to resume from it, as JSON values.

    Inherited weights do not count: another ancestor may be available when the trial is resumed, and the checkpoint
    holds the weights that the first attempt started from.
    """
    targets = hashlib.sha256(b"".join(part.targets.tobytes() for part in (splits.train, splits.valid, splits.test)))
    return {
        "architecture": codec.to_dict(architecture),
        "task": task.name,
        "data": targets.hexdigest(),
        "protocol": protocol.as_dict(),
        "seed": seed,
        "hyperparameters": dict(hyperparameters),
        "device": device.type,
        "precision": precision,
    }


def _start_from(training: Training, initial: Initial, inherited: Mapping[str, Any]) -> None:
    try:
        weights = initial if isinstance(initial, Mapping) else initial()
    except CheckpointError as error:
        if training.protocol.inherited_epochs is not None:
            raise
        log.warning("starts from the seed reason=%r", error.reason)
        training.inherited = {"error": error.reason}
        return
    try:
        training.network.load_state_dict(weights)
    except RuntimeError as error:
        # The first line of torch's message has no details.
        why = "; ".join(line.strip() for line in str(error).splitlines()[1:3])
        raise TrainingError(f"the weights to start from do not fit the network: {why}") from error
    training.inherited = dict(inherited)


def _outcome(training: Training, ended: str, precision: str) -> Outcome:
    task, network, best, curve = training.task, training.network, training.best, training.curve
    best.restore()
    _, test_metric = evaluate(network, training.parts["test"], task, autocast=training.steps.autocast)
    size = costs.measure(network, task.input_shape)
    metrics = {
        "train_loss": curve["train_loss"][best.epoch - 1],
        "valid_loss": best.loss,
        f"test_{task.metric}": test_metric,
        "best_epoch": float(best.epoch),
        "params": float(size.params),
        "flops": float(size.flops),
    }
    return Outcome(
        value=best.metric,
        metrics=metrics,
        curve=curve,
        epochs=training.epochs,
        seconds=training.seconds,
        weights={name: tensor.cpu() for name, tensor in best.weights.items()},
        ended=ended,
        resumed=training.resumed,
        precision=precision,
        inherited=training.inherited,
    )
