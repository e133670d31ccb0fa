"""Canonical form and isomorphism-invariant key of a labelled directed acyclic graph.

Colour refinement (one-dimensional Weisfeiler-Lehman on labels, incoming and outgoing neighbours)
splits the layers into classes. Where a class keeps several layers, its members are individualised
one after the other, and the smallest certificate is kept (McKay & Piperno, "Practical graph
isomorphism, II", 2014). Two prunings keep the search small:

- A sibling whose first leaf equals an earlier leaf is an automorphic image and is skipped: k pairs
  of identical parallel branches cost k + 1 leaves instead of 2^k.
- Twins (layers of one label with the same parents and the same children) are interchangeable: one
  represents all, and k of them cost one leaf.

Hashing the refined colours alone would be shorter and wrong: it does not separate all
non-isomorphic graphs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from archive.architecture.graph import Connection
    from archive.architecture.layer import Layer

Colours = list[int]
Certificate = tuple[Any, ...]
Label = tuple[Any, ...]
Links = Sequence[Sequence[tuple[int, int]]]
"""For each layer its neighbours on one side, each with the number of the edge's arguments."""


def key(space: str, layers: Sequence[Layer], edges: Sequence[Connection]) -> str:
    """Return 32 hexadecimal digits, equal for isomorphic graphs only (up to a 128-bit collision).

    Args:
        space: Name of the vocabulary.
        layers: The layers in topological order.
        edges: Tail, head and arguments of each edge.
    """
    return key_and_ranks(space, layers, edges)[0]


def key_and_ranks(
    space: str, layers: Sequence[Layer], edges: Sequence[Connection]
) -> tuple[str, tuple[int, ...]]:
    """Return what `key` and `canonical_ranks` return, in one computation."""
    certificate, ranks = _canonical(layers, edges)
    text = repr((space, certificate)).encode()
    return hashlib.blake2b(text, digest_size=16).hexdigest(), tuple(ranks)


