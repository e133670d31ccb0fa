"""Architectures: frozen, validated, labelled directed acyclic graphs of layers.

Layers are in topological order, the input first and the output last. Edges are pairs of positions.
In spaces whose operations tell their inputs apart (`Vocabulary.arguments`), an edge has the
positions of its inputs as well. Two architectures are equal (`==`) if their layers and edges are
equal. They are the same network if their keys are equal (`archive.architecture.canonical`), in
whatever order their layers are listed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import count
from operator import add
from typing import Any

from archive.architecture import canonical
from archive.architecture.layer import CONFIGURATION, Arguments, Attributes, Edge, Layer
from archive.architecture.operations import INPUT, OUTPUT, Operation, Vocabulary, vocabulary
from archive.architecture.traversal import Neighbours, neighbours_of, reach, topological_order
from archive.errors import InvalidArchitectureError

__all__ = ["Architecture", "Arguments", "Connection", "Edge", "Layer", "Neighbours"]

Connection = tuple[int, ...]
"""Tail and head of an edge, then its arguments."""

_MOST_ARGUMENTS = 10_000


class Architecture:
    """A network as a labelled DAG: immutable, hashable, validated by the constructor.

    Args:
        space: Name of the vocabulary that the labels belong to (`"cnn"`, `"mlp"`, `"nasbench101"`,
            …).
        layers: The layers in any order. They are sorted topologically; ties keep the order of the
            argument.
        edges: Pairs `(from, to)` of positions in `layers`; `(from, to, argument, …)` where inputs
            are told apart.

    Attributes:
        space: Name of the vocabulary.
        layers: The layers, topologically ordered, input first, output last.
        edges: Sorted pairs of positions in `layers`; every edge leads to a later position.
        arguments: Positions of each edge among the inputs of its head, ascending; empty for an edge
            without a value. No entries at all where the inputs of the space's operations are not
            told apart.

    Raises:
        InvalidArchitectureError: The graph is not a network; the message gives the reason and the
            layer.
        UnknownNameError: The space or a label does not exist.
    """

    space: str
    layers: tuple[Layer, ...]
    edges: tuple[Edge, ...]
    arguments: tuple[Arguments, ...] = ()

    def __init__(self, space: str, layers: Iterable[Layer], edges: Iterable[Connection]) -> None:
        """Order topologically, then validate."""
        words = vocabulary(space)
        unordered = tuple(layers)
        pairs = _check_edges(edges, len(unordered), words)
        order = topological_order(unordered, pairs)
        position = dict(zip(order, count()))
        moved: dict[Edge, Arguments] = {}
        for (tail, head), arguments in pairs.items():
            moved[position[tail], position[head]] = arguments

        moved = dict(sorted(moved.items()))
        put = self.__dict__.__setitem__
        put("space", space)
        put("layers", tuple(map(unordered.__getitem__, order)))
        put("edges", tuple(moved))
        if words.arguments:
            put("arguments", tuple(moved.values()))

        _validate(self, words)

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse: an architecture is immutable."""
        raise AttributeError(f"an architecture is immutable, cannot set {name!r}")

    def __eq__(self, other: object) -> bool:
        """Compare layers and edges in their order; compare `key` to test for the same network."""
        if not isinstance(other, Architecture):
            return NotImplemented

        content = (self.space, self.layers, self.edges, self.arguments)
        return content == (other.space, other.layers, other.edges, other.arguments)

    def __hash__(self) -> int:
        """Hash layers and edges in their order."""
        return hash((self.space, self.layers, self.edges))

    def __repr__(self) -> str:
        """Name the space, the size and the beginning of the key."""
        return (
            f"<Architecture {self.space} {len(self.layers)} "
            f"layers {len(self.edges)} edges {self.key[:8]}>"
        )

    def _repr_svg_(self) -> str:
        """Return the picture that notebooks show."""
        from archive.architecture.diagram import svg

        return svg(self)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the constructor's arguments, without cached properties."""
        return (Architecture, (self.space, self.layers, self.connections))

    @property
    def connections(self) -> tuple[Connection, ...]:
        """The edges with their arguments, as the constructor takes them."""
        if not self.arguments:
            return self.edges

        return tuple(map(add, self.edges, self.arguments))

    @cached_property
    def argument_of(self) -> dict[Edge, Arguments]:
        """The arguments by edge; empty where inputs are not told apart."""
        return dict(zip(self.edges, self.arguments, strict=False))

    @cached_property
    def parents(self) -> Neighbours:
        """The positions that feed each layer, ascending."""
        return neighbours_of(len(self.layers), self.edges, 1)

    @cached_property
    def children(self) -> Neighbours:
        """The positions that each layer feeds, ascending."""
        return neighbours_of(len(self.layers), self.edges, 0)

    @property
    def operations(self) -> list[Operation]:
        """The meaning of each layer's label."""
        words = vocabulary(self.space)
        return [words[layer.op] for layer in self.layers]

    @property
    def groups(self) -> list[str]:
        """The group of each layer's operation."""
        return [operation.group for operation in self.operations]

    def positions(self, *labels: str) -> list[int]:
        """Return the positions of the layers with one of these labels, ascending."""
        return [u for u, layer in enumerate(self.layers) if layer.op in labels]

    @cached_property
    def key(self) -> str:
        """32 hexadecimal digits, equal exactly for two architectures of the same network."""
        if self.network is not self:
            return canonical.joint_key(self.network.key, self.configuration)

        return self._key_and_ranks[0]

    @cached_property
    def _key_and_ranks(self) -> tuple[str, tuple[int, ...]]:
        return canonical.key_and_ranks(self.space, self.layers, self.connections)

    @cached_property
    def functional_key(self) -> str:
        """`key` of the network without the layers that are not `live`."""
        if self.network is not self:
            return canonical.joint_key(self.network.functional_key, self.configuration)

        if len(self.live) == len(self.layers):
            return self.key

        return canonical.key(self.space, *self._part(self.live))

    @property
    def network(self) -> Architecture:
        """The network without the parameters beside it; itself where there are none."""
        return self._network if CONFIGURATION in self.layers[0].attributes else self

    @cached_property
    def _network(self) -> Architecture:
        attributes = dict(self.layers[0].attributes)
        del attributes[CONFIGURATION]
        return self.with_input(Attributes(attributes))

    @property
    def configuration(self) -> Mapping[str, Any]:
        """The parameters beside the network by flat name; empty where there are none."""
        text = self.layers[0].attributes.get(CONFIGURATION)
        return {} if text is None else dict(json.loads(str(text)))

    def with_input(self, attributes: Attributes) -> Architecture:
        """Return the same graph with other attributes of its input, which are not checked."""
        copy = Architecture.__new__(Architecture)
        layers = (Layer(INPUT, attributes=attributes), *self.layers[1:])
        copy.__dict__.update(space=self.space, layers=layers, edges=self.edges)
        copy.__dict__["arguments"] = self.arguments
        return copy

    @cached_property
    def live(self) -> tuple[int, ...]:
        """The positions on some path from input to output, ascending.

        Both ends are always among them.

        No path passes a layer whose operation is zero (`Operation.zero`).
        """
        last = len(self.layers) - 1
        closed = set(self.positions(*vocabulary(self.space).zeros))
        fed = reach(self.children, 0, closed)
        used = reach(self.parents, last, closed)
        return tuple(sorted((fed & used) | {0, last}))

    @property
    def functional(self) -> Architecture:
        """The network without the layers that are not `live`; itself where all layers are."""
        computed = self.__dict__
        # If both keys are computed already and equal, all layers are live: no search for paths is
        # needed.
        if "key" in computed and computed["key"] == computed.get("functional_key"):
            return self

        return self if len(self.live) == len(self.layers) else self._without_dead_layers

    @cached_property
    def _without_dead_layers(self) -> Architecture:
        network = Architecture(self.space, *self._part(self.live))
        network.__dict__.update(key=self.functional_key, functional_key=self.functional_key)
        return network

    def _part(self, order: Sequence[int]) -> tuple[list[Layer], list[Connection]]:
        """Return the layers at these positions, in this order, and the edges between them."""
        position = dict(zip(order, count()))
        edges = []
        for tail, head, *arguments in self.connections:
            if tail in position and head in position:
                edges.append((position[tail], position[head], *arguments))

        return list(map(self.layers.__getitem__, order)), edges

    @property
    def canonical(self) -> Architecture:
        """The same network in canonical layer order, which all its relabellings share.

        The store keeps this form.
        """
        return self if self._is_canonical else self._relabelled

    @cached_property
    def _is_canonical(self) -> bool:
        return self.canonical_order == tuple(range(len(self.layers)))

    @cached_property
    def _relabelled(self) -> Architecture:
        relabelled = Architecture(self.space, *self._part(self.canonical_order))
        relabelled.__dict__.update(key=self.key, functional_key=self.functional_key)
        return relabelled

    @cached_property
    def canonical_order(self) -> tuple[int, ...]:
        """The position in `layers` of each layer of the canonical form."""
        rank = self._key_and_ranks[1]
        return tuple(topological_order(self.layers, self.edges, rank))

    @cached_property
    def levels(self) -> tuple[int | None, ...]:
        """Number of halvings of the image up to and including each layer.

        None for a layer whose output is a vector.

        The side of the image after layer u is `ceil(side / 2 ** levels[u])`. Halving rounds up, so
        layers of equal level have images of equal size for every input size.
        """
        return _levels(self, vocabulary(self.space))

    @property
    def depth(self) -> int:
        """Hops on the longest path from input to output; 0 where no path leads there."""
        longest: list[int | None] = [None] * len(self.layers)
        longest[0] = 0
        for tail, head in self.edges:
            length = longest[tail]
            if length is not None:
                longest[head] = max(longest[head] or 0, length + 1)

        return longest[-1] or 0


