"""Evaluation of a network: losses, the task's metric, and the best epoch."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from archive.trainer.fit.batches import Batches
from archive.trainer.fit.memory import out_of_memory
from archive.trainer.nn.base import LANGUAGE
from archive.trainer.protocols.base import TrainingProtocol
from archive.trainer.tasks.base import Task

log = logging.getLogger("archive.trainer")

Loss = Callable[[Tensor, Tensor], Tensor]

_TOKENS = 2**15
"""Most tokens of a forward pass in an evaluation."""

_AS_IT_IS: AbstractContextManager[object] = nullcontext()


@torch.inference_mode()
def evaluate(
    network: nn.Module,
    part: Batches,
    task: Task,
    batch: int = 2048,
    autocast: AbstractContextManager[object] = _AS_IT_IS,
) -> tuple[float, float]:
    """Return the mean loss and the task's metric on a part.

    Args:
        network: Network of `archive.trainer.nn.base`; left in evaluation mode.
        part: Inputs and targets.
        task: Task with the metric.
        batch: Number of inputs in one forward pass, halved where memory runs out.
        autocast: Context of the forward pass (`archive.trainer.fit.precision`).
    """
    network.eval()
    if task.kind == LANGUAGE:
        return _evaluate_language(network, part, batch, autocast)

    with autocast:
        outputs = torch.cat(_by_parts(network, part, batch, lambda outputs, _: outputs))
        loss = loss_of(outputs, part.targets, task).double()

    metric = loss
    if task.metric == "accuracy":
        metric = (outputs.argmax(dim=1) == part.targets).double().mean()

    # Both at once: each number that is read makes the processor wait for a GPU.
    values: list[float] = torch.stack((loss, metric)).tolist()
    return values[0], values[1]


def _evaluate_language(
    network: nn.Module, part: Batches, batch: int, autocast: AbstractContextManager[object]
) -> tuple[float, float]:
    """Return the mean loss of a token in nats, and in bits: a token is a byte."""
    length = part.targets.shape[1]
    # Logits of all tokens would fill the memory.
    sequences = max(1, min(batch, _TOKENS // length))
    with autocast:
        losses = _by_parts(network, part, sequences, sum_losses)

    loss = float(torch.stack(losses).sum()) / part.targets.numel()
    return loss, loss / math.log(2)


def sum_losses(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the summed negative log-likelihood of tokens: () float64.

    Args:
        outputs: (n, length, tokens) logits.
        targets: (n, length) tokens.
    """
    losses = F.cross_entropy(outputs.flatten(0, 1).float(), targets.flatten(), reduction="none")
    return losses.double().sum()


def _by_parts(
    network: nn.Module, part: Batches, batch: int, measure: Callable[[Tensor, Tensor], Tensor]
) -> list[Tensor]:
    """Return what a function measures of the outputs and targets of each forward pass.

    Where memory runs out, the passes are smaller.
    """
    while True:
        try:
            targets = torch.split(part.targets, batch)
            measured = []
            for inputs, following in zip(part.parts(batch), targets, strict=True):
                measured.append(measure(network(inputs), following))

            return measured
        except RuntimeError as error:
            if out_of_memory(error) is None or batch == 1:
                raise

        batch = -(-min(batch, len(part)) // 2)
        log.warning("evaluation is out of memory, continues with batches of %d", batch)
        if part.targets.device.type == "cuda":
            torch.cuda.empty_cache()


def loss_of(outputs: Tensor, targets: Tensor, task: Task) -> Tensor:
    """Return the negative log-likelihood of classes or tokens, or the mean squared error.

    Args:
        outputs: (n, outputs) logits or predictions; (n, length, outputs) logits of tokens.
        targets: (n,) classes, or values; (n, length) tokens.
        task: The task.
    """
    if task.kind == LANGUAGE:
        return F.cross_entropy(outputs.flatten(0, 1), targets.flatten())

    if task.kind == "classification":
        return F.cross_entropy(outputs, targets)

    return F.mse_loss(outputs.view_as(targets), targets)


def training_loss(
    task: Task, protocol: TrainingProtocol, class_weights: Tensor | None = None
) -> Loss:
    """Return the training loss: the evaluation loss, unless the protocol overrides it.

    Args:
        task: The task.
        protocol: Its protocol.
        class_weights: (classes,) weights from `weights_of`; None for equal ones.
    """
    if class_weights is not None:
        return lambda outputs, targets: F.cross_entropy(
            outputs, targets, weight=class_weights.to(outputs.dtype)
        )

    if task.kind == "regression" and protocol.loss == "absolute":
        return lambda outputs, targets: F.l1_loss(outputs.view_as(targets), targets)

    return lambda outputs, targets: loss_of(outputs, targets, task)


def weights_of(protocol: TrainingProtocol, targets: Tensor, classes: int) -> Tensor | None:
    """Return the weights of the classes under a protocol; None for equal ones.

    The weight of a class is n / (classes * rows of the class); of one without rows, 0.

    Args:
        protocol: Protocol with `class_weights`.
        targets: (n,) classes of the training part.
        classes: Number of classes.
    """
    if protocol.class_weights == "none":
        return None

    counts = torch.bincount(targets, minlength=classes).to(torch.float32)
    weights = len(targets) / (classes * counts)
    return torch.where(counts > 0, weights, torch.zeros_like(weights))


class BestEpoch:
    """The best epoch so far, with a copy of its weights; the loss breaks ties of the metric."""

    def __init__(self, network: nn.Module, maximise: bool) -> None:
        """Start before the first epoch."""
        self.network = network
        self.sign = 1.0 if maximise else -1.0
        self.epoch = 0
        self.metric = -math.inf * self.sign
        self.loss = math.inf
        self.weights: dict[str, Tensor] = {}

    @torch.no_grad()
    def update(self, epoch: int, metric: float, loss: float) -> None:
        """Copy the network's weights if this epoch is better than all before."""
        if not (self.sign * metric, -loss) > (self.sign * self.metric, -self.loss):
            return

        self.epoch = epoch
        self.metric = metric
        self.loss = loss
        now = self.network.state_dict()
        if not self.weights:
            # The copy stays on the device: to copy it to the host would stall a GPU after each
            # improving epoch.
            self.weights = {name: tensor.detach().clone() for name, tensor in now.items()}
            return

        for name, copy in self.weights.items():
            copy.copy_(now[name])

    def restore(self) -> None:
        """Give the network the weights of the best epoch."""
        self.network.load_state_dict(self.weights)

    def resume(self, epoch: int, metric: float, loss: float, weights: Mapping[str, Tensor]) -> None:
        """Restore the best epoch from a checkpoint."""
        self.epoch = epoch
        self.metric = metric
        self.loss = loss
        now = self.network.state_dict()
        self.weights = {
            name: torch.empty_like(now[name]).copy_(tensor) for name, tensor in weights.items()
        }
