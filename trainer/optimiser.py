"""The steps of AdamW and of SGD with Nesterov's momentum, by the fused kernels of torch.

To the last bit what `torch.optim` does with `fused=True`. Its optimisers load torch's compiler, which no trial uses,
when the first one is made: that doubled the time in which a trainer was ready. A step here costs two calls.

symbol  meaning                                                   where
λ       learning rate of the step                                 `rate` of `step`
w       weight decay; none for vectors: biases, normalisations    `protocol.weight_decay`
m, v    running means of the gradient and of its square           AdamW (arXiv:1711.05101, algorithm 2)
μ       momentum, 0.9, in Nesterov's form                         SGD
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from archive.trainer.tasks import Protocol

_MOMENTUM = 0.9
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


class SGD(Group):
    """Stochastic gradient descent that looks ahead."""

    def __init__(self, parameters: list[Tensor], decay: float) -> None:
        super().__init__(parameters, decay)
        self.momenta: list[Tensor] = []

    def step(self, gradients: list[Tensor], rate: float) -> None:
        """Move as if the momentum had already been followed."""
        first = not self.momenta
        if first:
            self.momenta = [torch.empty_like(gradient) for gradient in gradients]
        torch._fused_sgd_(
            *(self.parameters, gradients, self.momenta),
            weight_decay=self.decay,
            momentum=_MOMENTUM,
            lr=rate,
            dampening=0.0,
            nesterov=True,
            maximize=False,
            is_first_step=first,
        )


class Optimiser:
    """The optimiser of one trial.

    Args:
        parameters: All of the network's.
        protocol: Says which rule, and how strongly matrices decay.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], protocol: Protocol) -> None:
        every: list[Tensor] = list(parameters)
        rule = SGD if protocol.optimiser == "sgd" else AdamW
        groups = (
            ([p for p in every if p.ndim > 1], protocol.weight_decay),
            ([p for p in every if p.ndim <= 1], 0.0),
        )
        self.groups = [rule(members, decay) for members, decay in groups if members]

    def step(self, rate: float) -> None:
        """Move all parameters by their gradients, then forget these."""
        with torch.no_grad():
            for group in self.groups:
                group.step([p.grad for p in group.parameters if p.grad is not None], rate)
                for parameter in group.parameters:
                    parameter.grad = None