def _check_edges(edges: Iterable[Connection], n: int, words: Vocabulary) -> dict[Edge, Arguments]:
    """Return the arguments of each edge, checked.

    Args:
        edges: Pairs of positions, with arguments where the vocabulary has them.
        n: Number of layers.
        words: The vocabulary.

    Raises:
        InvalidArchitectureError: An edge does not join two layers, is repeated, or has arguments
            that it cannot have.
    """
    checked: dict[Edge, Arguments] = {}
    for tail, head, *arguments in edges:
        if not (0 <= tail < n and 0 <= head < n):
            raise InvalidArchitectureError(
                f"an edge must join two of the {n} layers, got ({tail}, {head})"
            )

        if tail == head:
            raise InvalidArchitectureError("cycle: the layer feeds itself", tail)

        if (tail, head) in checked:
            raise InvalidArchitectureError(f"the edge ({tail}, {head}) is given twice")

        if arguments and not words.arguments:
            edge = (tail, head, *arguments)
            raise InvalidArchitectureError(f"an edge of {words.name} has no arguments, got {edge}")

        if arguments and not 0 <= min(arguments) <= max(arguments) < _MOST_ARGUMENTS:
            edge = (tail, head, *arguments)
            raise InvalidArchitectureError(
                f"arguments of an edge must be in [0, {_MOST_ARGUMENTS}), got {edge}"
            )

        checked[tail, head] = tuple(sorted(arguments))

    return checked


