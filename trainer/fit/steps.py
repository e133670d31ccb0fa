"""One training step: forward, backward, update, at the learning rate of the protocol's schedule.

The updates are AdamW, and SGD with Nesterov's momentum, by the fused kernels of torch. They equal
`torch.optim` with `fused=True` to the last bit. The first optimiser of `torch.optim` loads torch's
compiler, which no trial uses, and doubled the start-up time of a trainer. An update here costs two
calls.

symbol  meaning                                                  where
λ       learning rate of the step                                `rate` of `step`
w       weight decay; none for vectors: biases, normalisations   `protocol.weight_decay`
m, v    running means of the gradient and of its square          AdamW (arXiv:1711.05101, alg. 2)
μ       momentum, in Nesterov's form                             SGD, `protocol.momentum`
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from archive.trainer.fit import step_graphs
from archive.trainer.fit.evaluate import training_loss
from archive.trainer.fit.hyperparameters import Hyperparameters
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

_BETAS = (0.9, 0.999)
_EPSILON = 1e-8


class ParameterGroup(ABC):
    """Parameters with one weight decay, and their optimiser's state.

    Args:
        parameters: Parameters.
        decay: Weight decay.
    """

    def __init__(self, parameters: list[Tensor], decay: float) -> None:
        self.parameters = parameters
        self.decay = decay

    @abstractmethod
    def step(self, gradients: list[Tensor], rate: float | Tensor) -> None:
        """Update the parameters and the state.

        Args:
            gradients: One for each parameter.
            rate: A number, or () float32 on the parameters' device.
        """

    @abstractmethod
    def state(self) -> dict[str, list[Tensor]]:
        """Return the state of each parameter, by name; it has all names before the first step."""

    @abstractmethod
    def resume(self, state: Mapping[str, list[Tensor]]) -> None:
        """Restore a state, from any device."""

    def _like_parameters(self, tensors: list[Tensor]) -> list[Tensor]:
        # The fused kernels walk through memory: the state of a parameter must have the parameter's
        # memory layout.
        return [torch.empty_like(p).copy_(t) for p, t in zip(self.parameters, tensors, strict=True)]


class AdamW(ParameterGroup):
    """Decoupled weight decay, then Adam's step."""

    def __init__(self, parameters: list[Tensor], decay: float) -> None:
        super().__init__(parameters, decay)
        self.means = list(map(torch.zeros_like, parameters))
        self.squares = list(map(torch.zeros_like, parameters))
        self.steps = [torch.zeros((), dtype=torch.float32, device=p.device) for p in parameters]

    def step(self, gradients: list[Tensor], rate: float | Tensor) -> None:
        """Decay the weights, then divide the mean by the root of the mean square.

        Both means are corrected for their start at zero.
        """
        torch._foreach_add_(self.steps, 1)
        torch._fused_adamw_(
            self.parameters,
            gradients,
            self.means,
            self.squares,
            [],
            self.steps,
            lr=rate,
            beta1=_BETAS[0],
            beta2=_BETAS[1],
            weight_decay=self.decay,
            eps=_EPSILON,
            amsgrad=False,
            maximize=False,
        )

    def state(self) -> dict[str, list[Tensor]]:
        """Return the running means and the number of steps."""
        return {"mean": self.means, "square": self.squares, "steps": self.steps}

    def resume(self, state: Mapping[str, list[Tensor]]) -> None:
        """Restore the running means and the number of steps."""
        self.means = self._like_parameters(state["mean"])
        self.squares = self._like_parameters(state["square"])
        for count, saved in zip(self.steps, state["steps"], strict=True):
            count.copy_(saved)


class SGD(ParameterGroup):
    """Stochastic gradient descent with Nesterov's momentum.

    Args:
        parameters: Parameters.
        decay: Weight decay.
        momentum: Momentum in [0, 1); at zero there is no state.
    """

    def __init__(self, parameters: list[Tensor], decay: float, momentum: float) -> None:
        super().__init__(parameters, decay)
        self.momentum = momentum
        self.momenta: list[Tensor] = []

    def step(self, gradients: list[Tensor], rate: float | Tensor) -> None:
        """Take a step with the gradient and the momentum that follows it."""
        first = self.momentum > 0 and not self.momenta
        if first:
            self.momenta = list(map(torch.empty_like, gradients))

        torch._fused_sgd_(
            self.parameters,
            gradients,
            self.momenta,
            weight_decay=self.decay,
            momentum=self.momentum,
            lr=rate,
            dampening=0.0,
            nesterov=self.momentum > 0,
            maximize=False,
            is_first_step=first,
        )

    def state(self) -> dict[str, list[Tensor]]:
        """Return the momenta."""
        return {"momentum": self.momenta}

    def resume(self, state: Mapping[str, list[Tensor]]) -> None:
        """Restore the momenta."""
        self.momenta = self._like_parameters(state["momentum"]) if state.get("momentum") else []


