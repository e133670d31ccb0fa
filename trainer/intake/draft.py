"""A network under construction: layers and edges of the space `torch`, in order of addition."""

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
        "avg_pool1d",
        "avg_pool2d",
        "avg_pool3d",
        "max_pool2d_with_indices",
        "max_pool3d_with_indices",
    )
)
"""Operations with a stride, which is the stride of the layer."""

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
        position = self._put(
            Layer(INPUT, attributes=Attributes({"input": " ".join(map(str, inputs))}))
        )
        if len(inputs) == 1:
            return [position]

        return [self.add("getitem", {"item": item}, {0: position}) for item in range(len(inputs))]

    def add(self, op: str, attributes: Mapping[str, Any], inputs: Mapping[int, int]) -> int:
        """Add a layer and return its position.

        Args:
            op: Its operation.
            attributes: Its attributes; defaults are left out.
            inputs: Argument to the position of the layer that it comes from.
        """
        settings, stride = _plain(op, attributes)
        layer = Layer(op, None, stride, Attributes(settings))
        position = self._put(Layer(op, weights.units(layer), stride, layer.attributes))
        if not inputs:
            # Every layer is behind the input.
            self.edges[0, position] = []

        either = op in COMMUTATIVE and sorted(inputs) == [0, 1] and "alpha" not in layer.attributes
        for argument, tail in inputs.items():
            self.edges.setdefault((tail, position), []).append(0 if either else argument)

        return position

    def end(self, outputs: Iterable[int]) -> Architecture:
        """Add the output layer, remove layers that do not lead to it, and return the network.

        Afterwards `names` has the positions of the network's layers.
        """
        last = self._put(Layer(OUTPUT))
        for argument, tail in enumerate(outputs):
            self.edges.setdefault((tail, last), []).append(argument)

        kept = sorted({0, *self._before(last)})
        positions = {old: new for new, old in enumerate(kept)}
        edges: list[tuple[int, ...]] = []
        for (tail, head), arguments in self.edges.items():
            if head in positions:
                edges.append((positions[tail], positions[head], *arguments))

        network = Architecture(NAME, [self.layers[old] for old in kept], edges)
        # Layers were added in topological order, which the network keeps.
        assert network.layers == tuple(self.layers[old] for old in kept)
        names: dict[tuple[int, str], str] = {}
        for (old, name), full_name in self.names.items():
            if old in positions:
                names[positions[old], name] = full_name

        self.names = names
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
    """Return attributes without defaults and with short spatial values, and the layer's stride."""
    settings: dict[str, Any] = {}
    for name, value in attributes.items():
        if value is not None:
            settings[name] = _shorten(name, value)

    stride = 1
    if op in WINDOWED:
        stride = settings.get("stride") or settings.get("kernel_size", 1)
        if isinstance(stride, int):
            settings.pop("stride", None)
        else:
            settings["stride"] = stride
            stride = 1

    defaults: dict[str, str] = {}
    for signature in signatures()[op]:
        for parameter in signature.parameters:
            defaults[parameter.name] = parameter.default

    shortened: dict[str, Any] = {}
    for name, value in settings.items():
        if _text(value) != defaults.get(name):
            shortened[name] = value

    return shortened, stride


def _shorten(name: str, value: Any) -> Any:
    """Return a spatial list of equal values as that value, and another list as a tuple."""
    if name in _SPATIAL and isinstance(value, (list, tuple)) and value and len(set(value)) == 1:
        return value[0]

    return tuple(value) if isinstance(value, list) else value


def _text(value: Any) -> str:
    """Return a value as signatures write defaults."""
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_text, value)) + "]"

    return f'"{value}"' if isinstance(value, str) else repr(value)