def _validate(architecture: Architecture, words: Vocabulary) -> None:
    """Check labels, ends and connections of an architecture.

    Raises:
        InvalidArchitectureError: The graph is no network; the message gives the reason and the
            layer.
        UnknownNameError: A label does not exist.
    """
    _check_layers(architecture, words)
    _check_ends(architecture)
    if not words.dead_ends:
        _check_dead_ends(architecture)

    if words.decisions:
        _check_decisions(architecture, words)

    if words.images:
        _levels(architecture, words)


def _check_layers(architecture: Architecture, words: Vocabulary) -> None:
    for u, layer in enumerate(architecture.layers):
        operation = words[layer.op]
        if words.attributes:
            if layer.stride < 1 or (layer.units is not None and layer.units < 1):
                raise InvalidArchitectureError(
                    (
                        f"{layer.op} needs units and a stride >= 1, "
                        f"got {layer.units} and {layer.stride}"
                    ),
                    u,
                )

            continue

        if layer.attributes and (u > 0 or set(layer.attributes) != {CONFIGURATION}):
            raise InvalidArchitectureError(
                f"{layer.op} must have no attributes, got {layer.attributes.text:.60}", u
            )

        if operation.has_units:
            if layer.units is None or layer.units < 1:
                raise InvalidArchitectureError(f"{layer.op} needs units >= 1, got {layer.units}", u)
        elif layer.units is not None:
            raise InvalidArchitectureError(f"{layer.op} must have no units, got {layer.units}", u)

        if layer.stride not in operation.strides:
            allowed = " or ".join(map(str, operation.strides))
            raise InvalidArchitectureError(
                f"{layer.op} needs stride {allowed}, got {layer.stride}", u
            )


