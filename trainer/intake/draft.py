"""A network under construction: layers and edges of the space `torch`, in the order in which they
are added.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from archive.architecture.aten import weights
from archive.architecture.aten.signature import signatures
from archive.architecture.aten.vocabulary import COMMUTATIVE, NAME
from archive.architecture.aten.wiring import Input
from archive.architecture.graph import Architecture, Layer
from archive.architecture.layer import Attributes
from archive.architecture.operations import INPUT, OUTPUT

WINDOWED = frozenset(
    (
        "convolution",
        *(f"avg_pool{d}d" for d in (1, 2, 3)),
        *(f"max_pool{d}d_with_indices" for d in (2, 3)),
    )
)
"""Operations whose stride is the layer's own."""

# Lists that are one number where all their values are equal.
_SPATIAL = ("kernel_size", "padding", "dilation", "output_padding", "stride")


@dataclass
class Draft:
    """Layers and edges so far.

    Attributes:
        layers: The layers.
        edges: Tail and head to the arguments of the edge.
        names: Position and name of each owned or `parameter` tensor to its name in the model.
    """

    layers: list[Layer] = field(default_factory=list)
    edges: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    names: dict[tuple[int, str], str] = field(default_factory=dict)

    def begin(self, inputs: Sequence[Input]) -> list[int]:
        """Add the input layer, and return the position of each input."""
        at = self._put(Layer(INPUT, attributes=Attributes({"input": " ".join(map(str, inputs))})))
        if len(inputs) == 1:
            return [at]

        return [self.add("getitem", {"item": item}, {0: at}) for item in range(len(inputs))]

    def add(self, op: str, attributes: Mapping[str, Any], inputs: Mapping[int, int]) -> int:
        """Add a layer and return its position.

        Args:
            op: Its operation.
            attributes: Its attributes; defaults are left out.
            inputs: Argument to the position of the layer that it comes from.
        """
        settings, stride = _plain(op, attributes)
        layer = Layer(op, None, stride, Attributes(settings))
        at = self._put(Layer(op, weights.units(layer), stride, layer.attributes))
        if not inputs:
            # Every layer is behind the input.
            self.edges[0, at] = []

        either = op in COMMUTATIVE and sorted(inputs) == [0, 1] and "alpha" not in layer.attributes
        for argument, tail in inputs.items():
            self.edges.setdefault((tail, at), []).append(0 if either else argument)

        return at

    def end(self, outputs: Iterable[int]) -> Architecture:
        """Add the output layer, remove what does not lead to it, and return the network.

        `names` are those of the network's layers from then on.
        """
        last = self._put(Layer(OUTPUT))
        for argument, tail in enumerate(outputs):
            self.edges.setdefault((tail, last), []).append(argument)

        kept = sorted({0, *self._before(last)})
        position = {old: new for new, old in enumerate(kept)}
        edges = [
            (position[tail], position[head], *used)
            for (tail, head), used in self.edges.items()
            if head in position
        ]
        network = Architecture(NAME, [self.layers[old] for old in kept], edges)
        # Layers were added in topological order, which the network keeps.
        assert network.layers == tuple(self.layers[old] for old in kept)
        self.names = {
            (position[at], name): full for (at, name), full in self.names.items() if at in position
        }
        return network

    def _put(self, layer: Layer) -> int:
        self.layers.append(layer)
        return len(self.layers) - 1

    def _before(self, last: int) -> set[int]:
        tails: dict[int, list[int]] = {}
        for tail, head in self.edges:
            tails.setdefault(head, []).append(tail)

        reached = {last}
        stack = [last]
        while stack:
            for tail in tails.get(stack.pop(), ()):
                if tail not in reached:
                    reached.add(tail)
                    stack.append(tail)

        return reached


def _plain(op: str, attributes: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    """Return attributes without defaults, lists of one spatial value as that value, and the layer's
    stride.
    """
    settings = {name: _one(name, value) for name, value in attributes.items() if value is not None}
    stride = 1
    if op in WINDOWED:
        stride = settings.get("stride") or settings.get("kernel_size", 1)
        if isinstance(stride, int):
            settings.pop("stride", None)
        else:
            settings["stride"] = stride
            stride = 1

    defaults = {
        parameter.name: parameter.default
        for signature in signatures()[op]
        for parameter in signature.parameters
    }
    return {
        name: value for name, value in settings.items() if _text(value) != defaults.get(name)
    }, stride


def _one(name: str, value: Any) -> Any:
    if name in _SPATIAL and isinstance(value, (list, tuple)) and value and len(set(value)) == 1:
        return value[0]

    return tuple(value) if isinstance(value, list) else value


def _text(value: Any) -> str:
    """Return a value as signatures write defaults."""
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_text, value)) + "]"

    return f'"{value}"' if isinstance(value, str) else repr(value)
