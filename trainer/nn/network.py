"""The torch module of an architecture of the spaces `mlp` and `cnn`.

    network = Network(architecture, NetworkForm((1, 8, 8), 10, "classification"), seed=0)
    network(x)    # (n, 1, 8, 8) -> logits (n, 10)

The input of a layer with several parents is the concatenation of their outputs, in ascending
position. The output is the mean over the decision layers: of their probabilities in a
classification, of their predictions in a regression (NASBOT, section 2.2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from archive.architecture.graph import Architecture, Layer
from archive.architecture.operations import Operation, vocabulary
from archive.trainer.nn.layers import Affine, Convolution, Dense, Pool, Residual, Shape
from archive.trainer.protocols.networks import NetworkForm

DECISION_GAIN = 0.1
"""Small initial weights of decision layers: the first predictions of any network are near the mean,
or undecided."""

_FREED = torch.empty(0)
"""Stands for an output that no later layer needs."""

LayerBuilder = Callable[[Shape, Layer, Operation, bool, torch.Generator], nn.Module]


class Network(nn.Module):
    """The network of an architecture.

    Weights are drawn on the CPU from the seed alone, so a GPU starts with the same ones.

    Args:
        architecture: Architecture to build.
        form: Its form.
        seed: Seed of the initial weights.

    Attributes:
        layers: One module for each layer, by position; input and output are identities.
        weighted: The modules with weights, in the order of the layers.
    """

    def __init__(self, architecture: Architecture, form: NetworkForm, *, seed: int = 0) -> None:
        """Build every layer in topological order."""
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        words = vocabulary(architecture.space)
        self.classifies = form.kind == "classification"
        self.parents = architecture.parents
        self.layers = nn.ModuleList()
        first = form.input_shape if words.images else (math.prod(form.input_shape),)
        self._last_uses = _last_uses(architecture.parents)
        self.flattens = not words.images
        shapes: list[Shape] = []
        for parents, layer in zip(architecture.parents, architecture.layers, strict=True):
            operation = words[layer.op]
            if operation.group in ("input", "output"):
                self.layers.append(nn.Identity())
                shapes.append(first)
                continue

            incoming = _concatenate([shapes[p] for p in parents])
            if operation.group == "decision":
                module: nn.Module = Affine(incoming, form.outputs, generator, gain=DECISION_GAIN)
            else:
                module = _LAYERS[operation.group](
                    incoming, layer, operation, form.normalise, generator
                )

            self.layers.append(module)
            shapes.append(module.shape)  # type: ignore[arg-type]

        self.weighted: list[nn.Module] = []
        for module in self.layers:
            if next(module.parameters(), None) is not None:
                self.weighted.append(module)

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, *input_shape) to logits (n, classes); in a regression to predictions (n, 1)."""
        values: list[Tensor] = [x.flatten(1) if self.flattens else x]
        for parents, layer, unused in zip(
            self.parents[1:-1], self.layers[1:-1], self._last_uses[1:-1], strict=True
        ):
            incoming = [values[p] for p in parents]
            joined = incoming[0] if len(incoming) == 1 else torch.cat(incoming, dim=1)
            # An evaluation holds only the outputs that later layers need.
            del incoming
            for position in unused:
                values[position] = _FREED

            values.append(layer(joined))
            del joined

        if len(self.parents[-1]) == 1:
            return values[self.parents[-1][0]]

        decisions = torch.stack([values[p] for p in self.parents[-1]])
        if not self.classifies:
            return decisions.mean(dim=0)

        # Log of the mean of probabilities, computed in log space: no probability underflows.
        return torch.logsumexp(decisions.log_softmax(dim=2), dim=0) - math.log(len(decisions))


def _last_uses(parents: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return for each layer the parents that no later layer uses."""
    last_user: dict[int, int] = {}
    for layer, layer_parents in enumerate(parents):
        for parent in layer_parents:
            last_user[parent] = layer

    freed: list[list[int]] = [[] for _ in parents]
    for parent, user in last_user.items():
        freed[user].append(parent)

    return freed


def _concatenate(shapes: list[Shape]) -> Shape:
    """Return the shape of concatenated outputs; `Architecture` guarantees equal sides."""
    return (sum(shape[0] for shape in shapes), *shapes[0][1:])


def _convolution(
    shape: Shape, layer: Layer, operation: Operation, normalise: bool, rng: torch.Generator
) -> nn.Module:
    block = Residual if operation.residual else Convolution
    return block(shape, layer.units or 1, operation.kernel, layer.stride, normalise, rng)


def _pool(
    shape: Shape, layer: Layer, operation: Operation, normalise: bool, rng: torch.Generator
) -> nn.Module:
    return Pool(shape, operation.name)


def _dense(
    shape: Shape, layer: Layer, operation: Operation, normalise: bool, rng: torch.Generator
) -> nn.Module:
    activation = "relu" if operation.name == "fc" else operation.name
    return Dense(shape, layer.units or 1, activation, normalise, rng)


_LAYERS: dict[str, LayerBuilder] = {
    "conv": _convolution,
    "pool": _pool,
    "fc": _dense,
    "rectifier": _dense,
    "sigmoid": _dense,
}
"""Builder of each group of operations."""
