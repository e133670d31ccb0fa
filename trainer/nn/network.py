"""The torch module of an architecture.

    network = Network(architecture, task.input_shape, outputs=10, kind="classification", seed=0)
    network(x)    # (n, 1, 8, 8) -> log-probabilities (n, 10)

The input of a layer with several parents is the concatenation of their outputs, in ascending position. The output is
the mean over the decision layers: of their probabilities in a classification, of their predictions in a regression
(NASBOT, section 2.2).
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
"""Small initial weights of decision layers: the first predictions of any network are near the mean, or undecided."""

Builder = Callable[[Shape, Layer, Operation, bool, torch.Generator], nn.Module]


class Network(nn.Module):
    """The network of an architecture of the space `mlp` or `cnn`.

    Weights are drawn on the CPU from the seed alone, so a GPU starts with the same ones.

    Args:
        architecture: Architecture to build.
        input_shape: (channels, height, width) or (features,) of one input.
        outputs: Number of classes; 1 in a regression.
        kind: `classification` or `regression`.
        normalise: Whether there is batch normalisation before each activation.
        seed: Seed of the initial weights.

    Attributes:
        layers: One module for each layer, by position; those of the input and the output are identities.
        params: Number of trainable weights.
        weighted: The modules with weights, in the order of the layers.
        dropouts: Dropout of a layer's input in training, by the layer's position.
        flops: Floating point operations of one forward pass of one input, two for each multiply-add of a layer
            with weights; the kernel's full size counts, also where it overlaps the image's border.

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
        self.dropouts: dict[int, Dropout] = {}
        self.params = sum(parameter.numel() for parameter in self.parameters())
        self.flops = 2 * macs

    def set_dropout(self, rates: Sequence[float], seed: int) -> None:
        """Apply dropout to the input of each layer with weights.

        Args:
            rates: One rate for each layer of `weighted`, in [0, 1).
            seed: Seed of the generators.
        """
        rate_of = {id(layer): rate for layer, rate in zip(self.weighted, rates, strict=True)}
        dropped = {at: rate for at, layer in enumerate(self.layers) if (rate := rate_of.get(id(layer), 0.0)) > 0.0}
        self.dropouts = {at: Dropout(rate, seed + at) for at, rate in dropped.items()}

    def dropout_states(self) -> dict[str, Tensor]:
        """Return the states of the dropout generators, by the positions of the layers."""
        return {str(at): state for at, drop in self.dropouts.items() if (state := drop.state()) is not None}

    def restore_dropout(self, states: Mapping[str, Tensor]) -> None:
        """Restore the dropout generators saved by `dropout_states`."""
        device = next(self.parameters()).device
        for at, state in states.items():
            self.dropouts[int(at)].resume(state, device)

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, *input_shape) to log-probabilities (n, classes), or to predictions (n,) in a regression."""
        values: list[Tensor] = [x.flatten(1) if self.flattens else x]
        for at, (parents, layer) in enumerate(zip(self.parents[1:-1], self.layers[1:-1], strict=False), start=1):
            incoming = [values[p] for p in parents]
            value = incoming[0] if len(incoming) == 1 else torch.cat(incoming, dim=1)
            if self.training and at in self.dropouts:
                value = self.dropouts[at](value)
            values.append(layer(value))
        decisions = torch.stack([values[p] for p in self.parents[-1]])
        if not self.classifies:
            return decisions.mean(dim=0).squeeze(1)
        # Log of the mean of probabilities, computed in log space: no probability underflows.
        return torch.logsumexp(decisions.log_softmax(dim=2), dim=0) - math.log(len(decisions))


def check_buildable(architecture: Architecture, input_shape: Shape, kind: str) -> None:
    """Check that a network can be built and trained on inputs of this shape.

    Raises:
        InvalidArchitectureError: The trainer does not build networks of the space, or it does not suit the task.
    """
    space = architecture.space
    if space not in ("mlp", "cnn"):
        raise InvalidArchitectureError(f"the trainer builds networks of the spaces mlp and cnn, got {space}")
    if space == "cnn" and len(input_shape) != 3:
        raise InvalidArchitectureError(f"a cnn needs images, but an input has the shape {input_shape}")
    if space == "cnn" and kind == "regression":
        raise InvalidArchitectureError("a cnn decides by softmax, which gives no regression")


def _concatenated(shapes: list[Shape]) -> Shape:
    """Return the shape of concatenated outputs; `Architecture` guarantees that their sides agree."""
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
"""Builder of each group of operations."""
