"""Fewer lines in a diagram: nodes that are fed by the same several nodes are fed through one."""

from __future__ import annotations

import heapq
from collections.abc import Collection

from archive.drawing.diagram import Diagram, DiagramNode, Link, Panel, Status

Group = tuple[tuple[int, ...], Status]
"""Nodes that feed another one by lines of one status."""


def gathered(diagram: Diagram, sums: Collection[int] = ()) -> Diagram:
    """Return a diagram with junctions where several nodes have the same several inputs of one
    status.

    Args:
        diagram: A diagram without frames.
        sums: Nodes that are the sum of their inputs: where one has these inputs and no others, it
            is the junction.
    """
    heads = _heads(diagram)
    nodes = list(diagram.nodes)
    links = list[Link]()
    member = {u: at for at, panel in enumerate(diagram.panels) for u in panel.nodes}
    keys = [float(u) for u in range(len(nodes))]
    for (tails, status), fed in heads.items():
        if len(tails) < 2 or len(fed) < 2:
            links += [Link(tail, head, status) for head in fed for tail in tails]
            continue

        only = [head for head in fed if head in sums and _inputs(diagram, head) == list(tails)]
        junction = only[0] if only else len(nodes)
        if not only:
            nodes.append(DiagramNode("", "join", status=status or "matched", junction=True))
            keys.append(max(tails) + 0.5)
            if tails[0] in member:
                member[junction] = member[tails[0]]

        links += [Link(tail, junction, status) for tail in tails]
        links += [Link(junction, head, status) for head in fed if head != junction]

    return _sorted(diagram, nodes, links, keys, member)


def _heads(diagram: Diagram) -> dict[Group, list[int]]:
    """Return the nodes that each group feeds."""
    tails: dict[tuple[int, Status], list[int]] = {}
    for link in sorted(diagram.links, key=lambda link: (link.head, link.tail)):
        tails.setdefault((link.head, link.status), []).append(link.tail)

    heads: dict[Group, list[int]] = {}
    for (head, status), own in tails.items():
        heads.setdefault((tuple(own), status), []).append(head)

    return heads


def _inputs(diagram: Diagram, head: int) -> list[int]:
    return sorted(link.tail for link in diagram.links if link.head == head)


def _sorted(
    diagram: Diagram,
    nodes: list[DiagramNode],
    links: list[Link],
    keys: list[float],
    member: dict[int, int],
) -> Diagram:
    """Return nodes and links in a topological order near that of the keys."""
    waiting = [0] * len(nodes)
    below: list[list[int]] = [[] for _ in nodes]
    for link in links:
        waiting[link.head] += 1
        below[link.tail].append(link.head)

    ready = [(keys[u], u) for u, count in enumerate(waiting) if not count]
    heapq.heapify(ready)
    at: dict[int, int] = {}
    while ready:
        u = heapq.heappop(ready)[1]
        at[u] = len(at)
        for head in below[u]:
            waiting[head] -= 1
            if not waiting[head]:
                heapq.heappush(ready, (keys[head], head))

    panels = tuple(
        Panel(panel.title, frozenset(at[u] for u, own in member.items() if own == number))
        for number, panel in enumerate(diagram.panels)
    )
    moved = [Link(at[link.tail], at[link.head], link.status) for link in links]
    return Diagram(
        tuple(nodes[u] for u in at),
        tuple(sorted(moved, key=lambda link: (link.tail, link.head, link.status))),
        panels=panels,
        title=diagram.title,
        heading=diagram.heading,
        legend=diagram.legend,
    )
