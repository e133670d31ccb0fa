"""Networks of the spaces `darts` and `nasnet`: cells in the CIFAR skeleton of DARTS.

Source: Liu, Simonyan, Yang: DARTS (2019).

    stem            3x3 convolution to 3 C channels, normalisation
    cells           N normal cells with C channels; a reduction cell and N normal cells with 2 C;
                    a reduction cell and N normal cells with 4 C
    head            mean over the image, linear layer
    auxiliary head  after the second reduction cell, in training only

    cell k          states 0 and 1 are the outputs of cells k - 2 and k - 1, brought to C channels
                    by a relu, a pointwise convolution and a normalisation; state 0 also to the size
                    of state 1 where cell k - 1 is a reduction cell (`FactorizedReduce`);
                    a node is the sum of two operations; the output concatenates nodes;
                    in a reduction cell, operations on the states 0 and 1 have stride 2

Published are C = 36 and N = 6, which are 20 cells, an auxiliary loss with weight 0.4, and drop path
with a probability that rises from zero to 0.2 in the course of the training. The options
`channels`, `cells`, `auxiliary` and `drop_path` change them. Drop path sets an operation to zero
for some inputs of a batch and scales the others up; the identity is never dropped.

Operations are as in `cnn/operations.py` of DARTS' repository:

    operation        module, from C channels to C channels with stride s
    sep_conv_kxk     twice: relu, depthwise k x k, pointwise, normalisation; stride s in the first
    dil_conv_kxk     relu, depthwise k x k with dilation 2 and stride s, pointwise, normalisation
    conv_7x1_1x7     relu, 1x7 with stride s along the rows, 7x1 with stride s along the columns,
                     normalisation
    max_pool_3x3     maximum of the pixels of the window that are inside the image
    avg_pool_3x3     mean of the pixels of the window that are inside the image
    skip_connect     identity; with stride 2, `FactorizedReduce`
    none             zero: no module

Convolutions have no bias, normalisations have weights. A side of s pixels becomes ceil(s / 2) with
stride 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from archive.architecture.genotypes.codec import to_genotype
from archive.architecture.genotypes.genotype import INPUTS, Choice
from archive.architecture.genotypes.operations import NONE
from archive.architecture.graph import Architecture
from archive.trainer.nn.costs import Costs, measure
from archive.trainer.nn.layers import Shape, halve
from archive.trainer.protocols.networks import NetworkForm

CHANNELS = 36
CELLS = 6
STACKS = 3
STEM = 3
AUXILIARY = 0.4
DROP_PATH = 0.2
MOMENTUM = 0.1


@final
class GenotypeNetwork(nn.Module):
    """The network of a genotype.

    Args:
        architecture: Architecture of the space `darts` or `nasnet`.
        form: Form of the network.

    Attributes:
        auxiliary: The auxiliary head; there is none if its loss has weight zero.
    """

    auxiliary: AuxiliaryHead
    kept: Tensor

    def __init__(self, architecture: Architecture, form: NetworkForm) -> None:
        """Draw the weights from torch's generator, as torch does by default."""
        super().__init__()
        genotype = to_genotype(architecture)
        momentum = form.share("norm_momentum", MOMENTUM)
        channels = form.count("channels", CHANNELS)
        cells = form.count("cells", CELLS)
        self.drop_path = form.share("drop_path", DROP_PATH)
        self.register_buffer("kept", torch.ones(()), persistent=False)
        self.stem = _stem(form.input_shape[0], STEM * channels, momentum)
        self.cells = nn.ModuleList()
        widths = [STEM * channels] * 2
        reduced = False
        for stack in range(STACKS):
            for reduces in _stack_cells(stack, cells):
                choices, concat = genotype[2:] if reduces else genotype[:2]
                cell = GenotypeCell(
                    choices,
                    concat,
                    (widths[-2], widths[-1]),
                    channels << stack,
                    reduces,
                    reduced,
                    momentum,
                )
                self.cells.append(cell)
                widths.append(cell.width)
                reduced = reduces

        # The second reduction cell comes after two stacks and another one.
        self.auxiliary_at = 2 * cells + 1
        self.auxiliary_weight = form.share("auxiliary", AUXILIARY)
        if self.auxiliary_weight > 0:
            self.auxiliary = AuxiliaryHead(widths[2 + self.auxiliary_at], form.outputs, momentum)

        self.classifier = nn.Linear(widths[-1], form.outputs)

    def set_progress(self, share: float) -> None:
        """Set the probability of drop path to its part at this share of the training."""
        self.kept.fill_(1.0 - self.drop_path * share)

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, *input_shape) to (n, outputs)."""
        return self._outputs(x)[0]

    def with_auxiliary(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the outputs and the auxiliary head's outputs, each (n, outputs)."""
        outputs, features = self._outputs(x)
        return outputs, self.auxiliary(features)

    def _outputs(self, x: Tensor) -> tuple[Tensor, Tensor]:
        kept = self.kept if self.training and self.drop_path > 0 else None
        values = [self.stem(x)] * 2
        for cell in self.cells:
            values.append(cell(values[-2], values[-1], kept))

        logits: Tensor = self.classifier(values[-1].mean(dim=(2, 3)))
        return logits, values[INPUTS + self.auxiliary_at]