def joint_key(network: str, configuration: Mapping[str, Any]) -> str:
    """Return the key of a network with parameters beside it, from the key of the network.

    Args:
        network: Key of the network alone.
        configuration: JSON values of the parameters by name.
    """
    text = json.dumps(configuration, sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(f"{network} {text}".encode(), digest_size=16).hexdigest()


def canonical_ranks(layers: Sequence[Layer], edges: Sequence[Connection]) -> tuple[int, ...]:
    """Return one rank per layer; relabellings of a network give the same ranked graph."""
    return tuple(_canonical(layers, edges)[1])


def _canonical(layers: Sequence[Layer], edges: Sequence[Connection]) -> tuple[Certificate, Colours]:
    labels = list(map(_label, layers))
    distinct = sorted({tuple(edge[2:]) for edge in edges})
    number = dict(zip(distinct, count()))
    children: list[list[tuple[int, int]]] = [[] for _ in layers]
    parents: list[list[tuple[int, int]]] = [[] for _ in layers]
    for tail, head, *arguments in edges:
        colour = number[tuple(arguments)]
        children[tail].append((head, colour))
        parents[head].append((tail, colour))

    links = (
        _ArgumentLinks(labels, parents, children)
        if any(distinct)
        else _PlainLinks(labels, parents, children)
    )
    above = map(tuple, map(sorted, parents))
    below = map(tuple, map(sorted, children))
    twins = list(zip(labels, above, below, strict=True))
    search = _CanonicalSearch(labels, edges, twins, links)
    return search.best(search.refine(links.start()))


def _label(layer: Layer) -> Label:
    # Keys are stored: a layer without attributes has the label that it had before layers could have
    # attributes.
    plain = (layer.op, layer.units or 0, layer.stride)
    return (*plain, layer.attributes.text) if layer.attributes else plain


def _dense(values: Sequence[Any]) -> Colours:
    """Replace values by their rank among the distinct ones."""
    rank = dict(zip(sorted(set(values)), count()))
    return list(map(rank.__getitem__, values))


class _CanonicalSearch:
    """The search for the smallest certificate over all discrete refinements."""

    def __init__(
        self,
        labels: Sequence[Label],
        edges: Sequence[Connection],
        twins: Sequence[Certificate],
        links: _PlainLinks | _ArgumentLinks,
    ) -> None:
        self.labels = labels
        self.edges = edges
        self.twins = twins
        self.links = links

    def refine(self, colours: Colours) -> Colours:
        """Split classes by the colours of parents and children until nothing splits."""
        n = len(colours)
        classes = len(set(colours))
        while classes < n:
            refined = _dense(self.links.neighbourhoods(colours))
            count = len(set(refined))
            colours = refined
            if count == classes:
                break

            classes = count

        return colours

    def best(self, colours: Colours) -> tuple[Certificate, Colours]:
        """Return the smallest certificate below these refined colours, with its ranks."""
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
        """Return colours with leading classes of twins split, and the first class of other layers.

        Splitting twins splits no other class: each layer is a neighbour of all of them or of none.
        """
        while cell := self._first_cell(colours):
            if len(set(map(self.twins.__getitem__, cell))) > 1:
                return colours, cell

            numbers = [0] * len(colours)
            for u in cell:
                numbers[u] = u

            colours = _dense(list(zip(colours, numbers, strict=True)))

        return colours, []

    def _first_cell(self, colours: Colours) -> list[int]:
        """Return the members of the smallest colour with several layers."""
        members: dict[int, list[int]] = {}
        for u, colour in enumerate(colours):
            members.setdefault(colour, []).append(u)

        for colour in sorted(members):
            if len(members[colour]) > 1:
                return members[colour]

        return []

    def _individualise(self, colours: Colours, u: int) -> Colours:
        return self.refine(_dense([(colour, v != u) for v, colour in enumerate(colours)]))

    def _first_leaf(self, colours: Colours) -> Certificate:
        colours, cell = self._without_twins(colours)
        while cell:
            colours, cell = self._without_twins(self._individualise(colours, cell[0]))

        return self._certificate(colours)

    def _certificate(self, ranks: Colours) -> Certificate:
        labels = tuple(label for _, label in sorted(zip(ranks, self.labels, strict=True)))
        edges = [(ranks[tail], ranks[head], *arguments) for tail, head, *arguments in self.edges]
        return labels, tuple(sorted(edges))


class _PlainLinks:
    """Colours of networks without arguments of edges."""

    def __init__(self, labels: Sequence[Label], parents: Links, children: Links) -> None:
        self.labels = labels
        self.parents = _without_arguments(parents)
        self.children = _without_arguments(children)

    def start(self) -> Colours:
        """Return the colours before the first refinement."""
        return _dense(self.labels)

    def neighbourhoods(self, colours: Colours) -> list[Any]:
        """Return the colour of each layer with the colours of its parents and children."""
        neighbourhoods = []
        for colour, parents, children in zip(colours, self.parents, self.children, strict=True):
            above = sorted(map(colours.__getitem__, parents))
            below = sorted(map(colours.__getitem__, children))
            neighbourhoods.append((colour, tuple(above), tuple(below)))

        return neighbourhoods


def _without_arguments(links: Links) -> list[list[int]]:
    neighbours = []
    for near in links:
        neighbours.append([v for v, _ in near])

    return neighbours


class _ArgumentLinks:
    """Colours of networks whose edges have arguments, which may have thousands of layers.

    Colour refinement moves by one hop a round: a chain of a thousand layers takes hundreds of
    rounds. Here a digest of everything before a layer and one of everything behind it, each
    computed in one pass, are the start. After them a round or two are left. Networks without
    arguments keep the plain start, which their keys depend on.
    """

    def __init__(self, labels: Sequence[Label], parents: Links, children: Links) -> None:
        self.labels = labels
        self.parents = parents
        self.children = children

    def start(self) -> Colours:
        """Return the colours before the first refinement."""
        order = range(len(self.labels))
        before = self._digests(self.parents, order)
        behind = self._digests(self.children, order[::-1])
        return _dense(list(zip(self.labels, before, behind, strict=True)))

    def neighbourhoods(self, colours: Colours) -> list[Any]:
        """Return each layer's colour with its neighbours' colours and the arguments between."""
        neighbourhoods = []
        for colour, parents, children in zip(colours, self.parents, self.children, strict=True):
            above = sorted([(colours[p], number) for p, number in parents])
            below = sorted([(colours[c], number) for c, number in children])
            neighbourhoods.append((colour, tuple(above), tuple(below)))

        return neighbourhoods

    def _digests(self, links: Links, order: Sequence[int]) -> list[bytes]:
        """Return a digest of each layer with all layers that it can reach by these links."""
        texts = {label: repr(label).encode() for label in set(self.labels)}
        digests = [b""] * len(links)
        for u in order:
            neighbours = sorted([digests[v] + number.to_bytes(4) for v, number in links[u]])
            text = b"".join([texts[self.labels[u]], *neighbours])
            digests[u] = hashlib.blake2b(text, digest_size=8).digest()

        return digests
