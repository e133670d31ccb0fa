"""The training loop: one network, one task, one seed, one device.

    network ── shuffled batches ──> steps ──> validation ──> callback      once an epoch, until patience ends
                                                 └─ best so far: weights kept aside, tested once at the end

The same architecture (in whatever order its layers stand), task, protocol, seed and number of threads give the same
result to the last bit on one CPU; on a GPU, the same up to the order of its sums.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from archive.errors import TrainingError
from archive.graph import Architecture
from archive.trainer.build import Network
from archive.trainer.data import Batches
from archive.trainer.hyperparameters import Hyperparameters
from archive.trainer.optimiser import Optimiser
from archive.trainer.tasks import Protocol, Task

Metrics = dict[str, float]
OnEpoch = Callable[[Metrics], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a finished trial found.

    Attributes:
        value: The task's metric on the validation part, at the best epoch, in the task's own unit.
        metrics: Beside it `valid_loss`, `train_loss`, the metric on the test part (`test_accuracy`, `test_mse`), all
            at the best epoch, `best_epoch`, `params` and `flops` (see `Network`).
        curve: `epoch`, `train_loss`, `valid_loss`, `valid_<metric>` and `seconds` since the start, parallel lists.
        epochs: Number of epochs run.
        seconds: Wall time from the building of the network to the last test.
        weights: Tensors of the best epoch by name, on the CPU.
    """

    value: float
    metrics: Metrics
    curve: dict[str, list[float]]
    epochs: int
    seconds: float
    weights: dict[str, Tensor] = field(repr=False)


def train(
    architecture: Architecture,
    task: Task,
    protocol: Protocol | None = None,
    *,
    seed: int = 0,
    device: str = "cpu",
    on_epoch: OnEpoch | None = None,
    hyperparameters: Mapping[str, Any] | None = None,
) -> Outcome:
    """Train a network and measure it.

    Args:
        architecture: The network; its canonical order is what is built, so that relabellings are trained alike.
        task: What to learn.
        protocol: By which rules; the task's default if None.
        seed: Of the initial weights and of the order of the inputs.
        device: As torch names it.
        on_epoch: Called after each epoch with that epoch's entries of the curve.
        hyperparameters: What differs from the protocol (`archive.trainer.hyperparameters`).

    Raises:
        UnknownNameError: There is no hyperparameter of a name.
        UsageError: The value of a hyperparameter cannot be used.
        InvalidArchitectureError: The network does not suit the task.
        TrainingError: The loss is no longer finite, or memory ran out.
    """
    protocol = protocol or task.protocol()
    start = time.perf_counter()
    try:
        wanted = Hyperparameters.of(hyperparameters or {})
        return _train(architecture.canonical, task, protocol, wanted, seed, torch.device(device), on_epoch, start)
    except torch.OutOfMemoryError as error:
        raise TrainingError(f"out of memory on {device}: {str(error).splitlines()[0]}") from error


def _train(
    architecture: Architecture,
    task: Task,
    protocol: Protocol,
    wanted: Hyperparameters,
    seed: int,
    device: torch.device,
    on_epoch: OnEpoch | None,
    start: float,
) -> Outcome:
    splits = task.load(protocol)
    parts = {name: Batches.of(getattr(splits, name), device) for name in ("train", "valid", "test")}
    normalise = protocol.normalisation == "batch"
    network = Network(architecture, task.input_shape, task.outputs, task.kind, normalise=normalise, seed=seed)
    network.drop_out(wanted.of_layers("dropout", len(network.weighted), 0.0), seed)
    network.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    steps = Steps(network, task, protocol, len(parts["train"]), wanted)
    order = torch.Generator().manual_seed(seed)
    best = Best(network, maximise=task.direction == "maximise")
    curve: dict[str, list[float]] = {}

    for epoch in range(1, protocol.epochs + 1):
        train_loss = steps.epoch(parts["train"].shuffled(protocol.batch, order))
        valid_loss, valid_metric = measure(network, parts["valid"], task)
        _check_finite(epoch, train_loss=train_loss, valid_loss=valid_loss)
        now = {
            "epoch": float(epoch),
            "train_loss": train_loss,
            "valid_loss": valid_loss,
            task.objective: valid_metric,
            "seconds": time.perf_counter() - start,
        }
        for name, entry in now.items():
            curve.setdefault(name, []).append(entry)
        best.update(epoch, valid_metric, valid_loss)
        if on_epoch is not None:
            on_epoch(now)
        if epoch - best.epoch >= protocol.patience:
            break

    best.restore()
    _, test_metric = measure(network, parts["test"], task)
    metrics = {
        "train_loss": curve["train_loss"][best.epoch - 1],
        "valid_loss": best.loss,
        f"test_{task.metric}": test_metric,
        "best_epoch": float(best.epoch),
        "params": float(network.params),
        "flops": float(network.flops),
    }
    return Outcome(best.metric, metrics, curve, epoch, time.perf_counter() - start, best.weights)


