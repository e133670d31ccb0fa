"""Networks of the space `nasbench101`: cells in the published skeleton.

Source: Ying et al., NAS-Bench-101 (2019), section 2.

    stem                3x3 convolution to C channels, normalisation, relu
    3 stacks            N cells each, with C, 2 C and 4 C channels; a maximum of 2 x 2 pixels
                        between stacks
    head                mean over the image, linear layer

Published are C = 128 and N = 3; the options `channels` and `cells` change them.
A vertex sums the outputs of its parents, cut to its channels where they have one more, and a
projection of the cell's input if that feeds it: a 1x1 convolution, normalisation and relu. The
output is the concatenation of its parents, plus a projection of the input if that feeds it.

The output's channels are divided evenly among the inner vertices that feed it; where that leaves a
remainder, the first of them get one channel more. Any other inner vertex has as many channels as
the largest of the inner vertices it feeds (`nasbench/lib/model_builder.py` of
google-research/nasbench).

"First" depends on the order of the vertices, and isomorphic cells differ in it. The published cell
of each class is the first that `nasbench/scripts/generate_graphs.py` enumerates: by the bits of its
matrix, column by column, the last column highest; then by the labels. `published_order` finds it,
so that all relabellings of a cell have the parameters of the publication.

Normalisations have momentum 0.997 in TensorFlow's sense, 0.003 in torch's, which needs a thousand
steps to follow the data; a protocol of fewer steps sets the option `norm_momentum`. Kernels are
drawn as in the publication, normal with variance 1 / fan in and cut at two standard deviations; the
last layer uniform, after Glorot.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from archive.architecture.graph import Architecture, Neighbours
from archive.architecture.operations import NASBENCH101
from archive.errors import InvalidArchitectureError
from archive.trainer.nn.costs import Costs, measure
from archive.trainer.nn.layers import halve
from archive.trainer.protocols.networks import NetworkForm

CHANNELS = 128
CELLS = 3
STACKS = 3
MOMENTUM = 0.003

_TRUNCATED = 0.87962566103423978
"""Standard deviation of a standard normal variable that is cut at two."""


@final
class NasBench101Network(nn.Module):
    """The network of a cell.

    Args:
        architecture: Cell of the space; isomorphic cells have the same network up to the order of
            modules.
        form: Form of the network.
    """

    def __init__(self, architecture: Architecture, form: NetworkForm) -> None:
        """Draw the weights from torch's generator."""
        super().__init__()
        channels = form.count("channels", CHANNELS)
        momentum = form.share("norm_momentum", MOMENTUM)
        self.stem = conv_norm_relu(form.input_shape[0], channels, 3, momentum)
        self.stacks = nn.ModuleList()
        for plans in _plans(architecture, form):
            cells = [NasBench101Cell(plan, momentum) for plan in plans]
            self.stacks.append(nn.Sequential(*cells))

        self.classifier = nn.Linear(channels << (STACKS - 1), form.outputs)
        nn.init.xavier_uniform_(self.classifier.weight)
        nn.init.zeros_(self.classifier.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, *input_shape) to (n, outputs)."""
        features = self.stem(x)
        for index, stack in enumerate(self.stacks):
            if index:
                window = [min(2, side) for side in features.shape[2:]]
                features = F.max_pool2d(features, window, 2, ceil_mode=True)

            features = stack(features)

        logits: Tensor = self.classifier(features.mean(dim=(2, 3)))
        return logits


@final
class NasBench101Cell(nn.Module):
    """A cell with the channels of a plan."""

    def __init__(self, plan: CellPlan, momentum: float) -> None:
        """Build the projections and the operations."""
        super().__init__()
        self.plan = plan
        self.projections = nn.ModuleDict()
        for v in plan.projected:
            projection = conv_norm_relu(plan.channels[0], plan.channels[v], 1, momentum)
            self.projections[str(v)] = projection

        self.operations = nn.ModuleList()
        for name, channels in zip(plan.operations, plan.channels[1:-1], strict=True):
            self.operations.append(_operation(name, channels, momentum))

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, inputs, h, w) to (n, outputs, h, w)."""
        values = [x]
        for v, layer in enumerate(self.operations, start=1):
            summands = [values[u][:, : self.plan.channels[v]] for u in self.plan.inner_parents(v)]
            values.append(layer(self._with_projection(v, x, summands)))

        last = len(values)
        ends = [values[u] for u in self.plan.inner_parents(last)]
        if len(ends) > 1:
            ends = [torch.cat(ends, dim=1)]

        return self._with_projection(last, x, ends)

    def _with_projection(self, v: int, x: Tensor, summands: list[Tensor]) -> Tensor:
        if v in self.plan.projected:
            summands = [*summands, self.projections[str(v)](x)]

        total = summands[0]
        for other in summands[1:]:
            total = total + other

        return total


