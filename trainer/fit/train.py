"""The default recipe: training of one network on one task, with one seed, on one device.

    network ── batches ──> steps ──> validation ──> report      once an epoch, until convergence
                                        └─ best so far: weights copied, tested once at the end

The same architecture (in any order of its layers), task, protocol, seed and number of threads give
the same result to the last bit on one CPU, however often the training was interrupted and resumed;
on a GPU, the same up to the order of its sums.

A checkpoint may be due after each step. It holds the network, the best epoch's weights, the
optimisers' state and their position in the schedule, the generator of the batches at the begin of
the epoch with the losses of the batches since, and the generators of dropout and of torch. Modules
such as `nn.Dropout` draw from torch's.

Early stopping is a function of the curve, so that a resumed trial ends where one that was never
interrupted does. The rules of `TrainingProtocol.convergence`:

| rule        | training ends after `patience` epochs                                             |
|-------------|-----------------------------------------------------------------------------------|
| `patience`  | since the one with the best validation metric; the loss breaks ties               |
| `threshold` | in a row whose validation loss is not lower by `threshold` than the lowest so far |

`threshold` is the rule of Auto-Keras (arXiv:1806.10282), taken there from scikit-learn's
MLPClassifier.
"""

from __future__ import annotations

import hashlib
import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from archive.architecture.graph import Architecture
from archive.errors import TrainingError
from archive.trainer.datasets.splits import Splits
from archive.trainer.fit import precision as precisions
from archive.trainer.fit.batches import Batches
from archive.trainer.fit.evaluate import BestEpoch, evaluate, weights_of
from archive.trainer.fit.hyperparameters import Hyperparameters
from archive.trainer.fit.memory import out_of_memory
from archive.trainer.fit.steps import Steps, under
from archive.trainer.nn import builders, costs
from archive.trainer.protocols.base import TRAINING_FLOPS, TrainingProtocol
from archive.trainer.recipes.base import FitResult, Resources, Stop
from archive.trainer.recipes.checkpoint import SavedState
from archive.trainer.recipes.context import Initial, TrialContext
from archive.trainer.recipes.curve import Metrics
from archive.trainer.recipes.run import Outcome, run
from archive.trainer.tasks.base import Task

log = logging.getLogger("archive.trainer")


