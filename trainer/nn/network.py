"""From an architecture to a torch module.

    network = Network(architecture, task.input_shape, outputs=10, kind="classification", seed=0)
    network(x)    # (n, 1, 8, 8) -> log-probabilities (n, 10)

A layer with several parents sees their outputs concatenated, in ascending position. The output is the mean of the
decision layers: of their probabilities in a classification, of their predictions in a regression (NASBOT, section 2.2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from archive.architecture.graph import Architecture, Layer
from archive.architecture.operations import Operation, vocabulary
from archive.errors import InvalidArchitectureError
from archive.trainer.nn.layers import Affine, Convolution, Dense, Dropout, Pool, Residual, Shape

DECISION_GAIN = 0.1
"""Decision layers begin small: the first predictions are near the mean, or undecided, whatever the network."""

Builder = Callable[[Shape, Layer, Operation, bool, torch.Generator], nn.Module]


class Network(nn.Module):
    """The network that an architecture of the space `mlp` or `cnn` describes.

    Weights are drawn on the CPU from the seed alone, so a GPU starts where a CPU does.

    Args:
        architecture: What to build.
        input_shape: (channels, height, width) or (features,) of one input.
        outputs: Number of classes; 1 in a regression.
        kind: `classification` or `regression`.
        normalise: Whether batch normalisation stands before each activation.
        seed: Of the initial weights.

    Attributes:
        layers: One module for each layer, by position; the input's and the output's do nothing.
        params: Number of trainable weights.
        weighted: The modules with weights, in the order of the layers.
        drops: What drops out before a layer in training, by its position.
        flops: Floating point operations of one forward pass of one input, two for each multiply-add of a layer
            with weights; the kernel's full size counts, also where it hangs over the image's border.

    Raises:
        InvalidArchitectureError: The space, an image's shape or a decision layer does not suit the task.
    """

    def __init__(
        self,
        architecture: Architecture,
        input_shape: Shape,
        outputs: int,
        kind: str,
        *,
        normalise: bool = True,
        seed: int = 0,
    ) -> None:
        """Build every layer in topological order."""
        super().__init__()
        check_buildable(architecture, input_shape, kind)
        generator = torch.Generator().manual_seed(seed)
        words = vocabulary(architecture.space)
        self.classifies = kind == "classification"
        self.parents = architecture.parents
        self.layers = nn.ModuleList()
        first = input_shape if words.images else (math.prod(input_shape),)
        self.flattens = not words.images
        shapes: list[Shape] = []
        macs = 0
        for parents, layer in zip(architecture.parents, architecture.layers, strict=True):
            operation = words[layer.op]
            if operation.group in ("input", "output"):
                self.layers.append(nn.Identity())
                shapes.append(first)
                continue
            incoming = _concatenated([shapes[p] for p in parents])
            if operation.group == "decision":
                module: nn.Module = Affine(incoming, outputs, generator, gain=DECISION_GAIN)
            else:
                module = BUILDERS[operation.group](incoming, layer, operation, normalise, generator)
            self.layers.append(module)
            shapes.append(module.shape)  # type: ignore[arg-type]
            macs += module.macs  # type: ignore[operator, assignment]
        self.weighted = [layer for layer in self.layers if next(layer.parameters(), None) is not None]
        self.drops: dict[int, Dropout] = {}
        self.params = sum(parameter.numel() for parameter in self.parameters())
        self.flops = 2 * macs

    def drop_out(self, rates: Sequence[float], seed: int) -> None:
        """Let a share of what enters each layer with weights be zero in training.

        Args:
            rates: One for each layer of `weighted`, in [0, 1).
            seed: Of what is dropped.
        """
        rate_of = {id(layer): rate for layer, rate in zip(self.weighted, rates, strict=True)}
        dropped = {at: rate for at, layer in enumerate(self.layers) if (rate := rate_of.get(id(layer), 0.0)) > 0.0}
        self.drops = {at: Dropout(rate, seed + at) for at, rate in dropped.items()}

    def dropping(self) -> dict[str, Tensor]:
        """Return the states of the generators of what drops out, by the positions of the layers."""
        return {str(at): state for at, drop in self.drops.items() if (state := drop.state()) is not None}

    def go_on_dropping(self, states: Mapping[str, Tensor]) -> None:
        """Drop out from now on what would have been dropped next when `dropping` returned these states."""
        device = next(self.parameters()).device
        for at, state in states.items():
            self.drops[int(at)].resume(state, device)

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, *input_shape) to log-probabilities (n, classes), or to predictions (n,) in a regression."""
        values: list[Tensor] = [x.flatten(1) if self.flattens else x]
        for at, (parents, layer) in enumerate(zip(self.parents[1:-1], self.layers[1:-1], strict=False), start=1):
            incoming = [values[p] for p in parents]
            entering = incoming[0] if len(incoming) == 1 else torch.cat(incoming, dim=1)
            if self.training and at in self.drops:
                entering = self.drops[at](entering)
            values.append(layer(entering))
        decisions = torch.stack([values[p] for p in self.parents[-1]])
        if not self.classifies:
            return decisions.mean(dim=0).squeeze(1)
        # The logarithm of a mean of probabilities, without ever leaving the logarithm: no probability underflows.
        return torch.logsumexp(decisions.log_softmax(dim=2), dim=0) - math.log(len(decisions))


def check_buildable(architecture: Architecture, input_shape: Shape, kind: str) -> None:
    """Refuse what cannot be trained on inputs of this shape.

    Raises:
        InvalidArchitectureError: The space is none of the trainer's, or does not suit the task.
    """
    space = architecture.space
    if space not in ("mlp", "cnn"):
        raise InvalidArchitectureError(f"the trainer builds networks of the spaces mlp and cnn, got {space}")
    if space == "cnn" and len(input_shape) != 3:
        raise InvalidArchitectureError(f"a cnn needs images, but an input has the shape {input_shape}")
    if space == "cnn" and kind == "regression":
        raise InvalidArchitectureError("a cnn decides by softmax, which gives no regression")


def _concatenated(shapes: list[Shape]) -> Shape:
    """Add up the channels (or features) of parents whose sides agree, as `Architecture` has checked."""
    return (sum(shape[0] for shape in shapes), *shapes[0][1:])


def _convolution(shape: Shape, layer: Layer, operation: Operation, normalise: bool, rng: torch.Generator) -> nn.Module:
    block = Residual if operation.residual else Convolution
    return block(shape, layer.units or 1, operation.kernel, layer.stride, normalise, rng)


def _pool(shape: Shape, layer: Layer, operation: Operation, normalise: bool, rng: torch.Generator) -> nn.Module:
    return Pool(shape, operation.name)


def _dense(shape: Shape, layer: Layer, operation: Operation, normalise: bool, rng: torch.Generator) -> nn.Module:
    activation = "relu" if operation.name == "fc" else operation.name
    return Dense(shape, layer.units or 1, activation, normalise, rng)


BUILDERS: dict[str, Builder] = {
    "conv": _convolution,
    "pool": _pool,
    "fc": _dense,
    "rectifier": _dense,
    "sigmoid": _dense,
}
"""What makes the module of each group of operations."""
