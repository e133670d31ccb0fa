"""AdamW, and SGD with Nesterov's momentum, by the fused kernels of torch.

Equal to `torch.optim` with `fused=True` to the last bit. The first optimiser of `torch.optim` loads
torch's compiler, which no trial uses, and doubled the start-up time of a trainer. A step here costs
two calls.

symbol  meaning                                                  where
λ       learning rate of the step                                `rate` of `step`
w       weight decay; none for vectors: biases, normalisations   `protocol.weight_decay`
m, v    running means of the gradient and of its square          AdamW (arXiv:1711.05101, alg. 2)
μ       momentum, in Nesterov's form                             SGD, `protocol.momentum`
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn

from archive.trainer.protocols.base import TrainingProtocol

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
        self.means = [torch.zeros_like(p) for p in parameters]
        self.squares = [torch.zeros_like(p) for p in parameters]
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
            self.momenta = [torch.empty_like(gradient) for gradient in gradients]

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
        every: list[Tensor] = list(parameters)
        groups = (
            ([p for p in every if p.ndim > 1], protocol.weight_decay),
            ([p for p in every if p.ndim <= 1], 0.0),
        )
        self.groups = [_group(members, decay, protocol) for members, decay in groups if members]

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
