"""Inputs, users, groups and shapes of the layers of a network, for the recognition of modules."""

from __future__ import annotations

from collections.abc import Iterable

from archive.architecture.aten.vocabulary import NAME as TORCH
from archive.architecture.aten.weights import shape as weight_shape
from archive.architecture.aten.wiring import values
from archive.architecture.graph import Architecture
from archive.architecture.layer import Layer
from archive.architecture.operations import vocabulary
from archive.architecture.outline.shapes import Shape, output_shapes

_GLUE = frozenset(
    "alias as_strided clone copy expand flip permute repeat roll select slice squeeze view unsqueeze "
    "split_with_sizes _to_copy getitem by_mode detach constant_pad_nd".split()
)
_WEIGHTED = frozenset(["conv", "fc", "recurrent", "embedding"])
_ACTIVATIONS = frozenset(["rectifier", "sigmoid"])


class Wiring:
    """A network as the recognition of modules reads it, in evaluation mode.

    Attributes:
        architecture: The network.
        layers: Its layers.
        groups: Group of each layer's operation.
        inputs: For each layer the number of an input to the position of its layer. A layer that
            chooses by mode has its input of evaluation alone.
        live: Whether each layer has a part in the outputs of evaluation.
        users: The live positions that read each layer's output.
        on_path: Whether each layer's value depends on the input; the others are sources.
        shapes: Shape of each layer's output (`shapes.output_shapes`).
    """

    def __init__(self, architecture: Architecture) -> None:
        """Read the wiring of a network."""
        self.architecture = architecture
        self.layers = architecture.layers
        words = vocabulary(architecture.space)
        self.operations = [words[layer.op] for layer in self.layers]
        self.groups = [operation.group for operation in self.operations]
        self.torch = architecture.space == TORCH
        self.inputs: list[dict[int, int]] = []
        for u, layer in enumerate(self.layers):
            inputs = values(architecture, u) if words.arguments else {}
            if not words.arguments:
                inputs = dict(enumerate(architecture.parents[u]))
            elif layer.op == "by_mode" and 1 in inputs:
                inputs = {0: inputs[1]}

            self.inputs.append(inputs)

        self.shapes: list[Shape | None] = [None] * len(self.layers)
        if self.torch:
            self.shapes = output_shapes(architecture)

        self.live = [False] * len(self.layers)
        self.live[0] = self.live[-1] = True
        for u in reversed(range(len(self.layers))):
            for parent in self.inputs[u].values():
                self.live[parent] = self.live[parent] or self.live[u]

        self.on_path = [True] + [False] * (len(self.layers) - 1)
        self.users: list[list[int]] = [[] for _ in self.layers]
        for u, inputs in enumerate(self.inputs):
            for parent in dict.fromkeys(inputs.values()):
                self.on_path[u] = self.on_path[u] or self.on_path[parent]
                if self.live[u]:
                    self.users[parent].append(u)

    def paths(self, u: int) -> list[int]:
        """Return the inputs of a layer that depend on the network's input, without repetition."""
        return [p for p in dict.fromkeys(self.inputs[u].values()) if self.on_path[p]]

    def sources(self, u: int) -> list[int]:
        """Return the inputs of a layer that do not depend on the network's input."""
        return [p for p in dict.fromkeys(self.inputs[u].values()) if not self.on_path[p]]

    def next(self, u: int) -> int | None:
        """Return the only user of a layer; None where there are several or none."""
        return self.users[u][0] if len(self.users[u]) == 1 else None

    def is_glue(self, u: int) -> bool:
        """Return whether a layer only moves values, or is a dropout."""
        if self.layers[u].op == "cat":
            return len(self.paths(u)) == 1

        return self.layers[u].op in _GLUE or self.groups[u] == "dropout"

    def is_weighted(self, u: int) -> bool:
        """Return whether a layer on a path multiplies by weights."""
        return self.on_path[u] and self.groups[u] in _WEIGHTED

    def is_activation(self, u: int) -> bool:
        """Return whether a layer is an activation."""
        return self.groups[u] in _ACTIVATIONS

    def is_pointwise(self, u: int) -> bool:
        """Return whether a layer computes element by element from one value and sources."""
        return self.groups[u] == "elementwise" and len(self.paths(u)) == 1

    def is_scale(self, u: int) -> bool:
        """Return whether a layer multiplies by a trained tensor, such as a layer scale."""
        if self.layers[u].op != "mul" or len(self.paths(u)) != 1:
            return False

        return any(self.layers[p].op in ("parameter", "view") for p in self.sources(u))

    def weight(self, u: int) -> tuple[int, ...]:
        """Return the shape of a layer's weight; empty where it is not known."""
        layer = self.layers[u]
        if layer.op == "addmm" or layer.op == "mm":
            return weight_shape(layer, "mat2")[::-1]

        shape = weight_shape(layer, "weight")
        if not shape and layer.op == "convolution" and 1 in self.inputs[u]:
            shape = self.shapes[self.inputs[u][1]] or ()

        return shape

    def is_image(self, u: int) -> bool:
        """Return whether a layer is a convolution."""
        return self.groups[u] == "conv"

    def channels(self, u: int) -> tuple[int, int]:
        """Return the input and output channels of a weighted layer; 0 where they are unknown."""
        layer = self.layers[u]
        if not self.torch:
            return sum(filter(None, map(self._units, self.inputs[u].values()))), layer.units or 0

        weight = self.weight(u)
        if len(weight) < 2:
            return 0, layer.units or 0

        groups = layer.attributes.get("groups", 1)
        groups = groups if isinstance(groups, int) else 1
        if self.groups[u] == "conv":
            if layer.attributes.get("transposed"):
                return weight[0], weight[1] * groups

            return weight[1] * groups, weight[0]

        if self.groups[u] == "embedding":
            return weight[0], weight[1]

        return weight[1], weight[0]

    def _units(self, u: int) -> int | None:
        return self.layers[u].units

    def kernel(self, u: int) -> tuple[int, ...]:
        """Return the window of a convolution or a pooling; empty for another layer."""
        if not self.torch:
            kernel = self.operations[u].kernel
            return (kernel, kernel) if kernel else ()

        if self.groups[u] == "conv":
            return self.weight(u)[2:]

        return sides(self.layers[u], "kernel_size")

    def stride(self, u: int) -> int:
        """Return the step of a layer's window."""
        return max(sides(self.layers[u], "stride"), default=self.layers[u].stride)

    def is_point(self, u: int) -> bool:
        """Return whether a layer is linear in the channels: a linear layer or a 1×1 convolution."""
        return self.groups[u] == "fc" or (self.groups[u] == "conv" and set(self.kernel(u)) == {1})

    def is_depthwise(self, u: int) -> bool:
        """Return whether a layer is a convolution of each channel for itself."""
        groups = self.layers[u].attributes.get("groups", 1)
        return self.groups[u] == "conv" and groups == self.channels(u)[0] and groups != 1


def sides(layer: Layer, name: str) -> tuple[int, ...]:
    """Return the sides of a window as numbers: a single number stands for two equal sides."""
    value = layer.attributes.get(name)
    if isinstance(value, tuple):
        return tuple(side for side in value if isinstance(side, int))

    return (value, value) if isinstance(value, int) and not isinstance(value, bool) else ()


def reach_back(wiring: Wiring, starts: Iterable[int], stop: int, most: int) -> set[int] | None:
    """Return the layers on paths from one layer to others, the others included.

    Args:
        wiring: The network.
        starts: The ends of the paths.
        stop: Their begin, which is not part of the result.
        most: Largest number of layers.

    Returns:
        The layers; None where a path does not come from `stop`, or there are more layers.
    """
    layers: set[int] = set()
    stack = list(starts)
    while stack:
        u = stack.pop()
        if u in layers or u == stop:
            continue

        if u < stop or len(layers) == most:
            return None

        layers.add(u)
        stack += wiring.paths(u)

    return layers