def conv_norm_relu(inputs: int, outputs: int, kernel: int, momentum: float) -> nn.Sequential:
    """Return a convolution without bias, a normalisation and a relu."""
    convolution = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False)
    deviation = 1 / math.sqrt(inputs * kernel**2) / _TRUNCATED
    nn.init.trunc_normal_(convolution.weight, std=deviation, a=-2 * deviation, b=2 * deviation)
    return nn.Sequential(
        convolution, nn.BatchNorm2d(outputs, eps=1e-5, momentum=momentum), nn.ReLU()
    )


def costs(architecture: Architecture, form: NetworkForm) -> Costs:
    """Return the costs of a network without building it.

    Each kind of convolution is measured once.
    """
    channels = form.count("channels", CHANNELS)
    sides = form.input_shape[1:]
    params, flops = _conv_costs(form.input_shape[0], channels, 3, sides)
    for stack, plans in enumerate(_plans(architecture, form)):
        if stack:
            sides = halve(sides)

        for cell in plans:
            for inputs, outputs, kernel in cell.convolutions():
                convolution = _conv_costs(inputs, outputs, kernel, sides)
                params = params + convolution.params
                flops = flops + convolution.flops

    last = ((channels << (STACKS - 1)) + 1) * form.outputs
    return Costs(params + last, flops + last)


def _plans(architecture: Architecture, form: NetworkForm) -> list[list[CellPlan]]:
    """Return the plan of each cell, by stack; only the first cell of a stack may differ."""
    order = published_order(architecture)
    channels = form.count("channels", CHANNELS)
    inputs = form.count("channels", CHANNELS)
    stacks = []
    for stack in range(STACKS):
        outputs = channels << stack
        first = plan(architecture, order, inputs, outputs)
        others = first if inputs == outputs else plan(architecture, order, outputs, outputs)
        stacks.append([first, *[others] * (form.count("cells", CELLS) - 1)])
        inputs = outputs

    return stacks


