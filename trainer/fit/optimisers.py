"""Optimisers of a training: AdamW, SGD with Nesterov's momentum, and Muon.

AdamW and SGD are the fused kernels of torch. They equal `torch.optim` with `fused=True` to the last
bit. The first optimiser of `torch.optim` loads torch's compiler, which no trial uses, and doubled
the start-up time of a trainer. An update here costs two calls.

symbol  meaning                                                  where
λ       learning rate of the step                                `rate` of `step`
w       weight decay; none for vectors: biases, normalisations   `protocol.weight_decay`
m, v    running means of the gradient and of its square          AdamW (arXiv:1711.05101, alg. 2)
μ       momentum, in Nesterov's form                             SGD, `protocol.momentum`
O       orthogonal matrix nearest to the momentum                Muon

Muon updates the hidden matrices of a network, and AdamW all else: embeddings, heads, filters and
vectors (Keller Jordan et al.: Muon, an optimizer for hidden layers in neural networks, 2024). O
comes from five iterations of Newton and Schulz. It is scaled to the root mean square of AdamW's
updates, 0.2 sqrt(max(rows, columns)), so that both share a learning rate and a weight decay (Liu et
al.: Muon is scalable for LLM training, 2025).

A network may state a factor of the learning rate of its hidden matrices (`HasHiddenMatrices`), by
which they learn alike at all widths. An update of Muon grows with the root of the width and not with
the width, so that it takes the root of the factor.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from archive.errors import UsageError
from archive.trainer.fit.hyperparameters import Hyperparameters
from archive.trainer.nn.base import HasHiddenMatrices, weighted_layers
from archive.trainer.protocols.base import TrainingProtocol

_BETAS = (0.9, 0.999)
_EPSILON = 1e-8
_MOMENTUM = 0.95
_NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
_ITERATIONS = 5
_ADAMW_RMS = 0.2
"""Muon's momentum, coefficients and iterations, and the root mean square of its updates."""


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


class Muon(ParameterGroup):
    """Decoupled weight decay, then a step along the orthogonal matrix nearest to the momentum.

    Args:
        parameters: Matrices.
        decay: Weight decay.
    """

    def __init__(self, parameters: list[Tensor], decay: float) -> None:
        super().__init__(parameters, decay)
        self.momenta = list(map(torch.zeros_like, parameters))
        # Matrices of one shape are one batch.
        self.batches: dict[torch.Size, list[int]] = {}
        for index, parameter in enumerate(parameters):
            self.batches.setdefault(parameter.shape, []).append(index)

    def step(self, gradients: list[Tensor], rate: float | Tensor) -> None:
        """Decay the matrices, update the momenta, and step."""
        torch._foreach_lerp_(self.momenta, gradients, 1 - _MOMENTUM)
        updates = torch._foreach_lerp(gradients, self.momenta, _MOMENTUM)
        torch._foreach_mul_(self.parameters, 1 - rate * self.decay)
        for shape, indices in self.batches.items():
            directions = orthogonalise(torch.stack([updates[index] for index in indices]))
            length = rate * (_ADAMW_RMS * math.sqrt(max(shape)))
            for index, direction in zip(indices, directions, strict=True):
                self.parameters[index].sub_(direction * length)

    def state(self) -> dict[str, list[Tensor]]:
        """Return the momenta."""
        return {"momentum": self.momenta}

    def resume(self, state: Mapping[str, list[Tensor]]) -> None:
        """Restore the momenta."""
        self.momenta = self._like_parameters(state["momentum"])


def orthogonalise(matrices: Tensor) -> Tensor:
    """Return matrices with singular values near 1, and the singular vectors of the given ones.

    In bfloat16 on a GPU; on a CPU in float32, whose results are the same on all CPUs.

    Args:
        matrices: (n, rows, columns).
    """
    a, b, c = _NEWTON_SCHULZ
    dtype = torch.bfloat16 if matrices.device.type == "cuda" else torch.float32
    x = matrices.to(dtype)
    is_tall = x.shape[-2] > x.shape[-1]
    if is_tall:
        x = x.transpose(-1, -2)

    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-7)
    for _ in range(_ITERATIONS):
        gram = x @ x.transpose(-1, -2)
        x = a * x + (b * gram + c * gram @ gram) @ x

    turned: Tensor = x.transpose(-1, -2) if is_tall else x
    return turned.to(matrices.dtype)


