"""Diagrams of two networks that are compared: one over the other, or side by side.

`merge` draws layers that belong together once, which needs an order of layers that suits both
networks. `beside` draws both networks, with a line between layers that belong together.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product, starmap

from archive.architecture.diagram_labels import channels, node, value_text
from archive.architecture.graph import Architecture
from archive.architecture.operations import vocabulary
from archive.drawing.diagram import Diagram, DiagramNode, Flow, Link, Panel, Status

Pair = tuple[int | None, int | None]
"""Position of a layer in the first and in the second network.

None for a layer without a partner.
"""


def merge(
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
    boxes = (_nodes(first), _nodes(second))
    parts = _parts(first, second, pairs)
    drawn = [pair for pair in pairs if not parts or parts[pair]]
    node_of: tuple[dict[int, int], dict[int, int]] = ({}, {})
    nodes = []
    for number, pair in enumerate(drawn):
        box = _both(first, second, pair, boxes)
        nodes.append(replace(box, note=notes.get(pair, "")))
        for which, u in enumerate(pair):
            if u is not None:
                node_of[which][u] = number

    old = _drawn_edges(first, node_of[0])
    new = _drawn_edges(second, node_of[1])
    links = [Link(*edge, _link_status(edge in old, edge in new)) for edge in sorted(old | new)]
    panels = []
    for part in sorted(set(filter(None, parts.values()))):
        members = frozenset(number for number, pair in enumerate(drawn) if parts[pair] == part)
        panels.append(Panel(f"{part} cell", members))

    title = f"difference of {first.key[:8]} and {second.key[:8]}"
    whole = Diagram(
        tuple(nodes), tuple(links), (), tuple(panels), (), title, tuple(heading), legend=True
    )
    if vocabulary(first.space).arguments:
        return whole

    return gather(whole, [number for number, node in enumerate(nodes) if node.junction])


def _drawn_edges(network: Architecture, node_of: Mapping[int, int]) -> set[tuple[int, int]]:
    """Return the edges of a network between nodes of the diagram."""
    edges = set()
    for tail, head in network.edges:
        if tail in node_of and head in node_of:
            edges.add((node_of[tail], node_of[head]))

    return edges


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
        flows: Lines between them: positions in the first and in the second network, strength in [0,
            1], words.
        heading: Lines of text above the picture.
    """
    n = len(first.layers)
    boxes = [*_nodes(first), *_nodes(second)]
    nodes = []
    for box, status in zip(boxes, (*statuses[0], *statuses[1]), strict=True):
        nodes.append(replace(box, status=status))

    links = list(starmap(Link, first.edges))
    for tail, head in second.edges:
        links.append(Link(n + tail, n + head))

    panels = (
        Panel(first.key[:8], frozenset(range(n))),
        Panel(second.key[:8], frozenset(range(n, len(nodes)))),
    )
    lines = []
    for u, v, share, tip in flows:
        lines.append(Flow(u, n + v, share, _status(first, second, (u, v)), tip))

    title = f"{first.key[:8]} beside {second.key[:8]}"
    return Diagram(
        tuple(nodes),
        tuple(links),
        (),
        panels,
        tuple(lines),
        title=title,
        heading=tuple(heading),
        legend=True,
    )


def _nodes(architecture: Architecture) -> list[DiagramNode]:
    """Return the nodes of a network: boxes, and circles for the sums in the output of a cell."""
    words = vocabulary(architecture.space)
    widths = channels(architecture)
    nodes = []
    for u, layer in enumerate(architecture.layers):
        box = node(architecture, u, widths[u])
        nodes.append(
            replace(box, label="Σ", junction=True) if words[layer.op].group == "exit" else box
        )

    return nodes


def _parts(first: Architecture, second: Architecture, pairs: Sequence[Pair]) -> dict[Pair, str]:
    """Return the cell of each pair, empty for input and output.

    No pairs where there is one cell, or a pair is of two.

    The input feeds every cell, and every cell feeds the output: these two are not drawn with
    panels.
    """
    words = vocabulary(first.space)
    parts: dict[Pair, str] = {}
    for u, v in pairs:
        cells = {words[first.layers[u].op].part} if u is not None else set()
        cells |= {words[second.layers[v].op].part} if v is not None else set()
        if len(cells) > 1:
            return {}

        (parts[u, v],) = cells

    return parts if any(parts.values()) else {}