def _operation(name: str, channels: int, momentum: float) -> nn.Module:
    word = NASBENCH101[name]
    if word.pools:
        return nn.MaxPool2d(word.kernel, stride=1, padding=word.kernel // 2)

    return conv_norm_relu(channels, channels, word.kernel, momentum)


@lru_cache(maxsize=4096)
def _conv_costs(inputs: int, outputs: int, kernel: int, sides: tuple[int, ...]) -> Costs:
    with torch.device("meta"):
        return measure(conv_norm_relu(inputs, outputs, kernel, MOMENTUM), (inputs, *sides))


_LABELS = {name: index for index, name in enumerate(NASBENCH101.of_group("cell"))}


@dataclass(frozen=True, slots=True)
class CellPlan:
    """Channels and connections of a cell, its vertices in published order.

    Attributes:
        operations: Labels of the inner vertices.
        parents: Vertices that feed each vertex, ascending.
        channels: Channels of each vertex; the first are the cell's inputs, the last its outputs.
        projected: Vertices that the input feeds, through a projection.
    """

    operations: tuple[str, ...]
    parents: Neighbours
    channels: tuple[int, ...]
    projected: tuple[int, ...]

    def inner_parents(self, v: int) -> tuple[int, ...]:
        """Return the parents of a vertex without the input."""
        parents = self.parents[v]
        return parents[1:] if parents and parents[0] == 0 else parents

    def convolutions(self) -> Iterator[tuple[int, int, int]]:
        """Yield (inputs, outputs, kernel) of each convolution, projections first."""
        for v in self.projected:
            yield self.channels[0], self.channels[v], 1

        for name, channels in zip(self.operations, self.channels[1:-1], strict=True):
            if not NASBENCH101[name].pools:
                yield channels, channels, NASBENCH101[name].kernel


def plan(architecture: Architecture, order: Sequence[int], inputs: int, outputs: int) -> CellPlan:
    """Return the plan of a cell.

    Args:
        architecture: The cell.
        order: Its vertices in the order in which channels are assigned (`published_order`).
        inputs: Channels of its input.
        outputs: Channels of its output.

    Raises:
        InvalidArchitectureError: More vertices share the channels of the output than it has.
    """
    position = _positions(order)
    parents = tuple(tuple(sorted(position[p] for p in architecture.parents[old])) for old in order)
    operations = _inner_operations(architecture, order)
    projected = tuple(v for v, feeding in enumerate(parents) if 0 in feeding)
    return CellPlan(operations, parents, _channels(parents, inputs, outputs), projected)


def published_order(architecture: Architecture) -> tuple[int, ...]:
    """Return the vertices of a cell in the order of the published cell that is isomorphic to it."""
    last = len(architecture.layers) - 1
    needs = [frozenset(parents) - {0} for parents in architecture.parents]
    orders = [(0, *inner, last) for inner in _topological(frozenset(range(1, last)), needs)]
    if len(orders) == 1:
        return orders[0]

    return min(orders, key=lambda order: _number(architecture, order))


def _channels(parents: Neighbours, inputs: int, outputs: int) -> tuple[int, ...]:
    last = len(parents) - 1
    channels = [inputs, *[0] * (last - 1), outputs]
    ends = [v for v in parents[last] if v]
    if len(ends) > outputs:
        raise InvalidArchitectureError(
            f"{len(ends)} vertices of the cell share the {outputs} channels of its output: set "
            f"channels to {len(ends)} or more in the protocol's network"
        )

    for index, v in enumerate(ends):
        channels[v] = outputs // len(ends) + (index < outputs % len(ends))

    for v in range(last - 1, 0, -1):
        # A vertex comes after all that it feeds: its channels are final.
        for parent in parents[v]:
            if parent and parent not in ends:
                channels[parent] = max(channels[parent], channels[v])

    return tuple(channels)


def _topological(
    left: frozenset[int], needs: Sequence[frozenset[int]]
) -> Iterator[tuple[int, ...]]:
    """Yield the orders of the remaining vertices in which each follows the vertices it needs."""
    if not left:
        yield ()

    for v in sorted(left):
        if not needs[v] & left:
            for others in _topological(left - {v}, needs):
                yield (v, *others)


def _number(architecture: Architecture, order: Sequence[int]) -> tuple[int, list[int]]:
    """Return the place of a cell with this order in the enumeration of all cells of its size."""
    position = _positions(order)
    bits = 0
    for old_tail, old_head in architecture.edges:
        tail = position[old_tail]
        head = position[old_head]
        bits += 1 << (tail + head * (head - 1) // 2)

    return bits, [_LABELS[name] for name in _inner_operations(architecture, order)]


def _positions(order: Sequence[int]) -> dict[int, int]:
    """Return the new position of each vertex."""
    return {old: new for new, old in enumerate(order)}


def _inner_operations(architecture: Architecture, order: Sequence[int]) -> tuple[str, ...]:
    """Return the operations of the inner vertices in an order."""
    return tuple(architecture.layers[old].op for old in order[1:-1])
