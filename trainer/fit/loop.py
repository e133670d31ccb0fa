"""One network being trained: the loop, and all that it would need to go on elsewhere.

    batches ──> steps ──> validation ──> curve, best     once an epoch, until the rule of convergence or the last epoch
       └── after each step the session may ask for the state; one that is resumed from it takes the very same steps

What a state holds: the network, the best epoch's weights, what the optimisers remember and how far their schedule has
gone, the generator of the batches as it was when the epoch began, with the number of batches since, their losses, the
generators of what drops out, the curve, and the seconds spent.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from archive.errors import TrainingError
from archive.trainer.datasets.tensors import Batches
from archive.trainer.fit.early_stopping import has_converged
from archive.trainer.fit.evaluate import Best, measure
from archive.trainer.fit.steps import Steps, under
from archive.trainer.nn.network import Network
from archive.trainer.storage.checkpoints import State
from archive.trainer.tasks.base import Task
from archive.trainer.tasks.protocol import Protocol
from archive.trainer.trial.session import Metrics, Session

OnEpoch = Callable[[Metrics], None]


class Training:
    """A network with everything that changes while it learns.

    Args:
        network: What learns, on its device.
        task: What it learns.
        protocol: By which rules.
        parts: `train`, `valid` and `test`, on the network's device.
        steps: Of this network.
        seed: Of the order of the inputs.
        start: When the trial began, by `time.perf_counter`.

    Attributes:
        curve: One list of entries for each name, one entry for each whole epoch.
        best: The best epoch so far.
        resumed: How often it was taken up from a state.
        inherited: What goes on record of the weights it started from.
    """

    def __init__(
        self,
        network: Network,
        task: Task,
        protocol: Protocol,
        parts: Mapping[str, Batches],
        steps: Steps,
        seed: int,
        start: float,
    ) -> None:
        self.network, self.task, self.protocol, self.parts, self.steps = network, task, protocol, parts, steps
        self.best = Best(network, maximise=task.direction == "maximise")
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
        """Time spent on it so far, that before it was resumed included."""
        return time.perf_counter() - self._start

    def run(self, until: int, session: Session, on_epoch: OnEpoch | None = None) -> str:
        """Train up to an epoch, and say why training ended: `epochs`, `rung`, or the rule of convergence.

        Raises:
            TrainingError: The loss is no longer finite.
            Left: The session was asked to leave.
        """
        session.start(self.entries())
        while (ended := self._ended(until)) is None:
            self._epoch(session)
            if on_epoch is not None:
                on_epoch(self.entries(self.epochs - 1)[0])
        return ended

    def entries(self, start: int = 0) -> list[Metrics]:
        """Return the entries of the curve, one mapping an epoch, from the one of this index on."""
        rows = zip(*(values[start:] for values in self.curve.values()), strict=True)
        return [dict(zip(self.curve, row, strict=True)) for row in rows]

    def state(self) -> State:
        """Return the state after the last step; its tensors change with the next one."""
        about = {
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
            "drop": self.network.dropping(),
        }
        tensors = {f"{part}.{name}": tensor for part, held in parts.items() for name, tensor in held.items()}
        tensors["order"] = self._order_before if self._losses else self._order.get_state()
        if self._losses:
            tensors["losses"] = torch.stack(self._losses)
        return State(about, tensors)

    def resume(self, state: State) -> None:
        """Go on from a state as if there had been no interruption."""
        about: Mapping[str, Any] = state.about
        tensors = state.tensors
        self.network.load_state_dict(under("network.", tensors))
        epoch, metric, loss = about["best"]
        self.best.resume(epoch, metric, loss, under("best.", tensors))
        self.steps.resume(about["steps"], under("optimiser.", tensors))
        self.network.go_on_dropping(under("drop.", tensors))
        self._order.set_state(tensors["order"])
        device = self.parts["train"].targets.device
        self._losses = list(tensors["losses"].to(device).unbind()) if "losses" in tensors else []
        self.curve = {name: list(values) for name, values in about["curve"].items()}
        self._inputs = about["inputs"]
        self._start -= about["seconds"]
        self.resumed = about["resumed"] + 1
        self.inherited = about["inherited"]

    def _ended(self, until: int) -> str | None:
        if self.epochs == 0 or self._losses:
            return None
        if has_converged(self.protocol, self.best.epoch, self.curve["valid_loss"]):
            return self.protocol.convergence
        if self.epochs >= until:
            return "epochs" if until >= self.protocol.epochs else "rung"
        return None

    def _epoch(self, session: Session) -> None:
        train_loss = self._pass(session)
        valid_loss, valid_metric = measure(self.network, self.parts["valid"], self.task, computing=self.steps.computing)
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

    def _pass(self, session: Session) -> float:
        """Take the steps of one epoch that were not yet taken; return the mean loss of its inputs, each at its own."""
        self._order_before = self._order.get_state()
        batches = self.parts["train"].epoch(self.protocol, self._order)
        self.network.train()
        # What a resumed epoch has done already is drawn once more, which leaves the generator where it was.
        for inputs, targets in islice(batches, len(self._losses), None):
            self._losses.append(self.steps.take(inputs, targets))
            self._inputs += len(targets)
            if session.due():
                session.pause(self.state(), self.epochs)
        # One sum for the epoch: a number read back after each step would make a GPU wait for it.
        loss = float(torch.stack(self._losses).sum()) / self._inputs
        self._losses, self._inputs = [], 0
        return loss


def _check_finite(epoch: int, **losses: float) -> None:
    for name, loss in losses.items():
        if not math.isfinite(loss):
            raise TrainingError(f"training diverged: {name} is {loss} in epoch {epoch}")
