"""The training loop of one network, and its checkpoint.

    batches ──> steps ──> validation ──> curve, best    once an epoch, until convergence or the last
       └── after each step a checkpoint may be due; a training resumed from it takes the same steps

A checkpoint holds the network, the best epoch's weights, the optimisers' state and their position
in the schedule, the generator of the batches at the begin of the epoch with the losses of the
batches since, and the generators of dropout and of torch. Modules such as `nn.Dropout` draw from
torch's.

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

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from archive.errors import TrainingError
from archive.trainer.fit.batches import Batches
from archive.trainer.fit.evaluate import BestEpoch, evaluate
from archive.trainer.fit.steps import Steps, under
from archive.trainer.protocols.base import TrainingProtocol
from archive.trainer.recipes.base import Stop
from archive.trainer.recipes.checkpoint import SavedState
from archive.trainer.recipes.context import TrialContext


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