def _both(
    first: Architecture,
    second: Architecture,
    pair: Pair,
    nodes: tuple[list[DiagramNode], list[DiagramNode]],
) -> DiagramNode:
    u, v = pair
    status = _status(first, second, pair)
    before = nodes[0][u] if u is not None else nodes[1][v or 0]
    after = nodes[1][v] if v is not None else before
    tip = after.tip if before.tip == after.tip else f"{before.tip}\n→\n{after.tip}"
    label = _arrow(before.label, after.label)
    detail = _arrow(before.detail, after.detail)
    if status == "changed" and before.label == after.label and before.detail == after.detail:
        detail = " ".join(filter(None, (detail, _other_attribute(first, second, pair))))

    return replace(after, label=label, detail=detail, tip=tip, status=status)


def _other_attribute(first: Architecture, second: Architecture, pair: Pair) -> str:
    """Return the first attribute that differs between two layers whose labels do not."""
    before = first.layers[pair[0] or 0].attributes
    after = second.layers[pair[1] or 0].attributes
    names = []
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            names.append(name)

    if not names:
        return ""

    more = ", …" if len(names) > 1 else ""
    return (
        f"{names[0]} {value_text(before.get(names[0], '–'))} → "
        f"{value_text(after.get(names[0], '–'))}{more}"
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


Group = tuple[tuple[int, ...], Status]
"""Nodes that feed another one by lines of one status."""


def gather(diagram: Diagram, sums: Collection[int] = ()) -> Diagram:
    """Return a diagram with a junction where nodes have the same several inputs of one status.

    Args:
        diagram: A diagram without frames.
        sums: Nodes that are the sum of their inputs: where one has these inputs and no others, it
            is the junction.
    """
    heads = _heads(diagram)
    nodes = list(diagram.nodes)
    links = list[Link]()
    member: dict[int, int] = {}
    for number, panel in enumerate(diagram.panels):
        member |= dict.fromkeys(panel.nodes, number)

    keys = list(map(float, range(len(nodes))))
    for (tails, status), fed in heads.items():
        if len(tails) < 2 or len(fed) < 2:
            links += _links(tails, fed, status)
            continue

        junction = len(nodes)
        for head in fed:
            if head in sums and _inputs(diagram, head) == list(tails):
                junction = head
                break
        else:
            nodes.append(DiagramNode("", "join", status=status or "matched", junction=True))
            keys.append(max(tails) + 0.5)
            if tails[0] in member:
                member[junction] = member[tails[0]]

        links += _links(tails, [junction], status)
        links += _links([junction], set(fed) - {junction}, status)

    return _sort(diagram, nodes, links, keys, member)


def _links(tails: Iterable[int], heads: Iterable[int], status: Status) -> list[Link]:
    """Return the lines from each of several nodes to each of others."""
    return [Link(tail, head, status) for tail, head in product(tails, heads)]


def _heads(diagram: Diagram) -> dict[Group, list[int]]:
    """Return the nodes that each group feeds."""
    tails: dict[tuple[int, Status], list[int]] = {}
    for link in sorted(diagram.links, key=lambda link: (link.head, link.tail)):
        tails.setdefault((link.head, link.status), []).append(link.tail)

    heads: dict[Group, list[int]] = {}
    for (head, status), tails_of_head in tails.items():
        heads.setdefault((tuple(tails_of_head), status), []).append(head)

    return heads


def _inputs(diagram: Diagram, head: int) -> list[int]:
    return sorted(link.tail for link in diagram.links if link.head == head)


def _sort(
    diagram: Diagram,
    nodes: list[DiagramNode],
    links: list[Link],
    keys: list[float],
    member: dict[int, int],
) -> Diagram:
    """Return nodes and links in a topological order near the order of the keys."""
    waiting = [0] * len(nodes)
    below: dict[int, list[int]] = defaultdict(list)
    for link in links:
        waiting[link.head] += 1
        below[link.tail].append(link.head)

    ready = [(keys[u], u) for u, count in enumerate(waiting) if not count]
    heapq.heapify(ready)
    position: dict[int, int] = {}
    while ready:
        u = heapq.heappop(ready)[1]
        position[u] = len(position)
        for head in below[u]:
            waiting[head] -= 1
            if not waiting[head]:
                heapq.heappush(ready, (keys[head], head))

    members: dict[int, set[int]] = defaultdict(set)
    for u, number in member.items():
        members[number].add(position[u])

    panels = []
    for number, panel in enumerate(diagram.panels):
        panels.append(Panel(panel.title, frozenset(members[number])))

    moved = [Link(position[link.tail], position[link.head], link.status) for link in links]
    return Diagram(
        tuple(nodes[u] for u in position),
        tuple(sorted(moved, key=lambda link: (link.tail, link.head, link.status))),
        panels=tuple(panels),
        title=diagram.title,
        heading=diagram.heading,
        legend=diagram.legend,
    )