@final
class GenotypeCell(nn.Module):
    """A normal or a reduction cell.

    Args:
        choices: Two operations with their states for each node.
        concat: States that the output concatenates.
        inputs: Channels of the outputs of cells k - 2 and k - 1.
        channels: Channels of each state.
        reduces: Whether this is a reduction cell.
        reduced: Whether cell k - 1 is one.
        momentum: Momentum of the normalisations.
    """

    def __init__(
        self,
        choices: tuple[Choice, ...],
        concat: tuple[int, ...],
        inputs: tuple[int, int],
        channels: int,
        reduces: bool,
        reduced: bool,
        momentum: float,
    ) -> None:
        """Build the preprocessing of both inputs and all operations but `none`."""
        super().__init__()
        self.concat = concat
        self.width = len(concat) * channels
        self.stride = 2 if reduces else 1
        preprocess = FactorizedReduce if reduced else relu_conv_norm
        self.first = preprocess(inputs[0], channels, momentum)
        self.second = relu_conv_norm(inputs[1], channels, momentum)
        self.operations = nn.ModuleDict()
        self.nodes: list[list[tuple[str, int]]] = []
        for index, (name, state) in enumerate(choices):
            if index % 2 == 0:
                self.nodes.append([])

            if name != NONE:
                stride = self.stride if state < INPUTS else 1
                self.nodes[-1].append((str(index), state))
                self.operations[str(index)] = operation(name, channels, stride, momentum)

    def forward(self, before: Tensor, last: Tensor, kept: Tensor | None) -> Tensor:
        """Return the output of cell k from the outputs of cells k - 2 and k - 1.

        Args:
            before: (n, inputs[0], h, w), or of twice the size if cell k - 1 is a reduction cell.
            last: (n, inputs[1], h, w).
            kept: Probability with which drop path keeps an operation for an input; None drops none.
        """
        states = [self.first(before), self.second(last)]
        for node in self.nodes:
            summands = [self._operate(name, states[state], kept) for name, state in node]
            if not summands:
                # A node of two operations `none` is zero.
                summands = [torch.zeros_like(states[0][:, :, :: self.stride, :: self.stride])]

            states.append(summands[0] if len(summands) == 1 else summands[0] + summands[1])

        return torch.cat([states[state] for state in self.concat], dim=1)

    def _operate(self, name: str, x: Tensor, kept: Tensor | None) -> Tensor:
        layer = self.operations[name]
        value: Tensor = layer(x)
        if kept is None or isinstance(layer, nn.Identity):
            return value

        return value * (torch.bernoulli(kept.expand(len(x), 1, 1, 1)) / kept)


@final
class AuxiliaryHead(nn.Module):
    """The auxiliary head of DARTS, on images of 8 x 8 pixels after the second reduction.

    Smaller images are pooled to 2 x 2 evenly.

    Args:
        channels: Channels of the features.
        outputs: Number of outputs.
        momentum: Momentum of the normalisations.
    """

    def __init__(self, channels: int, outputs: int, momentum: float) -> None:
        """Build both convolutions and the linear layer."""
        super().__init__()
        self.project = nn.Sequential(
            nn.Conv2d(channels, 128, 1, bias=False),
            nn.BatchNorm2d(128, momentum=momentum),
            nn.ReLU(),
        )
        self.reduce = nn.Sequential(
            nn.Conv2d(128, 768, 2, bias=False), nn.BatchNorm2d(768, momentum=momentum), nn.ReLU()
        )
        self.classifier = nn.Linear(768, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, channels, h, w) to (n, outputs)."""
        x = F.relu(x)
        pooled = F.avg_pool2d(x, 5, 3) if min(x.shape[2:]) >= 8 else F.adaptive_avg_pool2d(x, 2)
        logits: Tensor = self.classifier(self.reduce(self.project(pooled)).mean(dim=(2, 3)))
        return logits


def _stack_cells(stack: int, cells: int) -> list[bool]:
    """Return whether each cell of a stack is a reduction cell."""
    normal = [False] * cells
    return [True, *normal] if stack else normal


def _stem(inputs: int, outputs: int, momentum: float) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs, momentum=momentum),
    )


def costs(architecture: Architecture, form: NetworkForm) -> Costs:
    """Return the costs of a network without building it: each kind of part is measured once."""
    genotype = to_genotype(architecture)
    channels = form.count("channels", CHANNELS)
    cells = form.count("cells", CELLS)
    sides = form.input_shape[1:]
    states = [STEM * channels] * 2
    params, flops = _stem_costs(form.input_shape, STEM * channels)
    reduced = False
    for stack in range(STACKS):
        for reduces in _stack_cells(stack, cells):
            choices, concat = genotype[2:] if reduces else genotype[:2]
            inputs = (states[-2], states[-1])
            for part in _cell_costs(choices, inputs, channels << stack, sides, reduces, reduced):
                params = params + part.params
                flops = flops + part.flops

            states.append(len(concat) * (channels << stack))
            sides = halve(sides) if reduces else sides
            reduced = reduces

    last = (states[-1] + 1) * form.outputs
    return Costs(params + last, flops + last)


def _cell_costs(
    choices: tuple[Choice, ...],
    inputs: tuple[int, int],
    channels: int,
    sides: Shape,
    reduces: bool,
    reduced: bool,
) -> Iterator[Costs]:
    """Yield the costs of the parts of a cell; `sides` are the sides of cell k - 1's output."""
    if reduced:
        # Cell k - 2 has images of about twice the side, of which the parity changes no count.
        yield _preprocessing_costs(inputs[0], channels, tuple(2 * side for side in sides), True)
    else:
        yield _preprocessing_costs(inputs[0], channels, sides, False)

    yield _preprocessing_costs(inputs[1], channels, sides, False)
    inner = halve(sides) if reduces else sides
    for name, state in choices:
        if name != NONE:
            strided = reduces and state < INPUTS
            yield _operation_costs(
                name, channels, 2 if strided else 1, sides if state < INPUTS else inner
            )


