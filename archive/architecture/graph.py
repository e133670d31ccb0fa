"""Architectures: frozen, validated, labelled directed acyclic graphs of layers.

Layers are in topological order, the input first and the output last. Edges are pairs of positions. Two architectures
are equal (`==`) if their layers and edges are equal. They are the same network if their keys are equal
(`archive.architecture.canonical`), in whatever order their layers are listed.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence, Set
from functools import cached_property

from archive.architecture import canonical
from archive.architecture.layer import Edge, Layer
from archive.architecture.operations import INPUT, OUTPUT, Vocabulary, vocabulary
from archive.errors import InvalidArchitectureError

__all__ = ["Architecture", "Edge", "Layer", "Neighbours"]

Neighbours = tuple[tuple[int, ...], ...]


class Architecture:
    """A network as a labelled DAG: immutable, hashable, validated by the constructor.

    Args:
        space: Name of the vocabulary that the labels belong to (`"cnn"`, `"mlp"`, `"nasbench101"`, …).
        layers: The layers in any order. They are sorted topologically; ties keep the order of the argument.
        edges: Pairs `(from, to)` of positions in `layers`.

    Attributes:
        space: Name of the vocabulary.
        layers: The layers, topologically ordered, input first, output last.
        edges: Sorted pairs of positions in `layers`; every edge leads to a later position.

    Raises:
        InvalidArchitectureError: The graph is not a network; the message gives the reason and the layer.
        UnknownNameError: The space or a label does not exist.
    """

    space: str
    layers: tuple[Layer, ...]
    edges: tuple[Edge, ...]

    def __init__(self, space: str, layers: Iterable[Layer], edges: Iterable[Edge]) -> None:
        """Order topologically, then validate."""
        words = vocabulary(space)
        unordered = tuple(layers)
        pairs = _checked_edges(edges, len(unordered))
        order = _topological_order(unordered, pairs)
        position = {old: new for new, old in enumerate(order)}
        put = self.__dict__.__setitem__
        put("space", space)
        put("layers", tuple(unordered[old] for old in order))
        put("edges", tuple(sorted((position[tail], position[head]) for tail, head in pairs)))
        _validate(self, words)

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse: an architecture is immutable."""
        raise AttributeError(f"an architecture is immutable, cannot set {name!r}")

    def __eq__(self, other: object) -> bool:
        """Compare layers and edges in their order; compare `key` to test for the same network."""
        if not isinstance(other, Architecture):
            return NotImplemented
        return (self.space, self.layers, self.edges) == (other.space, other.layers, other.edges)

    def __hash__(self) -> int:
        """Hash layers and edges in their order."""
        return hash((self.space, self.layers, self.edges))

    def __repr__(self) -> str:
        """Name the space, the size and the beginning of the key."""
        return f"<Architecture {self.space} {len(self.layers)} layers {len(self.edges)} edges {self.key[:8]}>"

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the constructor's arguments, without cached properties."""
        return (Architecture, (self.space, self.layers, self.edges))

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
        """32 hexadecimal digits, equal for two architectures if and only if they are the same network."""
        return canonical.key(self.space, self.layers, self.edges)

    @cached_property
    def functional_key(self) -> str:
        """`key` of the network without the layers that are not `live`."""
        if len(self.live) == len(self.layers):
            return self.key
        return canonical.key(self.space, *self._live_graph())

    @cached_property
    def live(self) -> tuple[int, ...]:
        """The positions on some path from input to output, ascending; both ends are always among them.

        No path passes a layer whose operation is zero (`Operation.zero`).
        """
        last, zeros = len(self.layers) - 1, vocabulary(self.space).zeros
        closed = {u for u, layer in enumerate(self.layers) if layer.op in zeros} if zeros else set()
        return tuple(sorted((_reach(self.children, 0, closed) & _reach(self.parents, last, closed)) | {0, last}))

    @property
    def functional(self) -> Architecture:
        """The network without the layers that are not `live`; itself where all layers are."""
        if len(self.live) == len(self.layers):
            return self
        return Architecture(self.space, *self._live_graph())

    def _live_graph(self) -> tuple[list[Layer], list[Edge]]:
        position = {old: new for new, old in enumerate(self.live)}
        edges = [(position[t], position[h]) for t, h in self.edges if t in position and h in position]
        return [self.layers[old] for old in self.live], edges

    @cached_property
    def canonical(self) -> Architecture:
        """The same network in canonical layer order, which all its relabellings share. The store keeps this form."""
        rank = canonical.canonical_ranks(self.layers, self.edges)
        order = _topological_order(self.layers, self.edges, rank)
        position = {old: new for new, old in enumerate(order)}
        edges = [(position[tail], position[head]) for tail, head in self.edges]
        relabelled = Architecture(self.space, [self.layers[old] for old in order], edges)
        relabelled.__dict__.update(key=self.key, functional_key=self.functional_key)
        return relabelled

    @cached_property
    def levels(self) -> tuple[int | None, ...]:
        """Number of halvings of the image up to and including each layer; None for a layer whose output is a vector.

        The side of the image after layer u is `ceil(side / 2 ** levels[u])`. Halving rounds up, so layers of equal
        level have images of equal size for every input size.
        """
        return _levels(self, vocabulary(self.space))

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


