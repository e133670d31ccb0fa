"""The default recipe: training of one network on one task, with one seed, on one device.

    network ── batches ──> steps ──> validation ──> report      once an epoch, until convergence
                                        └─ best so far: weights copied, tested once at the end

The same architecture (in any order of its layers), task, protocol, seed and number of threads give
the same result to the last bit on one CPU, however often the training was interrupted and resumed;
on a GPU, the same up to the order of its sums.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from archive.architecture.graph import Architecture
from archive.errors import TrainingError
from archive.trainer.datasets.splits import Splits
from archive.trainer.fit import loop
from archive.trainer.fit import precision as precisions
from archive.trainer.fit.batches import Batches
from archive.trainer.fit.evaluate import evaluate
from archive.trainer.fit.hyperparameters import Hyperparameters
from archive.trainer.fit.loop import Training
from archive.trainer.fit.memory import out_of_memory
from archive.trainer.fit.steps import Steps
from archive.trainer.nn import costs
from archive.trainer.protocols.base import TrainingProtocol
from archive.trainer.recipes.base import FitResult, Resources, Stop
from archive.trainer.recipes.context import Initial, TrialContext
from archive.trainer.recipes.curve import Metrics
from archive.trainer.recipes.run import Outcome, run
from archive.trainer.tasks.base import Task

log = logging.getLogger("archive.trainer")


def fit(trial: TrialContext) -> FitResult:
    """Train a network and evaluate it.

    The metrics of the result are `valid_<metric>`, `valid_loss`, `train_loss` and the metric on the
    test part (`test_accuracy`, `test_mse`), all at the best epoch; `best_epoch`, `params` and
    `flops` (`archive.trainer.nn.costs`). The task's metric on the validation part chooses the best
    epoch, whatever the study optimises; the weights are the best epoch's.

    Raises:
        UnknownNameError: There is no hyperparameter of a name.
        UsageError: The value of a hyperparameter, or the precision, cannot be used.
        InvalidArchitectureError: The network does not suit the task.
        TrainingError: The loss is no longer finite, memory ran out, or the inherited weights do not
            fit.
        WeightsError: The inherited weights cannot be loaded, and the protocol has rules for
            networks with such.
    """
    device = torch.device(trial.device)
    overrides = Hyperparameters.of(trial.hyperparameters)
    precision = precisions.choose(trial.precision, device)
    try:
        with precisions.tf32_units(precision), loop.seed_generators(trial.seed, device):
            splits = trial.data()
            training = _prepare(trial, splits, overrides, device, precision)
            saved = trial.checkpoint.load({"data": _digest(splits), "precision": precision})
            if saved is not None:
                training.resume(saved)
                log.info("resumed epoch=%d steps=%d", trial.reports, training.steps.done)
            else:
                _inherit(training)

            ended = training.run()
            if ended is None:
                return FitResult()

            if ended == Stop.RUNG:
                training.save()

            return _result(training, ended, precision)
    except RuntimeError as error:
        if (reason := out_of_memory(error)) is None:
            raise

        raise TrainingError(f"out of memory on {device}: {reason}") from error


def train(
    architecture: Architecture,
    task: Task,
    protocol: TrainingProtocol | None = None,
    *,
    seed: int = 0,
    device: str = "cpu",
    on_epoch: Callable[[Metrics], None] | None = None,
    hyperparameters: Mapping[str, Any] | None = None,
    initial: Initial | None = None,
    inherited: Mapping[str, Any] | None = None,
    epochs: int | None = None,
    precision: str = "auto",
    checkpoint: Path | None = None,
) -> Outcome:
    """Run the default recipe in this process.

    Args:
        architecture: The network; built in its canonical order, so that relabellings are trained
            alike.
        task: Task to learn.
        protocol: Training protocol; if None, the task's default for the space.
        seed: Seed of the initial weights and of the order of the inputs.
        device: Device in torch's notation.
        on_epoch: Called after each epoch with that epoch's entries of the curve.
        hyperparameters: Overrides of the protocol (`archive.trainer.fit.hyperparameters`).
        initial: Initial weights, in the canonical order; None draws them from the seed.
        inherited: Record of `initial` in the outcome, as JSON values.
        epochs: Train up to this epoch, with the schedule of all of the protocol's; None trains all.
            The outcome equals the whole training's at this epoch, and a checkpoint is saved.
        precision: `auto`, `float32`, `bf16` or `tf32` (`archive.trainer.fit.precision`).
        checkpoint: File of the checkpoint; None saves none.

    Raises:
        UsageError: The number of epochs is not one of the protocol's; see also `fit`.
    """
    trial = TrialContext(
        architecture,
        task,
        protocol,
        seed=seed,
        hyperparameters=hyperparameters,
        epochs=epochs,
        precision=precision,
        resources=Resources((device,)),
        initial=initial,
        inherited=inherited,
        checkpoint=checkpoint,
        on_report=None if on_epoch is None else lambda row, _: on_epoch(row),
    )
    return run(fit, trial)


def _prepare(
    trial: TrialContext,
    splits: Splits,
    overrides: Hyperparameters,
    device: torch.device,
    precision: str,
) -> Training:
    parts = {name: Batches.of(getattr(splits, name), device) for name in ("train", "valid", "test")}
    network = trial.module()
    if next(network.parameters(), None) is None:
        raise TrainingError("the network has no weights to train")

    network.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    protocol = trial.protocol
    total = protocol.epochs * parts["train"].steps(protocol)
    steps = Steps(network, trial.task, protocol, total, overrides, precision, trial.seed)
    return Training(network, parts, steps, trial)


def _digest(splits: Splits) -> str:
    parts = (splits.train, splits.valid, splits.test)
    return hashlib.sha256(b"".join(part.targets.tobytes() for part in parts)).hexdigest()


def _inherit(training: Training) -> None:
    weights = training.trial.inherited_weights()
    if weights is None:
        return

    try:
        training.network.load_state_dict(weights)
    except RuntimeError as error:
        # The first line of torch's message has no details.
        why = "; ".join(line.strip() for line in str(error).splitlines()[1:3])
        raise TrainingError(f"the weights to start from do not fit the network: {why}") from error


def _result(training: Training, ended: str, precision: str) -> FitResult:
    task = training.task
    network = training.network
    best = training.best
    curve = training.trial.curve
    best.restore()
    _, test_metric = evaluate(
        network, training.parts["test"], task, autocast=training.steps.autocast
    )
    size = costs.measure(network, task.input_shape)
    metrics = {
        task.objective: best.metric,
        "train_loss": curve["train_loss"][best.epoch - 1],
        "valid_loss": best.loss,
        f"test_{task.metric}": test_metric,
        "best_epoch": float(best.epoch),
        "params": float(size.params),
        "flops": float(size.flops),
    }
    environment: dict[str, Any] = {"precision": precision}
    if training.steps.graphs:
        environment["cuda_graphs"] = len(training.steps.graphs)

    return FitResult(metrics, best.weights, str(ended), environment)
