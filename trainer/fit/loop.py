"""The training loop of one network, and its checkpoint.

    batches ──> steps ──> validation ──> curve, best     once an epoch, until the rule of convergence or the last epoch
       └── after each step the context may request a checkpoint; a training resumed from it takes the same steps

A checkpoint holds the network, the best epoch's weights, the optimisers' state and their position in the schedule, the
generator of the batches at the begin of the epoch with the losses of the batches since, the generators of dropout and
of torch, the curve, and the seconds spent.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from archive.errors import TrainingError
from archive.trainer.fit import random_states
from archive.trainer.fit.batches import Batches
from archive.trainer.fit.context import Metrics, TrialContext
from archive.trainer.fit.early_stopping import has_converged
from archive.trainer.fit.evaluate import BestEpoch, evaluate
from archive.trainer.fit.steps import Steps, under
from archive.trainer.protocols.base import TrainingProtocol
from archive.trainer.storage.checkpoints import TrainingCheckpoint
from archive.trainer.tasks.base import Task

OnEpoch = Callable[[Metrics], None]


class Training:
    """A network with everything that changes during its training.

    Args:
        network: The network, on its device.
        task: Task to learn.
        protocol: Training protocol.
        parts: `train`, `valid` and `test`, on the network's device.
        steps: The network's optimisers.
        seed: Seed of the order of the inputs.
        start: Start of the trial, by `time.perf_counter`.

    Attributes:
        curve: One list of entries for each name, with one entry for each whole epoch.
        best: The best epoch so far.
        resumed: Number of resumptions.
        inherited: Record of the initial weights in the evaluation.
    """

    def __init__(
        self,
        network: nn.Module,
        task: Task,
        protocol: TrainingProtocol,
        parts: Mapping[str, Batches],
        steps: Steps,
        seed: int,
        start: float,
    ) -> None:
        self.network, self.task, self.protocol, self.parts, self.steps = network, task, protocol, parts, steps
        self.best = BestEpoch(network, maximise=task.direction == "maximise")
        self.curve: dict[str, list[float]] = {}
        self.resumed = 0
        self.inherited: Mapping[str, Any] = {}
        self._start = start
        self._order = torch.Generator().manual_seed(seed)
        self._order_before = self._order.get_state()
        self._losses: list[Tensor] = []
        self._inputs = 0

    @property
    def epochs(self) -> int:
        """Number of whole epochs so far."""
        return len(self.curve.get("epoch", ()))

    @property
    def seconds(self) -> float:
        """Time spent so far, with that before a resumption."""
        return time.perf_counter() - self._start

    def run(self, until: int, context: TrialContext, on_epoch: OnEpoch | None = None) -> str:
        """Train up to an epoch, and return why training ended: `epochs`, `rung`, or the rule of convergence.

        Raises:
            TrainingError: The loss is no longer finite.
            Cancelled: The context was cancelled.
        """
        context.start(self.entries())
        while (ended := self._ended(until)) is None:
            self._epoch(context)
            if on_epoch is not None:
                on_epoch(self.entries(self.epochs - 1)[0])
        return ended

    def entries(self, start: int = 0) -> list[Metrics]:
        """Return the entries of the curve from an index on, one mapping an epoch."""
        rows = zip(*(values[start:] for values in self.curve.values()), strict=True)
        return [dict(zip(self.curve, row, strict=True)) for row in rows]

    def checkpoint(self) -> TrainingCheckpoint:
        """Return the state after the last step; its tensors change with the next one."""
        metadata = {
            "curve": self.curve,
            "best": [self.best.epoch, self.best.metric, self.best.loss],
            "steps": self.steps.done,
            "inputs": self._inputs,
            "seconds": self.seconds,
            "resumed": self.resumed,
            "inherited": dict(self.inherited),
        }
        parts = {
            "network": self.network.state_dict(),
            "best": self.best.weights,
            "optimiser": self.steps.state(),
            "drop": self.steps.dropout.states(),
            "random": random_states.read(self.parts["train"].targets.device),
        }
        tensors = {f"{part}.{name}": tensor for part, named in parts.items() for name, tensor in named.items()}
        tensors["order"] = self._order_before if self._losses else self._order.get_state()
        if self._losses:
            tensors["losses"] = torch.stack(self._losses)
        return TrainingCheckpoint(metadata, tensors)

    def resume(self, checkpoint: TrainingCheckpoint) -> None:
        """Restore a checkpoint; the training continues as if there had been no interruption."""
        metadata: Mapping[str, Any] = checkpoint.metadata
        tensors = checkpoint.tensors
        self.network.load_state_dict(under("network.", tensors))
        epoch, metric, loss = metadata["best"]
        self.best.resume(epoch, metric, loss, under("best.", tensors))
        self.steps.resume(metadata["steps"], under("optimiser.", tensors))
        device = self.parts["train"].targets.device
        self.steps.dropout.restore(under("drop.", tensors), device)
        random_states.write(under("random.", tensors), device)
        self._order.set_state(tensors["order"])
        self._losses = list(tensors["losses"].to(device).unbind()) if "losses" in tensors else []
        self.curve = {name: list(values) for name, values in metadata["curve"].items()}
        self._inputs = metadata["inputs"]
        self._start -= metadata["seconds"]
        self.resumed = metadata["resumed"] + 1
        self.inherited = metadata["inherited"]

    def _ended(self, until: int) -> str | None:
        if self.epochs == 0 or self._losses:
            return None
        if has_converged(self.protocol, self.best.epoch, self.curve["valid_loss"]):
            return self.protocol.convergence
        if self.epochs >= until:
            return "epochs" if until >= self.protocol.epochs else "rung"
        return None

    def _epoch(self, context: TrialContext) -> None:
        train_loss = self._pass(context)
        valid_loss, valid_metric = evaluate(self.network, self.parts["valid"], self.task, autocast=self.steps.autocast)
        epoch = self.epochs + 1
        _check_finite(epoch, train_loss=train_loss, valid_loss=valid_loss)
        now = {
            "epoch": float(epoch),
            "train_loss": train_loss,
            "valid_loss": valid_loss,
            self.task.objective: valid_metric,
            "seconds": self.seconds,
        }
        for name, entry in now.items():
            self.curve.setdefault(name, []).append(entry)
        self.best.update(epoch, valid_metric, valid_loss)

    def _pass(self, context: TrialContext) -> float:
        """Take the remaining steps of one epoch; return the mean loss of its inputs, each before its own step."""
        self._order_before = self._order.get_state()
        batches = self.parts["train"].epoch(self.protocol, self._order)
        self.network.train()
        # The batches before a resumption are drawn again, which brings the generator to where it was.
        for inputs, targets in islice(batches, len(self._losses), None):
            self._losses.append(self.steps.take(inputs, targets))
            self._inputs += len(targets)
            if context.should_pause():
                context.pause(self.checkpoint(), self.epochs)
        # One sum for the epoch: to read a number back after each step would stall a GPU.
        loss = float(torch.stack(self._losses).sum()) / self._inputs
        self._losses, self._inputs = [], 0
        return loss


def _check_finite(epoch: int, **losses: float) -> None:
    for name, loss in losses.items():
        if not math.isfinite(loss):
            raise TrainingError(f"training diverged: {name} is {loss} in epoch {epoch}")