def _checked_edges(edges: Iterable[Edge], n: int) -> list[Edge]:
    pairs: list[Edge] = []
    seen: set[Edge] = set()
    for tail, head in edges:
        if not (0 <= tail < n and 0 <= head < n):
            raise InvalidArchitectureError(f"an edge must join two of the {n} layers, got ({tail}, {head})")
        if tail == head:
            raise InvalidArchitectureError("cycle: the layer feeds itself", tail)
        if (tail, head) in seen:
            raise InvalidArchitectureError(f"the edge ({tail}, {head}) is given twice")
        seen.add((tail, head))
        pairs.append((tail, head))
    return pairs


def _topological_order(layers: Sequence[Layer], edges: Sequence[Edge], rank: Sequence[int] | None = None) -> list[int]:
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
        raise InvalidArchitectureError("cycle through the layer", next(u for u, c in enumerate(waiting) if c))
    return order


def _end(layer: Layer) -> int:
    return {INPUT: 0, OUTPUT: 2}.get(layer.op, 1)


def _neighbours(n: int, pairs: Iterable[Edge]) -> Neighbours:
    lists: list[list[int]] = [[] for _ in range(n)]
    for at, other in pairs:
        lists[at].append(other)
    return tuple(tuple(sorted(adjacent)) for adjacent in lists)


def _validate(architecture: Architecture, words: Vocabulary) -> None:
    _check_layers(architecture, words)
    _check_ends(architecture)
    if not words.dead_ends:
        _check_dead_ends(architecture)
    if words.decisions:
        _check_decisions(architecture, words)
    if words.images:
        architecture.levels  # noqa: B018  computing the image sizes checks them


def _check_layers(architecture: Architecture, words: Vocabulary) -> None:
    for u, layer in enumerate(architecture.layers):
        operation = words[layer.op]
        if operation.has_units:
            if layer.units is None or layer.units < 1:
                raise InvalidArchitectureError(f"{layer.op} needs units >= 1, got {layer.units}", u)
        elif layer.units is not None:
            raise InvalidArchitectureError(f"{layer.op} must have no units, got {layer.units}", u)
        if layer.stride not in operation.strides:
            allowed = " or ".join(map(str, operation.strides))
            raise InvalidArchitectureError(f"{layer.op} needs stride {allowed}, got {layer.stride}", u)


def _check_ends(architecture: Architecture) -> None:
    for op, name in ((INPUT, "input"), (OUTPUT, "output")):
        positions = [u for u, layer in enumerate(architecture.layers) if layer.op == op]
        if not positions:
            raise InvalidArchitectureError(f"a network needs one {name} layer ({op!r}), got none")
        if len(positions) > 1:
            raise InvalidArchitectureError(f"a network needs one {name} layer, got a second {name}", positions[1])
    # In topological order, a layer that feeds the input precedes it.
    if architecture.layers[0].op != INPUT:
        raise InvalidArchitectureError("the input is fed by a layer", 0)
    last = len(architecture.layers) - 1
    if architecture.layers[last].op != OUTPUT:
        raise InvalidArchitectureError("the output feeds a layer", last)


def _reach(neighbours: Neighbours, start: int, closed: Set[int]) -> set[int]:
    reached, stack = {start}, [start]
    while stack:
        for other in neighbours[stack.pop()]:
            if other not in reached and other not in closed:
                reached.add(other)
                stack.append(other)
    return reached


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
            raise InvalidArchitectureError(f"only decision layers feed the output, got {layer.op}", u)
        if decides and architecture.children[u] != (last,):
            raise InvalidArchitectureError(f"the decision layer {layer.op} feeds another layer than the output", u)


def _levels(architecture: Architecture, words: Vocabulary) -> tuple[int | None, ...]:
    levels: list[int | None] = []
    for u, layer in enumerate(architecture.layers):
        operation = words[layer.op]
        incoming = {levels[p] for p in architecture.parents[u]}
        if operation.group != "output" and len(incoming) > 1:
            raise InvalidArchitectureError(_mismatch(architecture, levels, u), u)
        level = next(iter(incoming), 0)
        if operation.flat:
            levels.append(None)
        elif level is None:
            raise InvalidArchitectureError(f"{layer.op} needs an image, but a vector feeds it", u)
        else:
            levels.append(level + (layer.stride == 2))
    return tuple(levels)


def _mismatch(architecture: Architecture, levels: list[int | None], u: int) -> str:
    sizes = ", ".join(
        f"layer {p}: " + ("a vector" if (level := levels[p]) is None else f"1/{2**level}")
        for p in architecture.parents[u]
    )
    return f"image sizes do not meet at {architecture.layers[u].op}: {sizes}"
