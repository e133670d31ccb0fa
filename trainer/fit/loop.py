"""The training loop of one network, and its checkpoint.

    batches ──> steps ──> validation ──> curve, best     once an epoch, until the rule of convergence or the last epoch
       └── after each step a checkpoint may be due; a training resumed from it takes the same steps

A checkpoint holds the network, the best epoch's weights, the optimisers' state and their position
in the schedule, the generator of the batches at the begin of the epoch with the losses of the
batches since, and the generators of dropout and of torch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from archive.errors import TrainingError
from archive.trainer.fit import random_states
from archive.trainer.fit.batches import Batches
from archive.trainer.fit.early_stopping import has_converged
from archive.trainer.fit.evaluate import BestEpoch, evaluate
from archive.trainer.fit.steps import Steps, under
from archive.trainer.recipes.base import Stop
from archive.trainer.recipes.checkpoint import SavedState
from archive.trainer.recipes.context import TrialContext


class Training:
    """A network with everything that changes during its training.

    Args:
        network: The network, on its device.
        parts: `train`, `valid` and `test`, on the network's device.
        steps: The network's optimisers.
        trial: The trial, whose reports are the whole epochs so far.

    Attributes:
        best: The best epoch so far.
    """

    def __init__(
        self,
        network: nn.Module,
        parts: Mapping[str, Batches],
        steps: Steps,
        trial: TrialContext,
    ) -> None:
        self.network = network
        self.parts = parts
        self.steps = steps
        self.trial = trial
        self.task = trial.task
        self.protocol = trial.protocol
        self.best = BestEpoch(network, maximise=self.task.direction == "maximise")
        self._order = torch.Generator().manual_seed(trial.seed)
        self._order_before = self._order.get_state()
        self._losses: list[Tensor] = []
        self._inputs = 0

    def run(self) -> str | None:
        """Train, and return why training ended: `epochs`, `rung`, or the rule of convergence; None
        if interrupted.

        Raises:
            TrainingError: The loss is no longer finite.
        """
        while (ended := self._ended()) is None:
            if not self._epoch():
                return None

        return ended

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
            "random": random_states.read(self.parts["train"].targets.device),
        }
        tensors = {
            f"{part}.{name}": tensor
            for part, named in parts.items()
            for name, tensor in named.items()
        }
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
        random_states.write(under("random.", tensors), device)
        self._order.set_state(tensors["order"])
        self._losses = list(tensors["losses"].to(device).unbind()) if "losses" in tensors else []
        self._inputs = state["inputs"]

    def _ended(self) -> str | None:
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
        """Take the remaining steps of one epoch; return the mean loss of its inputs, each before
        its own step.

        None if the trial was interrupted; the state is then saved.
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