class Steps:
    """The optimiser's steps, with the learning rate that the protocol lays over them."""

    def __init__(
        self,
        network: Network,
        task: Task,
        protocol: Protocol,
        inputs: int,
        wanted: Hyperparameters = Hyperparameters(),  # noqa: B008  immutable
    ) -> None:
        """Prepare optimisers and schedule for all the epochs to come."""
        self.network, self.task, self.protocol = network, task, protocol
        self.optimisers = _optimisers(network, protocol, wanted)
        bounds = wanted.of_layers("max_norm", len(network.weighted), math.inf)
        self.bounded = [
            (parameter, bound)
            for layer, bound in zip(network.weighted, bounds, strict=True)
            for parameter in layer.parameters()
            if parameter.ndim > 1 and bound < math.inf
        ]
        self.total = protocol.epochs * -(-inputs // protocol.batch)
        self.done = 0

    def epoch(self, batches: Iterator[tuple[Tensor, Tensor]]) -> float:
        """Take one step a batch; return the mean loss of the inputs, each at its own step."""
        self.network.train()
        losses, count = [], 0
        for inputs, targets in batches:
            loss = loss_of(self.network(inputs), targets, self.task)
            loss.backward()  # type: ignore[no-untyped-call]
            for optimiser, rate in self.optimisers:
                optimiser.step(rate * self._factor())
            self._bound()
            self.done += 1
            losses.append(loss.detach() * len(targets))
            count += len(targets)
        # One sum for the epoch: a number read back after each step would make a GPU wait for it.
        return float(torch.stack(losses).sum()) / count

    def _factor(self) -> float:
        return _factor(self.done / self.total, self.protocol.warmup)

    @torch.no_grad()
    def _bound(self) -> None:
        for parameter, bound in self.bounded:
            norms = torch.linalg.vector_norm(parameter.flatten(1), dim=1).clamp(min=bound)
            parameter.mul_((bound / norms).reshape(-1, *[1] * (parameter.ndim - 1)))


def _optimisers(network: Network, protocol: Protocol, wanted: Hyperparameters) -> list[tuple[Optimiser, float]]:
    """Return optimisers with the peaks of their learning rates: one, unless layers differ."""
    count = len(network.weighted)
    rates = wanted.of_layers("learning_rate", count, protocol.learning_rate)
    decays = wanted.of_layers("weight_decay", count, protocol.weight_decay)
    each = [replace(protocol, weight_decay=decay) for decay in decays]
    if len({*zip(rates, decays, strict=True)}) == 1:
        return [(Optimiser(network.parameters(), each[0]), rates[0])]
    layers = zip(network.weighted, each, rates, strict=True)
    return [(Optimiser(layer.parameters(), own), rate) for layer, own, rate in layers]


class Best:
    """The best epoch so far, with a copy of its weights; the loss decides between equal metrics."""

    def __init__(self, network: nn.Module, maximise: bool) -> None:
        """Begin with no epoch."""
        self.network, self.sign = network, 1.0 if maximise else -1.0
        self.epoch, self.metric, self.loss = 0, -math.inf * self.sign, math.inf
        self.weights: dict[str, Tensor] = {}

    def update(self, epoch: int, metric: float, loss: float) -> None:
        """Keep the network's weights if this epoch is better than all before."""
        if (self.sign * metric, -loss) > (self.sign * self.metric, -self.loss):
            self.epoch, self.metric, self.loss = epoch, metric, loss
            self.weights = {name: tensor.detach().cpu().clone() for name, tensor in self.network.state_dict().items()}

    def restore(self) -> None:
        """Give the network the weights of the best epoch."""
        self.network.load_state_dict(self.weights)


@torch.inference_mode()
def measure(network: nn.Module, part: Batches, task: Task, batch: int = 2048) -> tuple[float, float]:
    """Return the mean loss and the task's metric on a part."""
    network.eval()
    outputs = torch.cat([network(inputs) for inputs in torch.split(part.inputs, batch)])
    loss = float(loss_of(outputs, part.targets, task))
    if task.metric == "accuracy":
        return loss, float((outputs.argmax(dim=1) == part.targets).double().mean())
    return loss, loss


def loss_of(outputs: Tensor, targets: Tensor, task: Task) -> Tensor:
    """Return the negative log-likelihood of the classes, or the mean squared error."""
    if task.kind == "classification":
        return F.nll_loss(outputs, targets)
    return F.mse_loss(outputs, targets)


def _check_finite(epoch: int, **losses: float) -> None:
    for name, loss in losses.items():
        if not math.isfinite(loss):
            raise TrainingError(f"training diverged: {name} is {loss} in epoch {epoch}")


def _factor(progress: float, warmup: float) -> float:
    """Return the factor of the learning rate at a progress in [0, 1]: a line up, a cosine down."""
    if progress < warmup:
        return 0.1 + 0.9 * progress / warmup
    return 0.5 * (1 + math.cos(math.pi * (progress - warmup) / (1 - warmup)))
