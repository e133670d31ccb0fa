"""Modules of layers: operations that own tensors, and operations that follow the training mode.

A layer owns its matrix, or uses the trained tensor of a layer `parameter`, as it is or with its
axes permuted. Several layers may share one. No other computed tensor counts as a matrix.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from archive.architecture.aten import weights, wiring
from archive.architecture.aten.signature import resolve
from archive.architecture.graph import Architecture, Layer
from archive.trainer.nn.units import Units


@final
class Weighted(nn.Module):
    """An operation with weights; its first input is given by position, so that hooks see it.

    Args:
        call: The operation.
        first: Name of the parameter that the first input is.
        weights: Its weights by the name of their parameter.
        settings: Its other arguments.
        units: Axes of the units in its matrices, by tensor name (`archive.trainer.nn.units`).
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
        self.call = call
        self.first = first
        self.settings = dict(settings)
        self.unit_axes = dict(units)
        _register(self, weights)

    def forward(self, x: Tensor, **computed: Any) -> Any:
        """Apply the operation; `computed` are inputs and sizes that other layers compute."""
        return self.call(
            **{self.first: x}, **self._parameters, **self._buffers, **self.settings, **computed
        )


@final
class TrainedTensor(nn.Module):
    """A trained tensor as a layer without inputs.

    Args:
        values: The tensor.
        units: Axes of the units of the layers that use it as their matrix; empty without one.

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
        momentum: Weight of a batch in the running statistics; NaN for the mean of all batches,
            which are counted then.
        eps: Number added to the variance.

    Attributes:
        num_batches_tracked: Number of batches in a mean of all, () int64; None with another
            momentum.
    """

    num_batches_tracked: Tensor | None

    def __init__(self, tensors: Mapping[str, Tensor], momentum: float, eps: float) -> None:
        """Register the tensors."""
        super().__init__()
        self.momentum = momentum
        self.eps = eps
        _register(self, tensors)
        cumulative = math.isnan(momentum) and "running_mean" in tensors
        self.register_buffer("num_batches_tracked", empty((), torch.int64) if cumulative else None)

    def forward(self, x: Tensor, **computed: Tensor) -> Tensor:
        """Normalise a batch; `computed` are shared weights and computed statistics."""
        tensors = {**computed, **self._parameters, **self._buffers}
        mean = tensors.get("running_mean")
        var = tensors.get("running_var")
        weight = tensors.get("weight")
        bias = tensors.get("bias")
        if (
            self.training
            and self.num_batches_tracked is not None
            and mean is not None
            and var is not None
        ):
            # Of this batch alone: PyTorch takes a momentum that is a number, which a recorded step
            # would repeat.
            of_batch = torch.zeros_like(mean), torch.zeros_like(var)
            y = F.batch_norm(x, *of_batch, weight, bias, True, 1.0, self.eps)
            with torch.no_grad():
                share = self.num_batches_tracked.add_(1).to(mean.dtype).reciprocal()
                mean.lerp_(of_batch[0], share)
                var.lerp_(of_batch[1], share)

            return y

        return F.batch_norm(
            x, mean, var, weight, bias, self.training or mean is None, self.momentum, self.eps
        )

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
        # A file of ONNX has no number of batches.
        if self.num_batches_tracked is not None:
            state_dict.setdefault(
                f"{prefix}num_batches_tracked", torch.zeros((), dtype=torch.int64)
            )

        super()._load_from_state_dict(state_dict, prefix, *others)


