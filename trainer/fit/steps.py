"""One training step: forward, backward, update, at the learning rate of the protocol's schedule."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from torch import Tensor, nn

from archive.trainer.fit import step_graphs
from archive.trainer.fit.evaluate import training_loss
from archive.trainer.fit.hyperparameters import Hyperparameters
from archive.trainer.fit.optimisers import optimisers_of
from archive.trainer.fit.precision import autocast_context
from archive.trainer.fit.step_graphs import StepGraphs
from archive.trainer.nn.base import (
    HasAuxiliaryHead,
    HasPenalty,
    HasProgress,
    applied_layers,
    weighted_layers,
)
from archive.trainer.nn.dropout import InputDropout
from archive.trainer.nn.units import UnitWeights, unit_weights
from archive.trainer.protocols.base import TrainingProtocol
from archive.trainer.tasks.base import Task


class Steps:
    """The optimisers of one training, and their position in the schedule.

    Args:
        network: The network.
        task: Task to learn.
        protocol: Training protocol.
        total: Number of steps in all the protocol's epochs. The schedule spans them even if
            training ends early.
        overrides: Hyperparameters that differ from the protocol.
        precision: `float32`, `bf16` or `tf32`.
        seed: Seed of the dropout.
        class_weights: (classes,) weights in the loss; None for equal ones.

    Attributes:
        dropout: Dropout of the layers' inputs, by the overrides.
        graphs: Recorded steps, on a GPU without such dropout, for networks that keep their
            progress in tensors; else None.
        done: Number of steps taken.
    """

    def __init__(
        self,
        network: nn.Module,
        task: Task,
        protocol: TrainingProtocol,
        total: int,
        overrides: Hyperparameters = Hyperparameters(),  # noqa: B008  immutable
        precision: str = "float32",
        seed: int = 0,
        class_weights: Tensor | None = None,
    ) -> None:
        self.network = network
        self.protocol = protocol
        layers = weighted_layers(network)
        self.dropout = InputDropout(
            applied_layers(network), overrides.of_layers("dropout", len(layers), 0.0), seed
        )
        self.loss = training_loss(task, protocol, class_weights)
        self.optimisers = optimisers_of(network, protocol, overrides)
        bounds = overrides.of_layers("max_norm", len(layers), math.inf)
        self.bounded: list[tuple[UnitWeights, float]] = []
        for layer, bound in zip(layers, bounds, strict=True):
            if bound < math.inf:
                self.bounded += [(weights, bound) for weights in unit_weights(layer)]

        device = next(network.parameters()).device
        self.autocast = autocast_context(precision, device)
        # A graph would repeat the numbers of the dropout's generators.
        recorded = device.type == "cuda" and not self.dropout and step_graphs.suit(network)
        self.graphs = StepGraphs(self._step, self._clear, device) if recorded else None
        self.total = total
        self.done = 0

    def take(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Take one step; return the summed loss of its inputs before it, () on the device."""
        progress = self.done / self.total
        if isinstance(self.network, HasProgress):
            self.network.set_progress(progress)

        factor = factor_at(progress, self.protocol)
        rates = [rate * factor for _, rate in self.optimisers]
        step = self._step if self.graphs is None else self.graphs.take
        losses = step(inputs, targets, rates)
        self.done += 1
        return losses

    def state(self) -> dict[str, Tensor]:
        """Return the optimisers' state by name; not copies."""
        state: dict[str, Tensor] = {}
        for index, (optimiser, _) in enumerate(self.optimisers):
            for name, tensor in optimiser.state().items():
                state[f"{index}.{name}"] = tensor

        return state

    def resume(self, done: int, state: Mapping[str, Tensor]) -> None:
        """Restore the optimisers' state after so many steps."""
        self.done = done
        for index, (optimiser, _) in enumerate(self.optimisers):
            optimiser.resume(under(f"{index}.", state))

    def _step(self, inputs: Tensor, targets: Tensor, rates: Sequence[float | Tensor]) -> Tensor:
        with self.autocast:
            loss, total = self._losses(inputs, targets)

        total.backward()  # type: ignore[no-untyped-call]
        if self.protocol.gradient_norm is not None:
            nn.utils.clip_grad_norm_(self.network.parameters(), self.protocol.gradient_norm)

        for (optimiser, _), rate in zip(self.optimisers, rates, strict=True):
            optimiser.step(rate)

        for weights, bound in self.bounded:
            weights.bound(bound)

        return loss.detach() * len(targets)

    def _clear(self) -> None:
        for parameter in self.network.parameters():
            parameter.grad = None

    def _losses(self, inputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Return the loss of the outputs, and the minimised loss, with the network's own terms."""
        if not isinstance(self.network, HasAuxiliaryHead):
            loss = self.loss(self.network(inputs), targets)
            penalty = self.network.penalty() if isinstance(self.network, HasPenalty) else None
            return loss, loss if penalty is None else loss + penalty

        outputs, auxiliary = self.network.with_auxiliary(inputs)
        loss = self.loss(outputs, targets)
        return loss, loss + self.network.auxiliary_weight * self.loss(auxiliary, targets)


def under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors with a prefix in their names, by the rest of their names."""
    selected: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if name.startswith(prefix):
            selected[name.removeprefix(prefix)] = tensor

    return selected


def factor_at(progress: float, protocol: TrainingProtocol) -> float:
    """Return the learning rate's factor at a progress in [0, 1]: linear up, a cosine down, or 1."""
    if protocol.schedule == "constant":
        return 1.0

    warmup = protocol.warmup
    if progress < warmup:
        return 0.1 + 0.9 * progress / warmup

    return 0.5 * (1 + math.cos(math.pi * (progress - warmup) / (1 - warmup)))
