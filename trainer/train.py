"""The training loop: one network, one task, one seed, one device.

    network ── shuffled batches ──> steps ──> validation ──> callback      once an epoch, until patience ends
                                                 └─ best so far: weights kept aside, tested once at the end

The same architecture (in whatever order its layers stand), task, protocol, seed and number of threads give the same
result to the last bit on one CPU; on a GPU, the same up to the order of its sums.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from archive.errors import TrainingError
from archive.graph import Architecture
from archive.trainer.build import Network
from archive.trainer.data import Batches
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
) -> Outcome:
    """Train a network and measure it.

    Args:
        architecture: The network; its canonical order is what is built, so that relabellings are trained alike.
        task: What to learn.
        protocol: By which rules; the task's default if None.
        seed: Of the initial weights and of the order of the inputs.
        device: As torch names it.
        on_epoch: Called after each epoch with that epoch's entries of the curve.

    Raises:
        InvalidArchitectureError: The network does not suit the task.
        TrainingError: The loss is no longer finite, or memory ran out.
    """
    protocol = protocol or task.protocol()
    start = time.perf_counter()
    try:
        return _train(architecture.canonical, task, protocol, seed, torch.device(device), on_epoch, start)
    except torch.OutOfMemoryError as error:
        raise TrainingError(f"out of memory on {device}: {str(error).splitlines()[0]}") from error


def _train(
    architecture: Architecture,
    task: Task,
    protocol: Protocol,
    seed: int,
    device: torch.device,
    on_epoch: OnEpoch | None,
    start: float,
) -> Outcome:
    splits = task.load(protocol)
    parts = {name: Batches.of(getattr(splits, name), device) for name in ("train", "valid", "test")}
    normalise = protocol.normalisation == "batch"
    network = Network(architecture, task.input_shape, task.outputs, task.kind, normalise=normalise, seed=seed)
    network.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    steps = Steps(network, task, protocol, len(parts["train"]))
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

    def __init__(self, network: Network, task: Task, protocol: Protocol, inputs: int) -> None:
        """Prepare optimiser and schedule for all the epochs to come."""
        self.network, self.task = network, task
        self.optimiser = _optimiser(network, protocol)
        total = protocol.epochs * -(-inputs // protocol.batch)
        self.schedule = LambdaLR(self.optimiser, lambda step: _learning_rate(step / total, protocol.warmup))

    def epoch(self, batches: Iterator[tuple[Tensor, Tensor]]) -> float:
        """Take one step a batch; return the mean loss of the inputs, each at its own step."""
        self.network.train()
        losses, count = [], 0
        for inputs, targets in batches:
            self.optimiser.zero_grad(set_to_none=True)
            loss = loss_of(self.network(inputs), targets, self.task)
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimiser.step()
            self.schedule.step()
            losses.append(loss.detach() * len(targets))
            count += len(targets)
        # One sum for the epoch: a number read back after each step would make a GPU wait for it.
        return float(torch.stack(losses).sum()) / count


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


def _optimiser(network: nn.Module, protocol: Protocol) -> Optimizer:
    matrices = [p for p in network.parameters() if p.ndim > 1]
    vectors = [p for p in network.parameters() if p.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": protocol.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    if protocol.optimiser == "sgd":
        return torch.optim.SGD(groups, lr=protocol.learning_rate, momentum=0.9, nesterov=True, fused=True)
    return torch.optim.AdamW(groups, lr=protocol.learning_rate, fused=True)


def _learning_rate(progress: float, warmup: float) -> float:
    """Return the factor of the learning rate at a progress in [0, 1]: a line up, a cosine down."""
    if progress < warmup:
        return 0.1 + 0.9 * progress / warmup
    return 0.5 * (1 + math.cos(math.pi * (progress - warmup) / (1 - warmup)))