@final
class Dropout(nn.Module):
    """Dropout of one of the kinds of PyTorch, in training only."""

    def __init__(self, call: Callable[[Tensor, float, bool], Tensor], p: float) -> None:
        """Keep the operation and the probability."""
        super().__init__()
        self.call = call
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Apply it."""
        return self.call(x, self.p, self.training)

    def extra_repr(self) -> str:
        """Return the probability."""
        return f"p={self.p}"


@final
class InstanceNorm(nn.Module):
    """Normalisation by each image in training, and by running statistics in evaluation.

    Args:
        tensors: Its own tensors among weight, bias, running_mean and running_var.
        momentum: Weight of a batch in the running statistics.
        eps: Number added to the variance.
    """

    def __init__(self, tensors: Mapping[str, Tensor], momentum: float, eps: float) -> None:
        """Register the tensors."""
        super().__init__()
        self.momentum = momentum
        self.eps = eps
        _register(self, tensors)

    def forward(self, x: Tensor, **computed: Tensor) -> Tensor:
        """Normalise each image; `computed` are shared weights and computed statistics."""
        tensors = {**computed, **self._parameters, **self._buffers}
        mean = tensors.get("running_mean")
        var = tensors.get("running_var")
        weight = tensors.get("weight")
        bias = tensors.get("bias")
        by_image = self.training or mean is None
        return F.instance_norm(x, mean, var, weight, bias, by_image, self.momentum, self.eps)


@final
class Following(nn.Module):
    """An operation with an argument that follows the mode.

    Args:
        call: The operation.
        name: The argument.
        modes: Its values in evaluation and in training.
        settings: Other arguments.
    """

    def __init__(
        self,
        call: Callable[..., Tensor],
        name: str,
        modes: tuple[Any, Any],
        settings: Mapping[str, Any],
    ) -> None:
        """Keep the arguments."""
        super().__init__()
        self.call = call
        self.name = name
        self.modes = modes
        self.settings = dict(settings)

    def forward(self, x: Tensor, *others: Tensor, **computed: Any) -> Tensor:
        """Apply the operation."""
        return self.call(
            x, *others, **self.settings, **computed, **{self.name: self.modes[self.training]}
        )


@final
class ByMode(nn.Module):
    """The first of two tensors in training, and the second in evaluation."""

    def forward(self, training: Tensor, evaluation: Tensor) -> Tensor:
        """Return the tensor of the mode."""
        return training if self.training else evaluation


def make_recurrent_layer(op: str, attributes: Mapping[str, Any]) -> nn.Module:
    """Return a recurrent layer of `torch.nn` on the device `meta`.

    Args:
        op: `lstm`, `gru` or `rnn`.
        attributes: Its settings by the names that `torch.nn` gives them.
    """
    layer: type[nn.Module] = {"lstm": Lstm, "gru": Gru, "rnn": Rnn}[op]
    with warnings.catch_warnings():
        # About a dropout between the layers of a single one.
        warnings.simplefilter("ignore")
        return layer(**attributes, device="meta")


@final
class Lstm(nn.LSTM):
    """`torch.nn.LSTM` with three outputs: all steps, the last state, the last cell."""

    def forward(self, x: Tensor, h0: Tensor | None = None, c0: Tensor | None = None) -> Any:  # type: ignore[override]
        """Run over the sequence; states that are left out are zero."""
        if h0 is None and c0 is None:
            steps, (state, cell) = super().forward(x)
            return steps, state, cell

        count = self.num_layers * (2 if self.bidirectional else 1)
        batch = x.shape[0 if self.batch_first else 1]
        h0 = x.new_zeros(count, batch, self.proj_size or self.hidden_size) if h0 is None else h0
        c0 = x.new_zeros(count, batch, self.hidden_size) if c0 is None else c0
        steps, (state, cell) = super().forward(x, (h0, c0))
        return steps, state, cell


@final
class Gru(nn.GRU):
    """`torch.nn.GRU` with the name of its state that the archive has."""

    def forward(self, x: Tensor, h0: Tensor | None = None) -> Any:  # type: ignore[override]
        """Run over the sequence; a state that is left out is zero."""
        return super().forward(x, h0)


@final
class Rnn(nn.RNN):
    """`torch.nn.RNN` with the name of its state that the archive has."""

    def forward(self, x: Tensor, h0: Tensor | None = None) -> Any:  # type: ignore[override]
        """Run over the sequence; a state that is left out is zero."""
        return super().forward(x, h0)


def empty(shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Tensor:
    """Return a tensor without memory, for the time until the network's shapes are checked."""
    return torch.empty(shape, dtype=dtype, device="meta")


def _register(module: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    for name, tensor in tensors.items():
        if name.startswith("running_"):
            module.register_buffer(name, tensor)
        else:
            module.register_parameter(name, nn.Parameter(tensor))


class SharedMatrix(NamedTuple):
    """A trained tensor that is the matrix of a layer.

    Attributes:
        tensor: Position of the tensor.
        units: Axis of the layer's units in it.
    """

    tensor: int
    units: Units


def find_owned(layer: Layer) -> dict[str, tuple[Units, ...]]:
    """Return the axes of the units in the matrices that a layer owns, by tensor name."""
    by_name: dict[str, tuple[Units, ...]] = {}
    for name in weights.owned(layer):
        axis = weights.unit_axis(layer, name)
        if axis is not None and _is_matrix(weights.shape(layer, name), axis):
            by_name[name] = (Units(axis, weights.input_groups(layer)),)

    return by_name


def find_shared(architecture: Architecture) -> dict[int, SharedMatrix]:
    """Return the trained tensors that serve as matrices, by the position of their user."""
    by_layer = {}
    for u, layer in enumerate(architecture.layers):
        if layer.op not in weights.OWNED:
            continue

        used = wiring.values(architecture, u)
        signature = resolve(layer.op, layer.attributes, used.keys())
        for number, tail in used.items():
            axis = weights.unit_axis(layer, signature.tensors[number].name)
            if axis is None:
                continue

            units = Units(axis, weights.input_groups(layer))
            matrix = _find_source(architecture, tail, units)
            if matrix is not None:
                by_layer[u] = matrix

    return by_layer


def _find_source(architecture: Architecture, position: int, units: Units) -> SharedMatrix | None:
    """Return the trained tensor behind a layer's output, before permutations of its axes.

    None if the layer computes another tensor.
    """
    layer = architecture.layers[position]
    if layer.op == "parameter":
        shape = weights.shape(layer, "shape")
        return SharedMatrix(position, units) if _is_matrix(shape, units.axis) else None

    dims = layer.attributes.get("dims")
    # Groups are parts of the first axis.
    if (
        layer.op != "permute"
        or not isinstance(dims, tuple)
        or len(dims) <= units.axis
        or units.groups > 1
    ):
        return None

    axis = dims[units.axis]
    source = wiring.values(architecture, position)[0]
    return (
        _find_source(architecture, source, Units(axis % len(dims)))
        if isinstance(axis, int)
        else None
    )


def _is_matrix(shape: tuple[int, ...], axis: int) -> bool:
    return len(shape) > max(axis, 1)
