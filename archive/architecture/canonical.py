"""Canonical form and isomorphism-invariant key of a labelled directed acyclic graph.

Colour refinement (one-dimensional Weisfeiler-Lehman on labels, incoming and outgoing neighbours) splits the layers into
classes. Where a class keeps several layers, its members are individualised one after the other, and the smallest
certificate is kept (McKay & Piperno, "Practical graph isomorphism, II", 2014). Two prunings keep the search small:

- A sibling whose first leaf equals an earlier leaf is an automorphic image and is skipped: k pairs of identical
  parallel branches cost k + 1 leaves instead of 2^k.
- Twins (layers of one label with the same parents and the same children) are interchangeable: one represents all, and
  k of them cost one leaf.

Hashing the refined colours alone would be shorter and wrong: it does not separate all non-isomorphic graphs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from archive.architecture.layer import Edge, Layer

Colours = list[int]
Certificate = tuple[Any, ...]


def key(space: str, layers: Sequence[Layer], edges: Sequence[Edge]) -> str:
    """Return 32 hexadecimal digits that are equal for isomorphic graphs only (up to a 128-bit collision)."""
    certificate, _ = _canonical(layers, edges)
    text = repr((space, certificate)).encode()
    return hashlib.blake2b(text, digest_size=16).hexdigest()


def canonical_ranks(layers: Sequence[Layer], edges: Sequence[Edge]) -> tuple[int, ...]:
    """Return one rank per layer; relabellings of a network give the same ranked graph."""
    return tuple(_canonical(layers, edges)[1])


def _canonical(layers: Sequence[Layer], edges: Sequence[Edge]) -> tuple[Certificate, Colours]:
    n = len(layers)
    children: list[list[int]] = [[] for _ in range(n)]
    parents: list[list[int]] = [[] for _ in range(n)]
    for tail, head in edges:
        children[tail].append(head)
        parents[head].append(tail)
    labels = [(layer.op, layer.units or 0, layer.stride) for layer in layers]
    search = _CanonicalSearch(labels, edges, parents, children)
    start = _dense(labels)
    return search.best(search.refine(start))


def _dense(values: Sequence[Any]) -> Colours:
    """Replace values by their rank among the distinct ones."""
    rank = {value: place for place, value in enumerate(sorted(set(values)))}
    return [rank[value] for value in values]


class _CanonicalSearch:
    """The search for the smallest certificate over all discrete refinements."""

    def __init__(
        self,
        labels: Sequence[tuple[str, int, int]],
        edges: Sequence[Edge],
        parents: Sequence[Sequence[int]],
        children: Sequence[Sequence[int]],
    ) -> None:
        self.labels, self.edges, self.parents, self.children = labels, edges, parents, children
        neighbours = zip(labels, map(sorted, parents), map(sorted, children), strict=True)
        self.twins = [(label, tuple(above), tuple(below)) for label, above, below in neighbours]

    def refine(self, colours: Colours) -> Colours:
        """Split classes by the colours of parents and children until nothing splits."""
        n, classes = len(colours), len(set(colours))
        while classes < n:
            refined = _dense(
                [
                    (
                        colour,
                        tuple(sorted([colours[p] for p in parents])),
                        tuple(sorted([colours[c] for c in children])),
                    )
                    for colour, parents, children in zip(colours, self.parents, self.children, strict=True)
                ]
            )
            count = len(set(refined))
            colours = refined
            if count == classes:
                break
            classes = count
        return colours

    def best(self, colours: Colours) -> tuple[Certificate, Colours]:
        """Return the smallest certificate below these refined colours, with the ranks that give it."""
        colours, cell = self._without_twins(colours)
        if not cell:
            return self._certificate(colours), colours
        smallest: tuple[Certificate, Colours] | None = None
        leaves: set[Certificate] = set()
        # One twin of each set: all of them have the same smallest certificate.
        for u in sorted({self.twins[u]: u for u in reversed(cell)}.values()):
            refined = self._individualise(colours, u)
            leaf = self._first_leaf(refined)
            if leaf in leaves:
                continue
            leaves.add(leaf)
            candidate = self.best(refined)
            leaves.add(candidate[0])
            if smallest is None or candidate[0] < smallest[0]:
                smallest = candidate
        assert smallest is not None
        return smallest

    def _without_twins(self, colours: Colours) -> tuple[Colours, list[int]]:
        """Return colours with leading classes of twins split, and the first class whose layers are not all twins.

        Splitting twins splits no other class: each layer is a neighbour of all of them or of none.
        """
        while cell := self._first_cell(colours):
            if len({self.twins[u] for u in cell}) > 1:
                return colours, cell
            split = colours[cell[0]]
            colours = _dense([(colour, u if colour == split else 0) for u, colour in enumerate(colours)])
        return colours, []

    def _first_cell(self, colours: Colours) -> list[int]:
        """Return the members of the smallest colour with several layers."""
        members: dict[int, list[int]] = {}
        for u, colour in enumerate(colours):
            members.setdefault(colour, []).append(u)
        return next((members[colour] for colour in sorted(members) if len(members[colour]) > 1), [])

    def _individualise(self, colours: Colours, u: int) -> Colours:
        return self.refine(_dense([(colour, v != u) for v, colour in enumerate(colours)]))

    def _first_leaf(self, colours: Colours) -> Certificate:
        colours, cell = self._without_twins(colours)
        while cell:
            colours, cell = self._without_twins(self._individualise(colours, cell[0]))
        return self._certificate(colours)

    def _certificate(self, ranks: Colours) -> Certificate:
        labels = tuple(label for _, label in sorted(zip(ranks, self.labels, strict=True)))
        return labels, tuple(sorted((ranks[tail], ranks[head]) for tail, head in self.edges))