def _check_ends(architecture: Architecture) -> None:
    for op, name in ((INPUT, "input"), (OUTPUT, "output")):
        positions = architecture.positions(op)
        if not positions:
            raise InvalidArchitectureError(f"a network needs one {name} layer ({op!r}), got none")

        if len(positions) > 1:
            raise InvalidArchitectureError(
                f"a network needs one {name} layer, got a second {name}", positions[1]
            )

    # In topological order, a layer that feeds the input precedes it.
    if architecture.layers[0].op != INPUT:
        raise InvalidArchitectureError("the input is fed by a layer", 0)

    last = len(architecture.layers) - 1
    if architecture.layers[last].op != OUTPUT:
        raise InvalidArchitectureError("the output feeds a layer", last)


def _check_dead_ends(architecture: Architecture) -> None:
    n = len(architecture.layers)
    for u in range(n):
        op = architecture.layers[u].op
        if u > 0 and not architecture.parents[u]:
            raise InvalidArchitectureError(f"dead end: nothing feeds {op}", u)

        if u < n - 1 and not architecture.children[u]:
            raise InvalidArchitectureError(f"dead end: {op} feeds nothing", u)


def _check_decisions(architecture: Architecture, words: Vocabulary) -> None:
    last = len(architecture.layers) - 1
    for u, layer in enumerate(architecture.layers[:-1]):
        decides = words[layer.op].group == "decision"
        feeds_output = last in architecture.children[u]
        if feeds_output and not decides:
            raise InvalidArchitectureError(
                f"only decision layers feed the output, got {layer.op}", u
            )

        if decides and architecture.children[u] != (last,):
            raise InvalidArchitectureError(
                f"the decision layer {layer.op} feeds another layer than the output", u
            )


def _levels(architecture: Architecture, words: Vocabulary) -> tuple[int | None, ...]:
    """Return the number of halvings of the image up to each layer (`Architecture.levels`).

    Raises:
        InvalidArchitectureError: Images of several sizes meet, or a layer needs an image and has a
            vector.
    """
    level_of: list[int | None] = []
    for u, layer in enumerate(architecture.layers):
        operation = words[layer.op]
        incoming = {level_of[p] for p in architecture.parents[u]}
        if operation.group != "output" and len(incoming) > 1:
            raise InvalidArchitectureError(_mismatch(architecture, level_of, u), u)

        level = next(iter(incoming), 0)
        if operation.flat:
            level_of.append(None)
        elif level is None:
            raise InvalidArchitectureError(f"{layer.op} needs an image, but a vector feeds it", u)
        else:
            level_of.append(level + (layer.stride == 2))

    return tuple(level_of)


def _mismatch(architecture: Architecture, level_of: list[int | None], u: int) -> str:
    sizes = []
    for p in architecture.parents[u]:
        level = level_of[p]
        size = "a vector" if level is None else f"1/{2**level}"
        sizes.append(f"layer {p}: {size}")

    return f"image sizes do not meet at {architecture.layers[u].op}: {', '.join(sizes)}"
