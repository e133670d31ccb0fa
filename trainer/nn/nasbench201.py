"""Networks of the space `nasbench201`: cells in the published skeleton.

Source: Dong and Yang, NAS-Bench-201 (2020), section 2.1.

    stem                3x3 convolution to C channels, normalisation
    3 stacks            N cells each, with C, 2 C and 4 C channels
    2 reductions        residual blocks between the stacks: half the side, twice the channels
    head                normalisation, relu, mean over the image, linear layer

    operation           module
    nor_conv_1x1, 3x3   relu, convolution without bias, normalisation
    avg_pool_3x3        mean of the pixels of the window that are inside the image
    skip_connect        identity

Published are C = 16 and N = 5; the options `channels` and `cells` change them. A node of a cell is
the sum of the operations that end in it. Dead layers are built and computed, as in the publication:
their parameters and operations are part of its figures. A node in which no operation ends is zero,
and so a convolution after it emits the offset of its normalisation.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import final

import torch
from torch import Tensor, nn

from archive.architecture.graph import Architecture, Layer, Neighbours
from archive.architecture.operations import INPUT, OUTPUT
from archive.trainer.nn.costs import Costs, measure
from archive.trainer.nn.layers import Pool, Shape, halve
from archive.trainer.protocols.networks import NetworkForm

CHANNELS = 16
CELLS = 5
STACKS = 3
MOMENTUM = 0.1

_EMPTY = Architecture("nasbench201", [Layer(INPUT), Layer(OUTPUT)], [])


@final
class NasBench201Network(nn.Module):
    """The network of a cell.

    Args:
        architecture: Cell of the space.
        form: Form of the network.
    """

    def __init__(self, architecture: Architecture, form: NetworkForm) -> None:
        """Draw the weights from torch's generator, as torch does by default."""
        super().__init__()
        channels = form.count("channels", CHANNELS)
        cells = form.count("cells", CELLS)
        momentum = form.share("norm_momentum", MOMENTUM)
        shape: Shape = (channels, *form.input_shape[1:])
        self.stem = nn.Sequential(
            nn.Conv2d(form.input_shape[0], channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels, momentum=momentum),
        )
        self.body = nn.Sequential()
        for stack in range(STACKS):
            if stack:
                reduction = Reduction(shape, momentum)
                self.body.append(reduction)
                shape = reduction.shape

            for _ in range(cells):
                self.body.append(NasBench201Cell(architecture, shape[0], momentum))

        self.norm = nn.Sequential(nn.BatchNorm2d(shape[0], momentum=momentum), nn.ReLU())
        self.classifier = nn.Linear(shape[0], form.outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, *input_shape) to (n, outputs)."""
        features = self.norm(self.body(self.stem(x)))
        logits: Tensor = self.classifier(features.mean(dim=(2, 3)))
        return logits


@final
class NasBench201Cell(nn.Module):
    """A cell, from C channels to C channels of the same size."""

    def __init__(self, architecture: Architecture, channels: int, momentum: float) -> None:
        """Build the operation of each inner layer, in the order of the architecture."""
        super().__init__()
        self.parents: Neighbours = architecture.parents
        self.operations = nn.ModuleList()
        for layer in architecture.layers[1:-1]:
            self.operations.append(operation(layer.op, channels, momentum))

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, channels, h, w) to (n, channels, h, w)."""
        values = [x]
        # Operations that begin in one node have the same parents: their sum is computed once.
        nodes: dict[tuple[int, ...], Tensor] = {}
        for parents, layer in zip(self.parents[1:-1], self.operations, strict=True):
            values.append(layer(_node(nodes, parents, values)))

        return _node(nodes, self.parents[-1], values)


@final
class Reduction(nn.Module):
    """A residual block with stride 2 that doubles the channels.

    Its shortcut is a mean of 2 x 2 pixels and a 1x1 convolution.

    Args:
        shape: (channels, height, width) of the input.
        momentum: Momentum of the normalisations.
    """

    def __init__(self, shape: Shape, momentum: float) -> None:
        """Build both branches."""
        super().__init__()
        pool = Pool(shape, "avg-pool")
        inputs = shape[0]
        outputs = 2 * shape[0]
        self.shape: Shape = (outputs, *pool.shape[1:])
        self.residual = nn.Sequential(
            relu_conv_norm(inputs, outputs, 3, momentum, stride=2),
            relu_conv_norm(outputs, outputs, 3, momentum),
        )
        self.shortcut = nn.Sequential(pool, nn.Conv2d(inputs, outputs, 1, bias=False))

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, channels, h, w) to (n, 2 channels, ceil(h / 2), ceil(w / 2))."""
        out: Tensor = self.residual(x) + self.shortcut(x)
        return out


def operation(name: str, channels: int, momentum: float) -> nn.Module:
    """Return the module of an operation; it keeps the number of channels."""
    if name == "skip_connect":
        return nn.Identity()

    if name == "avg_pool_3x3":
        return nn.AvgPool2d(3, stride=1, padding=1, count_include_pad=False)

    return relu_conv_norm(
        channels, channels, {"nor_conv_1x1": 1, "nor_conv_3x3": 3}[name], momentum
    )


def relu_conv_norm(
    inputs: int, outputs: int, kernel: int, momentum: float, stride: int = 1
) -> nn.Sequential:
    """Return a relu, a convolution without bias and a normalisation."""
    return nn.Sequential(
        nn.ReLU(),
        nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False),
        nn.BatchNorm2d(outputs, momentum=momentum),
    )


def costs(architecture: Architecture, form: NetworkForm) -> Costs:
    """Return the costs of a network without building it.

    The skeleton and each operation are measured once. The costs depend on
    the numbers of its operations alone.
    """
    operations = tuple(sorted(layer.op for layer in architecture.layers[1:-1]))
    channels = form.count("channels", CHANNELS)
    cells = form.count("cells", CELLS)
    return _costs(operations, form.input_shape, form.outputs, channels, cells)


@lru_cache(maxsize=4096)
def _costs(
    operations: tuple[str, ...], input_shape: Shape, outputs: int, channels: int, cells: int
) -> Costs:
    params, flops = _skeleton(input_shape, outputs, channels, cells)
    sides = input_shape[1:]
    for stack in range(STACKS):
        for name, count in Counter(operations).items():
            operation_costs = _operation_costs(name, channels << stack, sides)
            params = params + cells * count * operation_costs.params
            flops = flops + cells * count * operation_costs.flops

        sides = halve(sides)

    return Costs(params, flops)


@lru_cache(maxsize=64)
def _skeleton(input_shape: Shape, outputs: int, channels: int, cells: int) -> Costs:
    options = {"channels": channels, "cells": cells}
    with torch.device("meta"):
        return measure(
            NasBench201Network(_EMPTY, NetworkForm(input_shape, outputs, "", options=options)),
            input_shape,
        )


@lru_cache(maxsize=256)
def _operation_costs(name: str, channels: int, sides: tuple[int, ...]) -> Costs:
    with torch.device("meta"):
        return measure(operation(name, channels, MOMENTUM), (channels, *sides))


def _node(
    nodes: dict[tuple[int, ...], Tensor], parents: tuple[int, ...], values: list[Tensor]
) -> Tensor:
    if parents not in nodes:
        # `sum` would begin with the number zero, and add it.
        first = values[parents[0]] if parents else torch.zeros_like(values[0])
        for parent in parents[1:]:
            first = first + values[parent]

        nodes[parents] = first

    return nodes[parents]