class Optimiser:
    """The optimiser of one trial.

    Args:
        parameters: Parameters of the network.
        protocol: Protocol with the optimiser's name, its momentum and the weight decay of matrices;
            `muon` takes matrices alone.
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

    if protocol.optimiser == "muon":
        return Muon(parameters, decay)

    return AdamW(parameters, decay)


def optimisers_of(
    network: nn.Module, protocol: TrainingProtocol, overrides: Hyperparameters
) -> list[tuple[Optimiser, float]]:
    """Return optimisers with the peaks of their learning rates: one, unless the layers differ.

    Where the layers have a list of values, parameters outside of the layers with weights, such as
    normalisations between them, follow the protocol.
    """
    listed = isinstance(overrides.learning_rate, tuple) or isinstance(overrides.weight_decay, tuple)
    layers = weighted_layers(network)
    hidden = _hidden_matrices(network, protocol)
    # A number is for the whole network, even one without such layers.
    count = len(layers) if listed else 1
    rates = overrides.of_layers("learning_rate", count, protocol.learning_rate)
    decays = overrides.of_layers("weight_decay", count, protocol.weight_decay)
    by_layer, others = _parameters_by_layer(network, layers)
    alike = len(set(zip(rates, decays, strict=True))) == 1 and not others
    if alike or not listed:
        return hidden.optimisers(network.parameters(), protocol, rates[0], decays[0])

    optimisers: list[tuple[Optimiser, float]] = []
    for parameters, rate, decay in zip(by_layer, rates, decays, strict=True):
        optimisers += hidden.optimisers(parameters, protocol, rate, decay)

    if others:
        optimisers += hidden.optimisers(
            others, protocol, protocol.learning_rate, protocol.weight_decay
        )

    return optimisers


class _Hidden(NamedTuple):
    """Hidden matrices that are optimised apart, by identity, and the factor of their rate."""

    matrices: frozenset[int]
    factor: float

    def optimisers(
        self,
        parameters: Iterable[nn.Parameter],
        protocol: TrainingProtocol,
        rate: float,
        decay: float,
    ) -> list[tuple[Optimiser, float]]:
        """Return the optimisers of some parameters with the peaks of their learning rates."""
        rules = replace(protocol, weight_decay=decay)
        if not self.matrices:
            return [(Optimiser(parameters, rules), rate)]

        hidden: list[nn.Parameter] = []
        others: list[nn.Parameter] = []
        for parameter in parameters:
            (hidden if id(parameter) in self.matrices else others).append(parameter)

        if rules.optimiser != "muon":
            pairs = [(hidden, rules, rate * self.factor), (others, rules, rate)]
        else:
            adamw = replace(rules, optimiser="adamw")
            pairs = [(hidden, rules, rate * math.sqrt(self.factor)), (others, adamw, rate)]

        return [(Optimiser(part, choices), peak) for part, choices, peak in pairs if part]


def _hidden_matrices(network: nn.Module, protocol: TrainingProtocol) -> _Hidden:
    """Return the hidden matrices, empty where they are optimised like all else.

    Raises:
        UsageError: The optimiser is Muon, and the network does not name its hidden matrices.
    """
    if not isinstance(network, HasHiddenMatrices):
        if protocol.optimiser == "muon":
            raise UsageError(
                f"{protocol.name}: muon trains decoders, got a {type(network).__name__}; take a "
                "protocol of another optimiser"
            )

        return _Hidden(frozenset(), 1.0)

    if protocol.optimiser != "muon" and network.rate_factor == 1:
        return _Hidden(frozenset(), 1.0)

    return _Hidden(frozenset(map(id, network.hidden_matrices())), network.rate_factor)


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
