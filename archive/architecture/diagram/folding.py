"""Repeated parts of a network for a picture: the first copy with the number of copies.

Repeats are those of `archive.architecture.repeats`; blocks of the space `torch` are repeats that
the network itself tells (`archive.architecture.aten.blocks`), and their two ends are not drawn.
"""

from __future__ import annotations

from dataclasses import dataclass

from archive.architecture.aten.blocks import END, START, blocks
from archive.architecture.graph import Architecture
from archive.architecture.layer import Edge
from archive.architecture.operations import vocabulary
from archive.architecture.repeats import Repeat, repeated


@dataclass(frozen=True)
class Folded:
    """The drawn part of a network.

    Attributes:
        layers: Positions of the drawn layers, ascending.
        edges: Edges between them.
        repeats: Number of copies and the layers of the first copy; an outer repeat before those
            within it.
    """

    layers: tuple[int, ...]
    edges: tuple[Edge, ...]
    repeats: tuple[tuple[int, frozenset[int]], ...] = ()


def folded(architecture: Architecture) -> Folded:
    """Return a network with its repeated parts drawn once."""
    whole = with_blocks(architecture)
    if whole.repeats:
        return whole

    repeated_parts = repeated(architecture)
    if not repeated_parts:
        return whole

    hidden: set[int] = set()
    instead: dict[int, int] = {}
    repeats: list[tuple[int, frozenset[int]]] = []
    for repeat in repeated_parts:
        _hide(repeat, hidden, instead, repeats)

    layers = tuple(u for u in whole.layers if u not in hidden)
    edges = {(_shown(tail, instead), head) for tail, head in whole.edges if head not in hidden}
    kept = tuple(sorted(edge for edge in edges if edge[0] not in hidden))
    return Folded(layers, kept, tuple(repeats))


def _hide(
    repeat: Repeat,
    hidden: set[int],
    instead: dict[int, int],
    repeats: list[tuple[int, frozenset[int]]],
) -> None:
    """Hide the further copies of a repeat; what the last copy feeds is fed by the first one."""
    hidden.update(repeat.copies)
    instead[repeat.end] = repeat.first_end
    repeats.append((repeat.times, frozenset(repeat.first) - hidden))
    for inner in repeat.inside:
        _hide(inner, hidden, instead, repeats)


def _shown(tail: int, instead: dict[int, int]) -> int:
    while tail in instead:
        tail = instead[tail]

    return tail


def with_blocks(architecture: Architecture) -> Folded:
    """Return the network without the ends of its blocks, and without edges that carry no value."""
    drawn = [u for u, layer in enumerate(architecture.layers) if layer.op not in (START, END)]
    source: dict[int, int] = {}
    edges: list[Edge] = []
    for head, layer in enumerate(architecture.layers):
        for tail in architecture.parents[head]:
            if (
                vocabulary(architecture.space).arguments
                and not architecture.argument_of[tail, head]
            ):
                continue

            tail = source.get(tail, tail)
            if layer.op in (START, END):
                source[head] = tail
            else:
                edges.append((tail, head))

    if len(drawn) == len(architecture.layers):
        return Folded(tuple(drawn), tuple(edges))

    kept = frozenset(drawn)
    repeats = [
        (architecture.layers[start].attributes.get("times", 0), inside & kept)
        for start, _, inside in reversed(blocks(architecture))
        if inside & kept
    ]
    repeats.sort(key=lambda each: -len(each[1]))
    return Folded(
        tuple(drawn),
        tuple(sorted(edges)),
        tuple((int(str(times)), inside) for times, inside in repeats),
    )