def fit(trial: TrialContext) -> FitResult:
    """Train a network and evaluate it.

    The metrics of the result are `valid_<metric>`, `valid_loss`, `train_loss` and the metric on the
    test part (`test_accuracy`, `test_mse`), all at the best epoch; `best_epoch`, `params` and
    `flops` (`archive.trainer.nn.costs`). A regression also has `valid_rmse` and `test_rmse`, in the
    unit of the target. The task's metric on the validation part chooses the best
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
        with precisions.tf32_units(precision), seed_generators(trial.seed, device):
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
    protocol = overrides.protocol_of(trial.protocol)
    total = protocol.epochs * parts["train"].steps(protocol)
    weights = weights_of(protocol, parts["train"].targets, trial.task.outputs)
    steps = Steps(network, trial.task, protocol, total, overrides, precision, trial.seed, weights)
    return Training(network, parts, steps, trial, splits.target)


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
    metrics |= _further(training)
    if task.metric == "mse" and training.target is not None:
        _, deviation = training.target
        metrics["valid_rmse"] = deviation * math.sqrt(best.metric)
        metrics["test_rmse"] = deviation * math.sqrt(test_metric)

    environment: dict[str, Any] = {"precision": precision}
    if training.steps.graphs:
        environment["cuda_graphs"] = len(training.steps.graphs)

    return FitResult(metrics, best.weights, str(ended), environment)


def _further(training: Training) -> dict[str, float]:
    """Return further costs of the network, and the tokens of a training on text."""
    trial = training.trial
    further: dict[str, float] = {}
    if trial.architecture.space in builders.names():
        form = training.task.form(training.protocol)
        further |= builders.further_costs(trial.architecture.network, form)

    if training.protocol.tokens is not None:
        taken = training.steps.done * training.protocol.batch * training.task.input_shape[0]
        further["tokens"] = float(taken)
        per_token = further.get("flops_per_token")
        if per_token is not None:
            further["train_flops"] = TRAINING_FLOPS * per_token * taken

    return further


@contextmanager
def seed_generators(seed: int, device: torch.device) -> Iterator[None]:
    """Seed the generators of the CPU and of a device, and restore them afterwards."""
    before = read_generators(device)
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)

    try:
        yield
    finally:
        restore_generators(before, device)


def read_generators(device: torch.device) -> dict[str, Tensor]:
    """Return the states of the generators of the CPU and of a device, by name."""
    states = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)

    return states


def restore_generators(states: Mapping[str, Tensor], device: torch.device) -> None:
    """Restore the states that `read_generators` returned; a missing one is left as it is."""
    if "cpu" in states:
        torch.set_rng_state(states["cpu"].cpu())

    if "cuda" in states and device.type == "cuda":
        torch.cuda.set_rng_state(states["cuda"].cpu(), device)


class Training:
    """A network with everything that changes during its training.

    Args:
        network: The network, on its device.
        parts: `train`, `valid` and `test`, on the network's device.
        steps: The network's optimisers.
        trial: The trial; its reports are the whole epochs so far.
        target: Mean and deviation of the target before it was standardised; None if not known.

    Attributes:
        best: The best epoch so far.
    """

    def __init__(
        self,
        network: nn.Module,
        parts: Mapping[str, Batches],
        steps: Steps,
        trial: TrialContext,
        target: tuple[float, float] | None = None,
    ) -> None:
        self.network = network
        self.parts = parts
        self.steps = steps
        self.trial = trial
        self.target = target
        self.task = trial.task
        self.protocol = steps.protocol
        self.best = BestEpoch(network, maximise=self.task.direction == "maximise")
        self._order = torch.Generator().manual_seed(trial.seed)
        self._order_before = self._order.get_state()
        self._losses: list[Tensor] = []
        self._inputs = 0

    def run(self) -> str | None:
        """Train, and return the reason of the end: `epochs`, `rung`, or the rule of convergence.

        Returns:
            None if the trial was interrupted.

        Raises:
            TrainingError: The loss is no longer finite.
        """
        while (end := self._end()) is None:
            if not self._epoch():
                return None

        return end

    def save(self) -> None:
        """Save the state after the last step."""
        state = {
            "best": [self.best.epoch, self.best.metric, self.best.loss],
            "steps": self.steps.done,
            "inputs": self._inputs,
        }
        parts = {
            "network": self.network.state_dict(),
            "best": self.best.weights,
            "optimiser": self.steps.state(),
            "drop": self.steps.dropout.states(),
            "random": read_generators(self.parts["train"].targets.device),
        }
        tensors: dict[str, Tensor] = {}
        for part, named in parts.items():
            for name, tensor in named.items():
                tensors[f"{part}.{name}"] = tensor

        tensors["order"] = self._order_before if self._losses else self._order.get_state()
        if self._losses:
            tensors["losses"] = torch.stack(self._losses)

        self.trial.checkpoint.save(state, tensors=tensors)

    def resume(self, saved: SavedState) -> None:
        """Restore a saved state; the training continues as if there had been no interruption."""
        state: Mapping[str, Any] = saved.state
        tensors = saved.tensors
        self.network.load_state_dict(under("network.", tensors))
        epoch, metric, loss = state["best"]
        self.best.resume(epoch, metric, loss, under("best.", tensors))
        self.steps.resume(state["steps"], under("optimiser.", tensors))
        device = self.parts["train"].targets.device
        self.steps.dropout.restore(under("drop.", tensors), device)
        restore_generators(under("random.", tensors), device)
        self._order.set_state(tensors["order"])
        self._losses = list(tensors["losses"].to(device).unbind()) if "losses" in tensors else []
        self._inputs = state["inputs"]

    def _end(self) -> str | None:
        trial = self.trial
        if trial.reports == 0 or self._losses:
            return None

        if has_converged(self.protocol, self.best.epoch, trial.curve["valid_loss"]):
            return self.protocol.convergence

        if trial.reports >= trial.epochs:
            return Stop.EPOCHS if trial.epochs >= self.protocol.epochs else Stop.RUNG

        return None

    def _epoch(self) -> bool:
        """Train and validate one epoch; False if the trial was interrupted."""
        train_loss = self._pass()
        if train_loss is None:
            return False

        valid_loss, valid_metric = evaluate(
            self.network, self.parts["valid"], self.task, autocast=self.steps.autocast
        )
        epoch = self.trial.reports + 1
        _check_finite(epoch, train_loss=train_loss, valid_loss=valid_loss)
        self.best.update(epoch, valid_metric, valid_loss)
        self.trial.report(
            epoch,
            {"train_loss": train_loss, "valid_loss": valid_loss, self.task.objective: valid_metric},
        )
        return True

    def _pass(self) -> float | None:
        """Take the remaining steps of one epoch.

        Returns:
            The mean loss of its inputs, each before its own step; None if the trial was
            interrupted, after its state was saved.
        """
        self._order_before = self._order.get_state()
        # The batches before a resumption are drawn again, which brings the generator to where it
        # was.
        batches = self.parts["train"].epoch(self.protocol, self._order, first=len(self._losses))
        self.network.train()
        trial = self.trial
        for inputs, targets in batches:
            self._losses.append(self.steps.take(inputs, targets))
            self._inputs += len(targets)
            if trial.checkpoint.due():
                self.save()
                if trial.stop is Stop.INTERRUPTED:
                    return None

        # One sum for the epoch: to read a number back after each step would stall a GPU.
        loss = float(torch.stack(self._losses).sum()) / self._inputs
        self._losses = []
        self._inputs = 0
        return loss


def _check_finite(epoch: int, **losses: float) -> None:
    for name, loss in losses.items():
        if not math.isfinite(loss):
            raise TrainingError(f"training diverged: {name} is {loss} in epoch {epoch}")


def has_converged(protocol: TrainingProtocol, best_epoch: int, losses: Sequence[float]) -> bool:
    """Whether training should end.

    Args:
        protocol: Protocol with the rule, its patience and its threshold.
        best_epoch: The epoch with the best validation metric, from 1.
        losses: Validation loss of each epoch so far.
    """
    if protocol.convergence == "threshold":
        return _without_improvement(losses, protocol.threshold) >= protocol.patience

    return len(losses) - best_epoch >= protocol.patience


def _without_improvement(losses: Sequence[float], threshold: float) -> int:
    """Return the number of last epochs in a row that did not lower the loss by the threshold."""
    lowest = math.inf
    count = 0
    for loss in losses:
        if loss > lowest - threshold:
            count += 1
        else:
            lowest = loss
            count = 0

    return count
