"""Repeated parts of a network: equal parts in a row.

| symbol | meaning                                                                           |
|--------|-----------------------------------------------------------------------------------|
| cut    | layer that every path from input to output passes                                 |
| part   | layers behind one cut, up to and with the next, and sources that feed these alone |
| p, k   | period and number of a repeat: k times the same p parts in a row                  |

Parts are equal if they are isomorphic. The repeat that saves most layers is taken first, then those
before, behind and within it. A part with a source that another part uses as well (a shared weight)
counts as different from all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, count, pairwise
from typing import TYPE_CHECKING

from archive.architecture import canonical
from archive.architecture.layer import Layer
from archive.architecture.operations import INPUT, OUTPUT

if TYPE_CHECKING:
    from archive.architecture.graph import Architecture, Connection

# A block has two layers more than its parts.
_ENDS = 2


@dataclass(frozen=True)
class Part:
    """A part of a network.

    Attributes:
        key: Equal for isomorphic parts.
        begin: The cut before it.
        end: The cut at its end, the last of its layers.
        layers: Its layers, ascending.
    """

    key: str
    begin: int
    end: int
    layers: tuple[int, ...]


@dataclass(frozen=True)
class Repeat:
    """Equal parts in a row.

    Attributes:
        times: Number of copies.
        begin: The cut before it.
        end: The cut at its end.
        items: Parts and repeats that its first copy consists of.
        copies: Layers of the other copies.
    """

    times: int
    begin: int
    end: int
    items: tuple[Part | Repeat, ...]
    copies: tuple[int, ...]

    @property
    def first_end(self) -> int:
        """The cut at the end of the first copy."""
        return self.items[-1].end

    @property
    def first(self) -> tuple[int, ...]:
        """The layers of the first copy."""
        layers: list[int] = []
        for item in self.items:
            layers += item.layers if isinstance(item, Part) else (*item.first, *item.copies)

        return tuple(layers)

    @property
    def inside(self) -> tuple[Repeat, ...]:
        """The repeats within the first copy."""
        return tuple(_repeats_of(self.items))


def _repeats_of(items: Sequence[Part | Repeat]) -> list[Repeat]:
    return [item for item in items if isinstance(item, Repeat)]


def find_repeats(architecture: Architecture) -> list[Repeat]:
    """Return the repeats of a network from input to output, those within others as their items.

    Args:
        architecture: A network each layer of which leads to the output.
    """
    return _repeats_of(fold_parts(parts(architecture)[0]))


def parts(architecture: Architecture) -> tuple[list[Part], list[int]]:
    """Return the parts in order, and the sources that several of them use."""
    on_path = _on_path(architecture)
    cuts = _cuts(architecture, on_path)
    users = _users(architecture, on_path, cuts)
    layers_of: list[list[int]] = [[] for _ in cuts[1:]]
    repeatable = [True] * len(layers_of)
    shared = []
    for u in range(1, len(architecture.layers)):
        if len(users[u]) == 1:
            layers_of[min(users[u])].append(u)
        else:
            shared.append(u)
            for part in users[u]:
                repeatable[part] = False

    if repeatable:
        # The last part ends with the output, which cannot be repeated.
        repeatable[-1] = False

    chain = []
    for (begin, end), layers, equal in zip(pairwise(cuts), layers_of, repeatable, strict=True):
        key = _key(architecture, begin, layers, end) if equal else str(end)
        chain.append(Part(key, begin, end, tuple(layers)))

    return chain, shared


def fold_parts(chain: Sequence[Part]) -> list[Part | Repeat]:
    """Return parts with repeats in place of repeated ones; repeats that save most come first."""
    best = max(_repeats(chain), default=(0, 0, 0, 0))
    saved = best[0]
    period = -best[1]
    first = -best[2]
    times = best[3]
    if saved <= 0:
        return list(chain)

    behind = first + period * times
    inside = fold_parts(chain[first : first + period])
    copies: list[int] = []
    for part in chain[first + period : behind]:
        copies += part.layers

    whole = Repeat(times, chain[first].begin, chain[behind - 1].end, tuple(inside), tuple(copies))
    return [*fold_parts(chain[:first]), whole, *fold_parts(chain[behind:])]


def _on_path(architecture: Architecture) -> list[bool]:
    """Return whether each layer gets a value that depends on the input; the others are sources."""
    on_path = [True] + [False] * (len(architecture.layers) - 1)
    for u in range(1, len(on_path)):
        on_path[u] = any(map(on_path.__getitem__, value_parents(architecture, u)))

    return on_path


def _cuts(architecture: Architecture, on_path: Sequence[bool]) -> list[int]:
    """Return the cuts, the input first."""
    cuts = []
    reach = 0
    for u in filter(on_path.__getitem__, range(len(on_path))):
        if reach <= u:
            cuts.append(u)

        # Edges that carry no value may lead from the input to sources, which are on no path.
        reach = max([reach, *filter(on_path.__getitem__, architecture.children[u])])

    return cuts


def _users(
    architecture: Architecture, on_path: Sequence[bool], cuts: Sequence[int]
) -> list[set[int]]:
    """Return the positions of the parts that each layer belongs to, or feeds as a source."""
    users: list[set[int]] = [set() for _ in on_path]
    cut = len(cuts) - 2
    for u in reversed(range(1, len(on_path))):
        if on_path[u]:
            cut -= u <= cuts[cut]
            users[u] = {cut}
        else:
            users[u] = set().union(*map(users.__getitem__, architecture.children[u]))

    return users


def value_parents(architecture: Architecture, u: int) -> list[int]:
    """Return the parents whose outputs a layer uses.

    An edge without an argument only orders two layers.
    """
    if not architecture.arguments:
        return list(architecture.parents[u])

    return [p for p in architecture.parents[u] if architecture.argument_of[p, u]]


def _key(architecture: Architecture, begin: int, inside: Sequence[int], end: int) -> str:
    position = {begin: 0, 0: 0, **dict(zip(inside, count(1)))}
    edges: list[Connection] = []
    for head in inside:
        for tail in architecture.parents[head]:
            arguments = architecture.argument_of.get((tail, head), ())
            edges.append((position[tail], position[head], *arguments))

    layers = [Layer(INPUT), *(architecture.layers[u] for u in inside), Layer(OUTPUT)]
    final = (position[end], len(inside) + 1)
    return canonical.key(
        architecture.space, layers, [*edges, (*final, 0) if architecture.arguments else final]
    )


def _repeats(chain: Sequence[Part]) -> list[tuple[int, int, int, int]]:
    """Return repeats as (layers saved, -period, -first part, times); the best is the largest."""
    repeats = []
    before = [0, *accumulate(len(part.layers) for part in chain)]
    for period in range(1, len(chain) // 2 + 1):
        equal = 0
        for first in reversed(range(len(chain) - period)):
            equal = equal + 1 if chain[first].key == chain[first + period].key else 0
            times = equal // period + 1
            if times > 1:
                size = before[first + period] - before[first]
                repeats.append(((times - 1) * size - _ENDS, -period, -first, times))

    return repeats
