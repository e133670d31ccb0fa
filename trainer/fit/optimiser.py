"""The steps of AdamW and of SGD with Nesterov's momentum, by the fused kernels of torch.

To the last bit what `torch.optim` does with `fused=True`. Its optimisers load torch's compiler, which no trial uses,
when the first one is made: that doubled the time in which a trainer was ready. A step here costs two calls.

symbol  meaning                                                   where
λ       learning rate of the step                                 `rate` of `step`
w       weight decay; none for vectors: biases, normalisations    `protocol.weight_decay`
m, v    running means of the gradient and of its square           AdamW (arXiv:1711.05101, algorithm 2)
μ       momentum, in Nesterov's form                              SGD, `protocol.momentum`
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn

from archive.trainer.tasks.protocol import Protocol

_BETAS = (0.9, 0.999)
_EPSILON = 1e-8


class Group(ABC):
    """Parameters that decay alike, and what their optimiser remembers of them.

    Args:
        parameters: All must have a gradient at every step.
        decay: Weight decay.
    """

    def __init__(self, parameters: list[Tensor], decay: float) -> None:
        self.parameters, self.decay = parameters, decay

    @abstractmethod
    def step(self, gradients: list[Tensor], rate: float) -> None:
        """Move the parameters at a learning rate, and take note of their gradients."""

    @abstractmethod
    def state(self) -> dict[str, list[Tensor]]:
        """Return what is remembered of each parameter, by name; nothing before the first step may be left out."""

    @abstractmethod
    def resume(self, state: Mapping[str, list[Tensor]]) -> None:
        """Remember what `state` returned once, on whatever device that was."""

    def _like_parameters(self, tensors: list[Tensor]) -> list[Tensor]:
        # The fused kernels walk through memory: what belongs to a parameter must lie in memory as it does.
        return [torch.empty_like(p).copy_(t) for p, t in zip(self.parameters, tensors, strict=True)]


class AdamW(Group):
    """Decoupled weight decay, then Adam's step."""

    def __init__(self, parameters: list[Tensor], decay: float) -> None:
        super().__init__(parameters, decay)
        self.means = [torch.zeros_like(p) for p in parameters]
        self.squares = [torch.zeros_like(p) for p in parameters]
        self.steps = [torch.zeros((), dtype=torch.float32, device=p.device) for p in parameters]

    def step(self, gradients: list[Tensor], rate: float) -> None:
        """Decay, then divide the mean by the root of the mean square, both free of their start at zero."""
        torch._foreach_add_(self.steps, 1)
        torch._fused_adamw_(
            *(self.parameters, gradients, self.means, self.squares, [], self.steps),
            lr=rate,
            beta1=_BETAS[0],
            beta2=_BETAS[1],
            weight_decay=self.decay,
            eps=_EPSILON,
            amsgrad=False,
            maximize=False,
        )

    def state(self) -> dict[str, list[Tensor]]:
        """Return the means, and the number of steps."""
        return {"mean": self.means, "square": self.squares, "steps": self.steps}

    def resume(self, state: Mapping[str, list[Tensor]]) -> None:
        """Take the means up again."""
        self.means = self._like_parameters(state["mean"])
        self.squares = self._like_parameters(state["square"])
        self.steps = [torch.empty_like(own).copy_(t) for own, t in zip(self.steps, state["steps"], strict=True)]


class SGD(Group):
    """Stochastic gradient descent that looks ahead.

    Args:
        parameters: All must have a gradient at every step.
        decay: Weight decay.
        momentum: In [0, 1); at zero there is nothing to remember, and nothing ahead.
    """

    def __init__(self, parameters: list[Tensor], decay: float, momentum: float) -> None:
        super().__init__(parameters, decay)
        self.momentum = momentum
        self.momenta: list[Tensor] = []

    def step(self, gradients: list[Tensor], rate: float) -> None:
        """Move as if the momentum had already been followed."""
        first = self.momentum > 0 and not self.momenta
        if first:
            self.momenta = [torch.empty_like(gradient) for gradient in gradients]
        torch._fused_sgd_(
            *(self.parameters, gradients, self.momenta),
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
        """Take the momenta up again."""
        self.momenta = self._like_parameters(state["momentum"]) if state.get("momentum") else []


class Optimiser:
    """The optimiser of one trial.

    Args:
        parameters: All of the network's.
        protocol: Says which rule, and how strongly matrices decay.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], protocol: Protocol) -> None:
        every: list[Tensor] = list(parameters)
        groups = (
            ([p for p in every if p.ndim > 1], protocol.weight_decay),
            ([p for p in every if p.ndim <= 1], 0.0),
        )
        self.groups = [_group(members, decay, protocol) for members, decay in groups if members]

    def step(self, rate: float) -> None:
        """Move all parameters by their gradients, then forget these."""
        with torch.no_grad():
            for group in self.groups:
                group.step([p.grad for p in group.parameters if p.grad is not None], rate)
                for parameter in group.parameters:
                    parameter.grad = None

    def state(self) -> dict[str, Tensor]:
        """Return what is remembered, by name; not copies."""
        return {
            f"{at}.{name}.{place}": tensor
            for at, group in enumerate(self.groups)
            for name, tensors in group.state().items()
            for place, tensor in enumerate(tensors)
        }

    def resume(self, state: Mapping[str, Tensor]) -> None:
        """Remember what `state` returned once."""
        for at, group in enumerate(self.groups):
            remembered: dict[str, list[Tensor]] = {}
            for name in group.state():
                count = len(group.parameters)
                kept = [state[key] for place in range(count) if (key := f"{at}.{name}.{place}") in state]
                remembered[name] = kept
            group.resume(remembered)


def _group(parameters: list[Tensor], decay: float, protocol: Protocol) -> Group:
    if protocol.optimiser == "sgd":
        return SGD(parameters, decay, protocol.momentum)
    return AdamW(parameters, decay)
