"""Diagrams of two networks that are compared: one over the other, or side by side.

`merged` draws layers that belong together once, which needs an order of layers that suits both networks. `beside` draws
both networks, with a line between layers that belong together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from archive.architecture.diagram.labels import channels, node
from archive.architecture.graph import Architecture
from archive.architecture.operations import vocabulary
from archive.drawing.diagram import Diagram, DiagramNode, Flow, Link, Panel, Status

Pair = tuple[int | None, int | None]
"""Position of a layer in the first and in the second network; None for a layer without a partner."""


def merged(
    first: Architecture,
    second: Architecture,
    pairs: Sequence[Pair],
    notes: Mapping[Pair, str],
    heading: Sequence[str] = (),
) -> Diagram:
    """Return two networks as one diagram.

    Args:
        first: A network.
        second: The network that it is compared with.
        pairs: Every layer of both, once; topologically ordered in both networks.
        notes: Second line of a box.
        heading: Lines of text above the picture.
    """
    own = (_nodes(first), _nodes(second))
    at: tuple[dict[int, int], dict[int, int]] = ({}, {})
    nodes = []
    for place, pair in enumerate(pairs):
        u, v = pair
        before = None if u is None else own[0][u]
        after = None if v is None else own[1][v]
        nodes.append(replace(_both(first, second, pair, before, after), note=notes.get(pair, "")))
        if u is not None:
            at[0][u] = place
        if v is not None:
            at[1][v] = place
    old, new = (
        {(places[tail], places[head]) for tail, head in network.edges}
        for network, places in zip((first, second), at, strict=True)
    )
    links = [Link(*edge, _link_status(edge in old, edge in new)) for edge in sorted(old | new)]
    title = f"difference of {first.key[:8]} and {second.key[:8]}"
    return Diagram(tuple(nodes), tuple(links), title=title, heading=tuple(heading), legend=True)


def beside(
    first: Architecture,
    second: Architecture,
    statuses: tuple[Sequence[Status], Sequence[Status]],
    flows: Sequence[tuple[int, int, float, str]],
    heading: Sequence[str] = (),
) -> Diagram:
    """Return two networks side by side.

    Args:
        first: A network.
        second: The network that it is compared with.
        statuses: What happens to each layer of the first and of the second network.
        flows: Lines between them: positions in the first and in the second network, strength in [0, 1], words.
        heading: Lines of text above the picture.
    """
    n = len(first.layers)
    nodes = [
        replace(each, status=status)
        for each, status in zip((*_nodes(first), *_nodes(second)), (*statuses[0], *statuses[1]), strict=True)
    ]
    links = [Link(tail, head) for tail, head in first.edges]
    links += [Link(n + tail, n + head) for tail, head in second.edges]
    panels = (
        Panel(first.key[:8], frozenset(range(n))),
        Panel(second.key[:8], frozenset(range(n, len(nodes)))),
    )
    lines = [
        Flow(u, n + v, share, "matched" if first.layers[u] == second.layers[v] else "changed", tip)
        for u, v, share, tip in flows
    ]
    title = f"{first.key[:8]} beside {second.key[:8]}"
    return Diagram(
        tuple(nodes), tuple(links), (), panels, tuple(lines), title=title, heading=tuple(heading), legend=True
    )


def _nodes(architecture: Architecture) -> list[DiagramNode]:
    """Return the boxes of a network. A label says which cell it is in, where there are several."""
    words = vocabulary(architecture.space)
    widths = channels(architecture)
    nodes = []
    for u, layer in enumerate(architecture.layers):
        box = node(architecture, u, widths[u])
        part = words[layer.op].part
        nodes.append(replace(box, label=f"{part} {box.label}") if part else box)
    return nodes


def _both(
    first: Architecture, second: Architecture, pair: Pair, before: DiagramNode | None, after: DiagramNode | None
) -> DiagramNode:
    status = _status(first, second, pair)
    if before is None or after is None or before == after:
        present = after or before
        assert present is not None
        return replace(present, status=status)
    tip = after.tip if status == "matched" else f"{before.tip}\n→\n{after.tip}"
    return replace(
        after,
        label=_arrow(before.label, after.label),
        detail=_arrow(before.detail, after.detail),
        tip=tip,
        status=status,
    )


def _arrow(before: str, after: str) -> str:
    return after if before == after else f"{before or '–'} → {after or '–'}"


def _status(first: Architecture, second: Architecture, pair: Pair) -> Status:
    u, v = pair
    if u is None:
        return "inserted"
    if v is None:
        return "removed"
    return "matched" if first.layers[u] == second.layers[v] else "changed"


def _link_status(old: bool, new: bool) -> Status:
    return "" if old and new else "inserted" if new else "removed"
