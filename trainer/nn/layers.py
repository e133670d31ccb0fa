"""Torch modules of the spaces `mlp` and `cnn`: the layers, and the network of an architecture.

    network = Network(architecture, NetworkForm((1, 8, 8), 10, "classification"), seed=0)
    network(x)    # (n, 1, 8, 8) -> logits (n, 10)

The input of a layer with several parents is the concatenation of their outputs, in ascending
position. The output is the mean over the decision layers: of their probabilities in a
classification, of their predictions in a regression (NASBOT, section 2.2).

    op                      module        output, for an input of C channels (or F features), side s
    conv3/5/7               Convolution   relu(norm(W * x)), units channels, side ceil(s / stride)
    res3/5/7                Residual      relu(norm(W2 * relu(norm(W1 * x))) + x), units channels;
                                          where the channels or the side change, a normalised 1x1
                                          convolution stands in for the last x
    max-pool, avg-pool      Pool          C channels, side ceil(s / 2); an average ignores pixels
                                          outside the image
    fc                      Dense         relu(norm(W x + b)), units features; an image is flattened
    relu … tanh             Dense         activation(norm(W x + b)), units features
    crelu                   Dense         relu and relu of the negative, 2 * units features
    softmax, linear         Affine        W x + b, one output for each class, or one in a regression

`norm` is batch normalisation if the task's protocol has it. NASBOT trains without it, for 24,000
iterations. Its initial pools of plain networks, up to 25 layers deep, learn little of images in the
few epochs of a search on a small data set; with batch normalisation they all learn at one learning
rate. A regression on a few hundred rows does better without: there the noise of the batches' means
costs more than it helps, and weights drawn to suit each activation carry the signal through 24
sigmoidal and rectifying layers.

The units of a crelu layer are its neurons, the rows of W. Mass and cost count them; each emits two
features.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from archive.architecture.graph import Architecture, Layer
from archive.architecture.operations import Operation, vocabulary
from archive.trainer.protocols.networks import NetworkForm

Shape = tuple[int, ...]
"""(channels, height, width) of an image or (features,) of a vector, without the batch."""


def halve(sides: Sequence[int]) -> Shape:
    """Return the sides of an image after a step of stride 2."""
    return tuple(-(-side // 2) for side in sides)


def crelu(x: Tensor) -> Tensor:
    """Return relu(x) and relu(-x) side by side: (n, f) -> (n, 2 f)."""
    return F.relu(torch.cat((x, -x), dim=1), inplace=True)


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "crelu": crelu,
    "leaky-relu": F.leaky_relu,
    "softplus": F.softplus,
    "elu": F.elu,
    "logistic": torch.sigmoid,
    "tanh": torch.tanh,
}

# Scale of the initial weights that keeps the signal's variance through the activation: He et al.
# (2015) for the rectifiers, one over the slope at zero for the others (Glorot and Bengio 2010), a
# little more for tanh, against its saturation.
_GAINS = {
    "relu": 2**0.5,
    "crelu": 1.0,
    "leaky-relu": 2**0.5,
    "softplus": 2**0.5,
    "elu": 1.25,
    "logistic": 4.0,
    "tanh": 5 / 3,
}


class Affine(nn.Module):
    """`W x + b` of a vector, or of a flattened image: the decision layers.

    Args:
        shape: Shape of the input.
        units: Number of outputs.
        generator: Source of the initial weights.
        gain: Factor of the initial weights' standard deviation `1 / sqrt(fan in)`.
        bias: Whether there is a bias b.
    """

    def __init__(
        self,
        shape: Shape,
        units: int,
        generator: torch.Generator,
        gain: float = 1.0,
        bias: bool = True,
    ):
        """Draw the weights, normal with variance gain^2 / fan in; the bias starts at zero."""
        super().__init__()
        features = math.prod(shape)
        self.weight = _weight((units, features), features, gain, generator)
        self.bias = nn.Parameter(torch.zeros(units)) if bias else None
        self.shape: Shape = (units,)

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, …) to (n, units)."""
        # `contiguous` first, so that the features stand in channel, row, column order whatever the
        # memory format.
        return F.linear(x.contiguous().flatten(1), self.weight, self.bias)