class Optimiser:
    """The optimiser of one trial.

    Args:
        parameters: Parameters of the network.
        protocol: Protocol with the optimiser's name, its momentum and the weight decay of matrices.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], protocol: TrainingProtocol) -> None:
        matrices: list[Tensor] = []
        vectors: list[Tensor] = []
        for parameter in parameters:
            (matrices if parameter.ndim > 1 else vectors).append(parameter)

        self.groups: list[ParameterGroup] = []
        if matrices:
            self.groups.append(_group(matrices, protocol.weight_decay, protocol))

        if vectors:
            self.groups.append(_group(vectors, 0.0, protocol))

    def step(self, rate: float | Tensor) -> None:
        """Update all parameters, then clear their gradients.

        A parameter without a gradient is not connected to the loss at this step. Its gradient is
        zero, which keeps the fused kernels on one list.
        """
        with torch.no_grad():
            for group in self.groups:
                gradients: list[Tensor] = []
                for parameter in group.parameters:
                    gradient = parameter.grad
                    gradients.append(torch.zeros_like(parameter) if gradient is None else gradient)

                group.step(gradients, rate)
                for parameter in group.parameters:
                    parameter.grad = None

    def state(self) -> dict[str, Tensor]:
        """Return the state by name; not copies."""
        state: dict[str, Tensor] = {}
        for group_index, group in enumerate(self.groups):
            for name, tensors in group.state().items():
                for index, tensor in enumerate(tensors):
                    state[f"{group_index}.{name}.{index}"] = tensor

        return state

    def resume(self, state: Mapping[str, Tensor]) -> None:
        """Restore a state."""
        for group_index, group in enumerate(self.groups):
            group_state: dict[str, list[Tensor]] = {}
            for name in group.state():
                keys = [f"{group_index}.{name}.{index}" for index in range(len(group.parameters))]
                group_state[name] = [state[key] for key in keys if key in state]

            group.resume(group_state)


def _group(parameters: list[Tensor], decay: float, protocol: TrainingProtocol) -> ParameterGroup:
    if protocol.optimiser == "sgd":
        return SGD(parameters, decay, protocol.momentum)

    return AdamW(parameters, decay)


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
        self.optimisers = _optimisers(network, protocol, overrides)
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


def _optimisers(
    network: nn.Module, protocol: TrainingProtocol, overrides: Hyperparameters
) -> list[tuple[Optimiser, float]]:
    """Return optimisers with the peaks of their learning rates: one, unless the layers differ.

    Where the layers have a list of values, parameters outside of the layers with weights, such as
    normalisations between them, follow the protocol.
    """
    listed = isinstance(overrides.learning_rate, tuple) or isinstance(overrides.weight_decay, tuple)
    layers = weighted_layers(network)
    # A number is for the whole network, even one without such layers.
    count = len(layers) if listed else 1
    rates = overrides.of_layers("learning_rate", count, protocol.learning_rate)
    decays = overrides.of_layers("weight_decay", count, protocol.weight_decay)
    by_layer, others = _parameters_by_layer(network, layers)
    alike = len(set(zip(rates, decays, strict=True))) == 1 and not others
    if alike or not listed:
        return [_optimiser(network.parameters(), protocol, rates[0], decays[0])]

    optimisers: list[tuple[Optimiser, float]] = []
    for parameters, rate, decay in zip(by_layer, rates, decays, strict=True):
        optimisers.append(_optimiser(parameters, protocol, rate, decay))

    if others:
        optimisers.append((Optimiser(others, protocol), protocol.learning_rate))

    return optimisers


def _parameters_by_layer(
    network: nn.Module, layers: Sequence[nn.Module]
) -> tuple[list[list[nn.Parameter]], list[nn.Parameter]]:
    """Return the parameters of each layer, and all others; a shared one is the first layer's."""
    assigned: set[int] = set()
    by_layer: list[list[nn.Parameter]] = []
    for layer in layers:
        by_layer.append(_without(layer.parameters(), assigned))
        assigned.update(map(id, by_layer[-1]))

    return by_layer, _without(network.parameters(), assigned)


def _without(parameters: Iterable[nn.Parameter], assigned: set[int]) -> list[nn.Parameter]:
    return [parameter for parameter in parameters if id(parameter) not in assigned]


def _optimiser(
    parameters: Iterable[nn.Parameter], protocol: TrainingProtocol, rate: float, decay: float
) -> tuple[Optimiser, float]:
    return Optimiser(parameters, replace(protocol, weight_decay=decay)), rate
