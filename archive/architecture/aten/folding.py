"""Folding of repeated blocks: equal parts in a row become one block with a number of times, and back.

| symbol   | meaning                                                                                        |
|----------|------------------------------------------------------------------------------------------------|
| cut      | layer that every path from input to output passes                                              |
| part     | layers behind one cut, up to and including the next, with the sources that feed these alone    |
| p, k     | period and number of a repeat: k times the same p parts in a row                               |

Parts are equal if they are isomorphic. The repeat that saves most layers is folded first, then those before, behind and
within it. A part with a source that another part uses as well (a shared weight) equals no other one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from archive.architecture.aten.blocks import END, START, blocks
from archive.architecture.attributes import Attributes
from archive.architecture.graph import Architecture, Connection, Layer
from archive.architecture.operations import INPUT, OUTPUT
from archive.errors import InvalidArchitectureError

MOST_LAYERS = 20_000
"""Largest network that is unfolded."""

# A block has two layers more than its parts.
_ENDS = 2


@dataclass(frozen=True)
class _Part:
    """A part of a network: a key, the cuts before it and at its end, and its layers, ascending."""

    key: str
    begin: int
    end: int
    inside: tuple[int, ...]


@dataclass(frozen=True)
class _Repeat:
    """A repeat: how often, the cuts before it and at its end, and what its first time consists of."""

    times: int
    begin: int
    end: int
    inside: tuple[_Part | _Repeat, ...]


def fold(architecture: Architecture) -> Architecture:
    """Return a network with its repeated parts folded; one without repeats, or with blocks already, unchanged."""
    if any(layer.op == START for layer in architecture.layers):
        return architecture
    parts, free = _parts(architecture)
    items = _folded(parts)
    if not any(isinstance(item, _Repeat) for item in items):
        return architecture
    copy = _Copy(architecture)
    for u in (0, *free):
        copy.layer(u)
    copy.items(items)
    return Architecture(architecture.space, copy.layers, copy.edges)


def unfold(architecture: Architecture) -> Architecture:
    """Return a network with its blocks written out.

    Raises:
        InvalidArchitectureError: It has more than 20,000 layers then, or its blocks are not nested.
    """
    while found := blocks(architecture):
        # Inner blocks come first, and are copied with the blocks around them.
        start, end, inside = found[0]
        times = architecture.layers[start].attributes.get("times", 0)
        if not isinstance(times, int) or len(architecture.layers) + times * len(inside) > MOST_LAYERS:
            raise InvalidArchitectureError(
                f"at most {MOST_LAYERS} layers are unfolded, got a block {times} times", start
            )
        copy = _Copy(architecture)
        for u in range(len(architecture.layers)):
            if u == end:
                # What the block begins with is in place, and topological order puts its layers before its end.
                copy.written_out(start, end, sorted(inside), times)
            elif u != start and u not in inside:
                copy.layer(u)
        architecture = Architecture(architecture.space, copy.layers, copy.edges)
    return architecture


def _parts(architecture: Architecture) -> tuple[list[_Part], list[int]]:
    """Return the parts in order, and the sources that several of them use."""
    n = len(architecture.layers)
    given = [[p for p in architecture.parents[u] if architecture.argument_of[p, u]] for u in range(n)]
    main = [True] + [False] * (n - 1)
    for u in range(1, n):
        main[u] = any(main[p] for p in given[u])
    cuts, reach = [], 0
    for u in filter(main.__getitem__, range(n)):
        if reach <= u:
            cuts.append(u)
        # Order edges of the input lead to sources, which are not on the way.
        reach = max([reach, *(head for head in architecture.children[u] if main[head])])
    place: list[set[int]] = [set() for _ in range(n)]
    at = len(cuts) - 2
    for u in reversed(range(1, n)):
        if main[u]:
            at -= u <= cuts[at]
            place[u] = {at}
        else:
            place[u] = set().union(*(place[child] for child in architecture.children[u]))
    inside: list[list[int]] = [[] for _ in cuts[1:]]
    alone = [True] * len(inside)
    free = []
    for u in range(1, n):
        if len(place[u]) == 1:
            inside[min(place[u])].append(u)
        else:
            free.append(u)
            for shared in place[u]:
                alone[shared] = False
    alone[-1] = False
    return [
        _Part(_key(architecture, begin, layers, end) if by_itself else str(end), begin, end, tuple(layers))
        for (begin, end), layers, by_itself in zip(pairwise(cuts), inside, alone, strict=True)
    ], free


def _key(architecture: Architecture, begin: int, inside: Sequence[int], end: int) -> str:
    position = {begin: 0, 0: 0} | {u: at for at, u in enumerate(inside, 1)}
    last = len(inside) + 1
    edges = [
        (position[tail], position[head], *used)
        for head in inside
        for tail in architecture.parents[head]
        for used in [architecture.argument_of[tail, head]]
    ]
    layers = [Layer(INPUT), *(architecture.layers[u] for u in inside), Layer(OUTPUT)]
    return Architecture(architecture.space, layers, [*edges, (position[end], last, 0)]).key


def _folded(parts: Sequence[_Part]) -> list[_Part | _Repeat]:
    """Fold the repeat that saves most layers, then those beside and within it."""
    best = max(_repeats(parts), default=(0, 0, 0, 0))
    saved, period, first, times = best[0], -best[1], -best[2], best[3]
    if saved <= 0:
        return list(parts)
    behind = first + period * times
    inside = _folded(parts[first : first + period])
    whole = _Repeat(times, parts[first].begin, parts[behind - 1].end, tuple(inside))
    return [*_folded(parts[:first]), whole, *_folded(parts[behind:])]


def _repeats(parts: Sequence[_Part]) -> list[tuple[int, int, int, int]]:
    """Return all repeats as (layers saved, -period, -first part, times): the best is the largest."""
    found = []
    keys = [part.key for part in parts]
    for period in range(1, len(parts) // 2 + 1):
        equal = 0
        for first in reversed(range(len(parts) - period)):
            equal = equal + 1 if keys[first] == keys[first + period] else 0
            times = equal // period + 1
            if times > 1:
                size = sum(len(part.inside) for part in parts[first : first + period])
                found.append(((times - 1) * size - _ENDS, -period, -first, times))
    return found


class _Copy:
    """A changed copy of a network.

    Attributes:
        layers: The layers of the copy.
        edges: Its edges.
        at: Position in the network to the position in the copy of what has its output now.
    """

    def __init__(self, architecture: Architecture) -> None:
        self.architecture = architecture
        self.layers: list[Layer] = []
        self.edges: list[Connection] = []
        self.at: dict[int, int] = {}

    def layer(self, u: int) -> None:
        """Copy a layer with the edges that lead to it."""
        self.at[u] = self._put(self.architecture.layers[u])
        for parent in self.architecture.parents[u]:
            # An edge without arguments only says that the input is before a source.
            used = self.architecture.argument_of[parent, u]
            self.edges.append((self.at[parent] if used else 0, self.at[u], *used))

    def items(self, items: Sequence[_Part | _Repeat]) -> None:
        """Copy parts and repeats, these as blocks."""
        for item in items:
            if isinstance(item, _Part):
                for u in item.inside:
                    self.layer(u)
                continue
            start = self._put(Layer(START, attributes=Attributes({"times": item.times})))
            self.edges.append((self.at[item.begin], start, 0))
            self.at[item.begin] = start
            self.items(item.inside)
            end = self._put(Layer(END))
            self.edges.append((self.at[item.inside[-1].end], end, 0))
            self.at[item.end] = end

    def written_out(self, start: int, end: int, inside: Sequence[int], times: int) -> None:
        """Copy the layers of a block as often as it is repeated."""
        (before,), (last,) = self.architecture.parents[start], self.architecture.parents[end]
        self.at[start] = self.at[before]
        for _ in range(times):
            for u in inside:
                self.layer(u)
            self.at[start] = self.at[last]
        self.at[end] = self.at[last]

    def _put(self, layer: Layer) -> int:
        self.layers.append(layer)
        return len(self.layers) - 1
