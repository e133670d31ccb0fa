"""Training: one network, one task, one seed, one device.

    network ── shuffled batches ──> steps ──> validation ──> callback      once an epoch, until it converges
                                                 └─ best so far: weights kept aside, tested once at the end

The same architecture (in whatever order its layers stand), task, protocol, seed and number of threads give the same
result to the last bit on one CPU, however often the training was interrupted and resumed; on a GPU, the same up to the
order of its sums.
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
from archive.trainer.datasets.tensors import Batches, Splits
from archive.trainer.fit import precision as precisions
from archive.trainer.fit.evaluate import measure
from archive.trainer.fit.hyperparameters import Hyperparameters
from archive.trainer.fit.loop import OnEpoch, Training
from archive.trainer.fit.steps import Steps
from archive.trainer.nn.network import Network
from archive.trainer.tasks.base import Task
from archive.trainer.tasks.protocol import Protocol
from archive.trainer.trial.failures import out_of_memory
from archive.trainer.trial.session import Metrics, Session

log = logging.getLogger("archive.trainer")

Initial = Mapping[str, Tensor] | Callable[[], Mapping[str, Tensor]]
"""Weights to start from by the names of `Network.state_dict`, or what returns them."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a finished trial found.

    Attributes:
        value: The task's metric on the validation part, at the best epoch, in the task's own unit.
        metrics: Beside it `valid_loss`, `train_loss`, the metric on the test part (`test_accuracy`, `test_mse`), all
            at the best epoch, `best_epoch`, `params` and `flops` (see `Network`).
        curve: `epoch`, `train_loss`, `valid_loss`, `valid_<metric>` and `seconds` since the start, parallel lists.
        epochs: Number of epochs run.
        seconds: Wall time from the building of the network to the last test; of all attempts, if it was resumed.
        weights: Tensors of the best epoch by name, on the CPU.
        ended: Why: `epochs` (all of the protocol's), `rung` (those asked for), or the protocol's rule of convergence.
        resumed: How often it was resumed.
        precision: `float32` or `bf16`.
        inherited: What is on record of the weights it started from: JSON values; empty when it started from its seed.
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
    protocol: Protocol | None = None,
    *,
    seed: int = 0,
    device: str = "cpu",
    on_epoch: OnEpoch | None = None,
    hyperparameters: Mapping[str, Any] | None = None,
    initial: Initial | None = None,
    inherited: Mapping[str, Any] | None = None,
    epochs: int | None = None,
    precision: str = "auto",
    session: Session | None = None,
) -> Outcome:
    """Train a network and measure it.

    Args:
        architecture: The network; its canonical order is what is built, so that relabellings are trained alike.
        task: What to learn.
        protocol: By which rules; the task's default if None.
        seed: Of the initial weights and of the order of the inputs.
        device: As torch names it.
        on_epoch: Called after each epoch with that epoch's entries of the curve.
        hyperparameters: What differs from the protocol (`archive.trainer.fit.hyperparameters`).
        initial: Weights to start from, in the canonical order; None draws them from the seed. What returns them is
            called unless a state is resumed, and may raise CheckpointError: the seed must do, then, unless the
            protocol has other rules for networks that inherit.
        inherited: What to put on record of `initial`, as JSON values.
        epochs: Train up to this epoch, with the schedule of all of the protocol's; None means all. Its outcome is what
            the whole training would have found by then, and the session keeps the state.
        precision: `auto`, `float32`, `bf16` or `tf32` (`archive.trainer.fit.precision`).
        session: Keeps the state and may ask the training to leave; None stands alone.

    Raises:
        UnknownNameError: There is no hyperparameter of a name.
        UsageError: The value of an argument cannot be used.
        InvalidArchitectureError: The network does not suit the task.
        TrainingError: The loss is no longer finite, memory ran out, or the initial weights do not fit.
        CheckpointError: The initial weights cannot be had, and these are the rules of a network that has some.
        Left: The session was asked to leave.
    """
    start = time.perf_counter()
    protocol = protocol or task.protocol()
    until = protocol.epochs if epochs is None else epochs
    if not 1 <= until <= protocol.epochs:
        raise UsageError(f"epochs must be between 1 and the {protocol.epochs} of {protocol.name}, got {until}")
    architecture, session, on = architecture.canonical, session or Session(), torch.device(device)
    wanted = Hyperparameters.of(hyperparameters or {})
    numbers = precisions.choose(precision, on)
    try:
        splits = task.load(protocol)
        with precisions.units(numbers):
            training = _prepared(architecture, task, protocol, splits, wanted, seed, on, numbers, start)
            state = session.resume(_job(architecture, task, protocol, splits, seed, on, numbers, hyperparameters or {}))
            if state is not None and len(state.about["curve"].get("epoch", ())) <= until:
                training.resume(state)
                log.info("resumed epoch=%d steps=%d", training.epochs, training.steps.done)
            elif initial is not None:
                _start_from(training, initial, inherited or {})
            ended = training.run(until, session, on_epoch)
            if ended == "rung":
                session.save(training.state(), training.epochs)
            return _outcome(training, ended, numbers)
    except RuntimeError as error:
        if (reason := out_of_memory(error)) is None:
            raise
        raise TrainingError(f"out of memory on {device}: {reason}") from error


def _prepared(
    architecture: Architecture,
    task: Task,
    protocol: Protocol,
    splits: Splits,
    wanted: Hyperparameters,
    seed: int,
    device: torch.device,
    precision: str,
    start: float,
) -> Training:
    parts = {name: Batches.of(getattr(splits, name), device) for name in ("train", "valid", "test")}
    normalise = protocol.normalisation == "batch"
    network = Network(architecture, task.input_shape, task.outputs, task.kind, normalise=normalise, seed=seed)
    network.drop_out(wanted.of_layers("dropout", len(network.weighted), 0.0), seed)
    network.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    total = protocol.epochs * parts["train"].steps(protocol)
    steps = Steps(network, task, protocol, total, wanted, precision)
    return Training(network, task, protocol, parts, steps, seed, start)


def _job(
    architecture: Architecture,
    task: Task,
    protocol: Protocol,
    splits: Splits,
    seed: int,
    device: torch.device,
    precision: str,
    hyperparameters: Mapping[str, Any],
) -> dict[str, Any]:
    """Return what must be equal for a state to be gone on from, as JSON values.

    Weights that were inherited are not in it: another start may be at hand when the trial is resumed, and the
    one that it had is in the state.
    """
    answers = hashlib.sha256(b"".join(part.targets.tobytes() for part in (splits.train, splits.valid, splits.test)))
    return {
        "architecture": codec.to_dict(architecture),
        "task": task.name,
        "data": answers.hexdigest(),
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
        log.warning("starts from its seed reason=%r", error.reason)
        training.inherited = {"error": error.reason}
        return
    try:
        training.network.load_state_dict(weights)
    except RuntimeError as error:
        # The first line of torch's message says no more than that.
        why = "; ".join(line.strip() for line in str(error).splitlines()[1:3])
        raise TrainingError(f"the weights to start from do not fit the network: {why}") from error
    training.inherited = dict(inherited)


def _outcome(training: Training, ended: str, precision: str) -> Outcome:
    task, network, best, curve = training.task, training.network, training.best, training.curve
    best.restore()
    _, test_metric = measure(network, training.parts["test"], task, computing=training.steps.computing)
    metrics = {
        "train_loss": curve["train_loss"][best.epoch - 1],
        "valid_loss": best.loss,
        f"test_{task.metric}": test_metric,
        "best_epoch": float(best.epoch),
        "params": float(network.params),
        "flops": float(network.flops),
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