class Dense(nn.Module):
    """An affine map with normalisation and an activation."""

    def __init__(
        self, shape: Shape, units: int, activation: str, normalise: bool, generator: torch.Generator
    ):
        """Draw weights with the activation's gain."""
        super().__init__()
        self.affine = Affine(
            shape, units, generator, _GAINS.get(activation, 1.0), bias=not normalise
        )
        self.norm = nn.BatchNorm1d(units) if normalise else nn.Identity()
        self.activation = ACTIVATIONS[activation]
        self.shape: Shape = (2 * units,) if activation == "crelu" else (units,)

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, …) to (n, features)."""
        return self.activation(self.norm(self.affine(x)))


class Filter(nn.Module):
    """A zero-padded convolution with normalisation; only its stride shrinks the image.

    On a small image some taps of the kernel (on one pixel all but the centre) meet nothing but the
    padding, so they can neither change the output nor be learned: they are left out. The result
    equals the full kernel, at a ninth of the memory and the time for a 3 x 3 kernel on one pixel.
    """

    def __init__(
        self,
        shape: Shape,
        units: int,
        kernel: int,
        stride: int,
        normalise: bool,
        generator: torch.Generator,
    ):
        """Draw the weights, normal with variance 2 / (channels * taps that meet the image)."""
        super().__init__()
        channels, *sides = shape
        self.stride = stride
        self.reach = [min(kernel // 2, side - 1) for side in sides]
        taps = [2 * reach + 1 for reach in self.reach]
        self.shape: Shape = (units, *(-(-side // stride) for side in sides))
        self.weight = _weight(
            (units, channels, *taps), channels * math.prod(taps), 2**0.5, generator
        )
        self.bias = None if normalise else nn.Parameter(torch.zeros(units))
        self.norm = nn.BatchNorm2d(units) if normalise else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, channels, h, w) to (n, units, ceil(h / stride), ceil(w / stride))."""
        out: Tensor = self.norm(F.conv2d(x, self.weight, self.bias, self.stride, self.reach))
        return out


class Convolution(nn.Module):
    """A convolution with a relu."""

    def __init__(
        self,
        shape: Shape,
        units: int,
        kernel: int,
        stride: int,
        normalise: bool,
        generator: torch.Generator,
    ):
        """Draw the weights as `Filter` does."""
        super().__init__()
        self.filter = Filter(shape, units, kernel, stride, normalise, generator)
        self.shape = self.filter.shape

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, channels, h, w) to (n, units, h', w')."""
        return F.relu(self.filter(x), inplace=True)


class Residual(nn.Module):
    """Two convolutions, and the input added before the last relu (ResNet, 2016).

    The first convolution has the stride.
    """

    def __init__(
        self,
        shape: Shape,
        units: int,
        kernel: int,
        stride: int,
        normalise: bool,
        generator: torch.Generator,
    ):
        """Draw the weights; there is a 1x1 projection only if the shapes differ."""
        super().__init__()
        self.first = Filter(shape, units, kernel, stride, normalise, generator)
        self.second = Filter(self.first.shape, units, kernel, 1, normalise, generator)
        self.shape = self.second.shape
        self.projection: Filter | None = None
        if shape != self.shape:
            self.projection = Filter(shape, units, 1, stride, normalise, generator)

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, channels, h, w) to (n, units, h', w')."""
        inner = self.second(F.relu(self.first(x), inplace=True))
        return F.relu(inner + (x if self.projection is None else self.projection(x)), inplace=True)


class Pool(nn.Module):
    """The maximum or the average of each 2 x 2 window; odd sides end in a smaller window."""

    def __init__(self, shape: Shape, kind: str):
        """Keep the kind, `max-pool` or `avg-pool`."""
        super().__init__()
        channels, *sides = shape
        self.shape: Shape = (channels, *halve(sides))
        self.kind = kind
        # On one pixel both are the identity, and torch refuses a window larger than the image it is
        # moved over.
        self.window = [min(2, side) for side in sides]

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, channels, h, w) to (n, channels, ceil(h / 2), ceil(w / 2))."""
        if self.window == [1, 1]:
            return x

        if self.kind == "max-pool":
            return F.max_pool2d(x, self.window, 2, ceil_mode=True)

        return F.avg_pool2d(x, self.window, 2, ceil_mode=True, count_include_pad=False)


def _weight(shape: Shape, fan_in: int, gain: float, generator: torch.Generator) -> nn.Parameter:
    return nn.Parameter(torch.randn(shape, generator=generator).mul_(gain / math.sqrt(fan_in)))


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