@lru_cache(maxsize=64)
def _stem_costs(input_shape: Shape, channels: int) -> Costs:
    with torch.device("meta"):
        return measure(_stem(input_shape[0], channels, MOMENTUM), input_shape)


@lru_cache(maxsize=1024)
def _preprocessing_costs(inputs: int, outputs: int, sides: Shape, halves: bool) -> Costs:
    kind = FactorizedReduce if halves else relu_conv_norm
    with torch.device("meta"):
        return measure(kind(inputs, outputs, MOMENTUM), (inputs, *sides))


@lru_cache(maxsize=1024)
def _operation_costs(name: str, channels: int, stride: int, sides: Shape) -> Costs:
    with torch.device("meta"):
        return measure(operation(name, channels, stride, MOMENTUM), (channels, *sides))


def operation(name: str, channels: int, stride: int, momentum: float) -> nn.Module:
    """Return the module of an operation other than `none`."""
    if name == "skip_connect":
        return nn.Identity() if stride == 1 else FactorizedReduce(channels, channels, momentum)

    if name == "max_pool_3x3":
        return nn.MaxPool2d(3, stride, padding=1)

    if name == "avg_pool_3x3":
        return nn.AvgPool2d(3, stride, padding=1, count_include_pad=False)

    if name == "conv_7x1_1x7":
        return nn.Sequential(
            nn.ReLU(),
            nn.Conv2d(channels, channels, (1, 7), (1, stride), padding=(0, 3), bias=False),
            nn.Conv2d(channels, channels, (7, 1), (stride, 1), padding=(3, 0), bias=False),
            nn.BatchNorm2d(channels, momentum=momentum),
        )

    kind = name[:3]
    kernel = int(name[-1])
    if kind == "dil":
        return nn.Sequential(*_separable(channels, kernel, stride, 2, momentum))

    first = _separable(channels, kernel, stride, 1, momentum)
    return nn.Sequential(*first, *_separable(channels, kernel, 1, 1, momentum))


def relu_conv_norm(inputs: int, outputs: int, momentum: float) -> nn.Sequential:
    """Return a relu, a pointwise convolution and a normalisation."""
    return nn.Sequential(
        nn.ReLU(),
        nn.Conv2d(inputs, outputs, 1, bias=False),
        nn.BatchNorm2d(outputs, momentum=momentum),
    )


@final
class FactorizedReduce(nn.Module):
    """Halves the image: half of the channels from even rows and columns, half from odd ones.

    Beyond an image of odd side, the next row and column are zero.
    """

    def __init__(self, inputs: int, outputs: int, momentum: float) -> None:
        """Build both convolutions; of an odd number of channels, the second gets one more."""
        super().__init__()
        self.even = nn.Conv2d(inputs, outputs // 2, 1, stride=2, bias=False)
        self.odd = nn.Conv2d(inputs, outputs - outputs // 2, 1, stride=2, bias=False)
        self.norm = nn.BatchNorm2d(outputs, momentum=momentum)

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, inputs, h, w) to (n, outputs, ceil(h / 2), ceil(w / 2))."""
        x = F.relu(x)
        shifted = F.pad(x, (0, 1, 0, 1))[:, :, 1:, 1:]
        out: Tensor = self.norm(torch.cat((self.even(x), self.odd(shifted)), dim=1))
        return out


def _separable(
    channels: int, kernel: int, stride: int, dilation: int, momentum: float
) -> list[nn.Module]:
    padding = dilation * (kernel // 2)
    return [
        nn.ReLU(),
        nn.Conv2d(
            channels, channels, kernel, stride, padding, dilation, groups=channels, bias=False
        ),
        nn.Conv2d(channels, channels, 1, bias=False),
        nn.BatchNorm2d(channels, momentum=momentum),
    ]
