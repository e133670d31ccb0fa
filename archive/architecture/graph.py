"""Architectures: frozen, validated, labelled directed acyclic graphs of layers.

Layers are in topological order, the input first and the output last. Edges are pairs of positions.
In spaces whose operations tell their inputs apart (`Vocabulary.arguments`), an edge has the
positions of its inputs as well. Two architectures are equal (`==`) if their layers and edges are
equal. They are the same network if their keys are equal (`archive.architecture.canonical`), in
whatever order their layers are listed.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence, Set
from functools import cached_property

from archive.architecture import canonical, graph_checks
from archive.architecture.layer import Arguments, Edge, Layer
from archive.architecture.operations import INPUT, OUTPUT, vocabulary
from archive.errors import InvalidArchitectureError

__all__ = ["Architecture", "Arguments", "Connection", "Edge", "Layer", "Neighbours"]

Connection = tuple[int, ...]
"""Tail and head of an edge, then its arguments."""
Neighbours = tuple[tuple[int, ...], ...]


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
        pairs = graph_checks.check_edges(edges, len(unordered), words)
        order = _topological_order(unordered, pairs)
        position = {old: new for new, old in enumerate(order)}
        moved = sorted(
            (position[tail], position[head], arguments) for (tail, head), arguments in pairs.items()
        )
        put = self.__dict__.__setitem__
        put("space", space)
        put("layers", tuple(unordered[old] for old in order))
        put("edges", tuple((tail, head) for tail, head, _ in moved))
        if words.arguments:
            put("arguments", tuple(arguments for _, _, arguments in moved))

        graph_checks.validate(self, words)

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
            f"<Architecture {self.space} {len(self.layers)} layers {len(self.edges)} edges "
            f"{self.key[:8]}>"
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

        return tuple(
            (*edge, *arguments) for edge, arguments in zip(self.edges, self.arguments, strict=True)
        )

    @cached_property
    def argument_of(self) -> dict[Edge, Arguments]:
        """The arguments by edge; empty where inputs are not told apart."""
        return dict(zip(self.edges, self.arguments, strict=False))

    @cached_property
    def parents(self) -> Neighbours:
        """The positions that feed each layer, ascending."""
        return _neighbours(len(self.layers), ((head, tail) for tail, head in self.edges))

    @cached_property
    def children(self) -> Neighbours:
        """The positions that each layer feeds, ascending."""
        return _neighbours(len(self.layers), self.edges)

    @cached_property
    def key(self) -> str:
        """32 hexadecimal digits, equal exactly for two architectures of the same network."""
        return canonical.key(self.space, self.layers, self.connections)

    @cached_property
    def functional_key(self) -> str:
        """`key` of the network without the layers that are not `live`."""
        if len(self.live) == len(self.layers):
            return self.key

        return canonical.key(self.space, *self._live_graph())

    @cached_property
    def live(self) -> tuple[int, ...]:
        """The positions on some path from input to output, ascending.

        Both ends are always among them.

        No path passes a layer whose operation is zero (`Operation.zero`).
        """
        last = len(self.layers) - 1
        zeros = vocabulary(self.space).zeros
        closed = {u for u, layer in enumerate(self.layers) if layer.op in zeros} if zeros else set()
        return tuple(
            sorted(
                (_reach(self.children, 0, closed) & _reach(self.parents, last, closed)) | {0, last}
            )
        )

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
        network = Architecture(self.space, *self._live_graph())
        network.__dict__.update(key=self.functional_key, functional_key=self.functional_key)
        return network

    def _live_graph(self) -> tuple[list[Layer], list[Connection]]:
        new_position = {old: new for new, old in enumerate(self.live)}
        edges = [
            (new_position[t], new_position[h], *arguments)
            for t, h, *arguments in self.connections
            if t in new_position and h in new_position
        ]
        return [self.layers[old] for old in self.live], edges

    @cached_property
    def canonical(self) -> Architecture:
        """The same network in canonical layer order, which all its relabellings share.

        The store keeps this form.
        """
        position = {old: new for new, old in enumerate(self.canonical_order)}
        edges = [
            (position[tail], position[head], *arguments)
            for tail, head, *arguments in self.connections
        ]
        relabelled = Architecture(
            self.space, [self.layers[old] for old in self.canonical_order], edges
        )
        relabelled.__dict__.update(key=self.key, functional_key=self.functional_key)
        return relabelled

    @cached_property
    def canonical_order(self) -> tuple[int, ...]:
        """The position in `layers` of each layer of the canonical form."""
        rank = canonical.canonical_ranks(self.layers, self.connections)
        return tuple(_topological_order(self.layers, self.edges, rank))

    @cached_property
    def levels(self) -> tuple[int | None, ...]:
        """Number of halvings of the image up to and including each layer.

        None for a layer whose output is a vector.

        The side of the image after layer u is `ceil(side / 2 ** levels[u])`. Halving rounds up, so
        layers of equal level have images of equal size for every input size.
        """
        return graph_checks.levels(self, vocabulary(self.space))

    @property
    def depth(self) -> int:
        """Hops on the longest path from input to output; 0 where no path leads there."""
        longest: list[int | None] = [None] * len(self.layers)
        longest[0] = 0
        for u, parents in enumerate(self.parents):
            lengths = [length for p in parents if (length := longest[p]) is not None]
            if lengths:
                longest[u] = 1 + max(lengths)

        return longest[-1] or 0


def _topological_order(
    layers: Sequence[Layer], edges: Iterable[Edge], rank: Sequence[int] | None = None
) -> list[int]:
    """Return positions in topological order, input first, output last, ties broken by rank."""
    rank = rank if rank is not None else range(len(layers))
    tie = [(_end(layer), rank[u], u) for u, layer in enumerate(layers)]
    waiting = [0] * len(layers)
    children: list[list[int]] = [[] for _ in layers]
    for tail, head in edges:
        children[tail].append(head)
        waiting[head] += 1

    ready = [tie[u] for u, count in enumerate(waiting) if not count]
    heapq.heapify(ready)
    order = []
    while ready:
        u = heapq.heappop(ready)[2]
        order.append(u)
        for child in children[u]:
            waiting[child] -= 1
            if not waiting[child]:
                heapq.heappush(ready, tie[child])

    if len(order) < len(layers):
        raise InvalidArchitectureError(
            "cycle through the layer", next(u for u, c in enumerate(waiting) if c)
        )

    return order


def _end(layer: Layer) -> int:
    return {INPUT: 0, OUTPUT: 2}.get(layer.op, 1)


def _neighbours(n: int, pairs: Iterable[Edge]) -> Neighbours:
    lists: list[list[int]] = [[] for _ in range(n)]
    for position, other in pairs:
        lists[position].append(other)

    return tuple(tuple(sorted(adjacent)) for adjacent in lists)


def _reach(neighbours: Neighbours, start: int, closed: Set[int]) -> set[int]:
    reached = {start}
    stack = [start]
    while stack:
        for other in neighbours[stack.pop()]:
            if other not in reached and other not in closed:
                reached.add(other)
                stack.append(other)

    return reached
