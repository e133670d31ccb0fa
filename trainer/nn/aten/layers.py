"""Modules of layers: operations with tensors of their own, and operations that follow the mode of the network."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from archive.trainer.nn.units import Units


@final
class Weighted(nn.Module):
    """An operation with weights; its first input is given by position, so that hooks see it.

    Args:
        call: The operation.
        first: Name of the parameter that the first input is.
        weights: Its weights by the name of their parameter.
        settings: Its other arguments.
        units: How the units lie in its matrices, by the names of these (`archive.trainer.nn.units`).
    """

    def __init__(
        self,
        call: Callable[..., Any],
        first: str,
        weights: Mapping[str, Tensor],
        settings: Mapping[str, Any],
        units: Mapping[str, tuple[Units, ...]],
    ) -> None:
        """Register the weights."""
        super().__init__()
        self.call, self.first, self.settings, self.unit_axes = call, first, dict(settings), dict(units)
        _own(self, weights)

    def forward(self, x: Tensor, **computed: Any) -> Any:
        """Apply the operation; `computed` are inputs and sizes that other layers compute."""
        return self.call(**{self.first: x}, **self._parameters, **self.settings, **computed)


@final
class TrainedTensor(nn.Module):
    """A trained tensor as a layer without inputs.

    Args:
        values: The tensor.
        units: How the units lie of the layers whose matrix it is; empty if it is none.

    Attributes:
        applied_in: Those layers.
    """

    def __init__(self, values: Tensor, units: Iterable[Units] = ()) -> None:
        """Register the tensor."""
        super().__init__()
        self.values = nn.Parameter(values)
        self.unit_axes = {"values": tuple(sorted(set(units)))}
        self.applied_in: list[nn.Module] = []

    def forward(self) -> Tensor:
        """Return the tensor."""
        return self.values


@final
class BatchNorm(nn.Module):
    """Batch normalisation by the batch in training, and by running statistics in evaluation.

    Args:
        tensors: Its own tensors among weight, bias, running_mean and running_var.
        momentum: Weight of a batch in the running statistics; NaN for the mean of all batches, which are counted then.
        eps: Number added to the variance.

    Attributes:
        num_batches_tracked: Number of batches in a mean of all, () int64; None with another momentum.
    """

    num_batches_tracked: Tensor | None

    def __init__(self, tensors: Mapping[str, Tensor], momentum: float, eps: float) -> None:
        """Register the tensors."""
        super().__init__()
        self.momentum, self.eps = momentum, eps
        _own(self, tensors)
        cumulative = math.isnan(momentum) and "running_mean" in tensors
        self.register_buffer("num_batches_tracked", empty((), torch.int64) if cumulative else None)

    def forward(self, x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None) -> Tensor:
        """Normalise a batch; weights that several layers share are given."""
        own = {**self._parameters, **self._buffers}
        mean, var = own.get("running_mean"), own.get("running_var")
        weight, bias = own.get("weight", weight), own.get("bias", bias)
        if self.training and self.num_batches_tracked is not None and mean is not None and var is not None:
            # Of this batch alone: PyTorch takes a momentum that is a number, which a recorded step would repeat.
            of_batch = torch.zeros_like(mean), torch.zeros_like(var)
            y = F.batch_norm(x, *of_batch, weight, bias, True, 1.0, self.eps)
            with torch.no_grad():
                share = self.num_batches_tracked.add_(1).to(mean.dtype).reciprocal()
                mean.lerp_(of_batch[0], share)
                var.lerp_(of_batch[1], share)
            return y
        return F.batch_norm(x, mean, var, weight, bias, self.training or mean is None, self.momentum, self.eps)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
        # A file of ONNX has no number of batches.
        if self.num_batches_tracked is not None:
            state_dict.setdefault(f"{prefix}num_batches_tracked", torch.zeros((), dtype=torch.int64))
        super()._load_from_state_dict(state_dict, prefix, *others)


@final
class Dropout(nn.Module):
    """Dropout of one of the kinds of PyTorch, in training only."""

    def __init__(self, call: Callable[[Tensor, float, bool], Tensor], p: float) -> None:
        """Keep the operation and the probability."""
        super().__init__()
        self.call, self.p = call, p

    def forward(self, x: Tensor) -> Tensor:
        """Apply it."""
        return self.call(x, self.p, self.training)

    def extra_repr(self) -> str:
        """Return the probability."""
        return f"p={self.p}"


def empty(shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Tensor:
    """Return a tensor without memory, which takes its place until the shapes of the network are checked."""
    return torch.empty(shape, dtype=dtype, device="meta")


def _own(module: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    for name, tensor in tensors.items():
        if name.startswith("running_"):
            module.register_buffer(name, tensor)
        else:
            module.register_parameter(name, nn.Parameter(tensor))
