"""Ranks of nodes, and the vertices that lines pass between the ranks of their ends.

| symbol | meaning                                                                       |
|--------|-------------------------------------------------------------------------------|
| rank   | row of a vertex, 0 on top; a link leads to a larger rank                      |
| vertex | a node, or a point at which a line passes a rank                              |
| trunk  | the points of a line; links of one tail and one status share their trunk      |
| spine  | a path with most nodes, which is drawn as a straight line                     |

Rank and spine: Gansner, Koutsofios, North, Vo: A Technique for Drawing Directed Graphs (1993),
section 2, with the longest path in place of the network simplex.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count, pairwise

from archive.drawing.diagram import Link


@dataclass
class RankedGraph:
    """A graph with edges between adjacent ranks.

    Attributes:
        nodes: Number of nodes: the first vertices. All others are points of trunks.
        rank: Rank of each vertex.
        above: Vertices of the rank above that each vertex is joined to.
        below: The same of the rank below.
        routes: For each link, its vertices from tail to head.
        spine: The vertices of the spine, from top to bottom.
        heads: For each point of a trunk, the nodes that lines through it lead to.
    """

    nodes: int
    rank: list[int]
    above: list[list[int]] = field(default_factory=list)
    below: list[list[int]] = field(default_factory=list)
    routes: list[list[int]] = field(default_factory=list)
    spine: list[int] = field(default_factory=list)
    heads: dict[int, list[int]] = field(default_factory=dict)


def rank_nodes(nodes: int, links: Sequence[Link]) -> RankedGraph:
    """Return nodes and links with ranks and trunks.

    Args:
        nodes: Number of nodes, in topological order.
        links: Links from smaller to larger positions.
    """
    parents = _empty_lists(nodes)
    children = _empty_lists(nodes)
    for link in links:
        parents[link.head].append(link.tail)
        children[link.tail].append(link.head)

    rank = _ranks(parents, children)
    graph = RankedGraph(nodes, rank, _empty_lists(nodes), _empty_lists(nodes))
    trunks: dict[tuple[int, str], list[int]] = {}
    joined: set[tuple[int, int]] = set()
    # The longest link of a trunk first, so that the others find its points.
    longest = sorted(range(len(links)), key=lambda link: (-rank[links[link].head], link))
    routes = _empty_lists(len(links))
    for longest_link in longest:
        link = links[longest_link]
        trunk = trunks.setdefault((link.tail, link.status), [])
        while len(trunk) < rank[link.head] - rank[link.tail] - 1:
            trunk.append(_point(graph, rank[link.tail] + 1 + len(trunk)))

        route = [link.tail, *trunk[: rank[link.head] - rank[link.tail] - 1], link.head]
        for point in route[1:-1]:
            graph.heads[point].append(link.head)

        for upper, lower in pairwise(route):
            if (upper, lower) not in joined:
                joined.add((upper, lower))
                graph.below[upper].append(lower)
                graph.above[lower].append(upper)

        routes[longest_link] = route

    graph.routes = routes
    graph.spine = _spine(graph, parents)
    return graph


def _empty_lists(number: int) -> list[list[int]]:
    return [[] for _ in range(number)]


def _ranks(parents: list[list[int]], children: list[list[int]]) -> list[int]:
    """Return the longest path to each node; unreached nodes move down to their children."""
    rank = [0] * len(parents)
    reached = {0}
    for u, above in enumerate(parents):
        for p in above:
            rank[u] = max(rank[u], rank[p] + 1)

        if not reached.isdisjoint(above):
            reached.add(u)

    for u in reversed(range(len(parents))):
        if children[u] and u not in reached:
            rank[u] = max(rank[u], min(map(rank.__getitem__, children[u])) - 1)

    return rank


def _point(graph: RankedGraph, rank: int) -> int:
    vertex = len(graph.rank)
    graph.rank.append(rank)
    graph.above.append([])
    graph.below.append([])
    graph.heads[vertex] = []
    return vertex


def _spine(graph: RankedGraph, parents: list[list[int]]) -> list[int]:
    """Return the path with most nodes; of equal ones, the path through the smallest positions."""
    length = [0] * graph.nodes
    before = [-1] * graph.nodes
    for u, above in enumerate(parents):
        for p in sorted(above):
            if length[p] + 1 > length[u]:
                length[u] = length[p] + 1
                before[u] = p

    if not length:
        return []

    path = [max(range(graph.nodes), key=lambda u: (length[u], -u))]
    while before[path[-1]] >= 0:
        path.append(before[path[-1]])

    # Ranks are longest paths: the nodes of the path are in adjacent ranks.
    return path[::-1]


Rows = list[list[int]]

_SWEEPS = 12
# Number of sweeps without an improvement that end the sweeping.
_PATIENCE = 3


def order_rows(graph: RankedGraph) -> Rows:
    """Return the vertices of each rank from left to right."""
    rows = _first_order(graph)
    best = list(map(list, rows))
    fewest = _crossings(graph, rows)
    improved = 0
    for sweep in range(_SWEEPS):
        if not fewest or sweep - improved > _PATIENCE:
            break

        _sweep(graph, rows, down=sweep % 2 == 0)
        crossings = _crossings(graph, rows)
        if crossings < fewest:
            best = list(map(list, rows))
            fewest = crossings
            improved = sweep

    return best


def _first_order(graph: RankedGraph) -> Rows:
    rows = _empty_lists(max(graph.rank, default=-1) + 1)
    seen = [False] * len(graph.rank)
    on_spine = set(graph.spine)
    # All other vertices are below these.
    for root in sorted(range(len(graph.rank)), key=lambda vertex: (vertex not in on_spine, vertex)):
        stack = [] if graph.above[root] else [root]
        while stack:
            vertex = stack.pop()
            if seen[vertex]:
                continue

            seen[vertex] = True
            rows[graph.rank[vertex]].append(vertex)
            stack += reversed(_spine_in_middle(graph.below[vertex], on_spine))

    return rows


def _spine_in_middle(children: list[int], spine: set[int]) -> list[int]:
    others = sorted(set(children) - spine)
    # The spine has one vertex a rank, and children have one rank.
    middle = spine.intersection(children)
    left = len(others) // 2 if middle else 0
    return [*others[:left], *middle, *others[left:]]


def _sweep(graph: RankedGraph, rows: Rows, *, down: bool) -> None:
    neighbours = graph.above if down else graph.below
    for rank in range(1, len(rows)) if down else reversed(range(len(rows) - 1)):
        row = rows[rank]
        if len(row) < 2:
            continue

        fixed = dict(zip(rows[rank - 1 if down else rank + 1], count()))
        key = {}
        for index, vertex in enumerate(row):
            near = neighbours[vertex]
            if near:
                key[vertex] = sum(fixed[other] for other in near) / len(near)
            else:
                # A vertex without neighbours keeps its place.
                key[vertex] = float(index)

        row.sort(key=key.__getitem__)


def _crossings(graph: RankedGraph, rows: Rows) -> int:
    total = 0
    for upper, lower in pairwise(rows):
        if len(upper) < 2 or len(lower) < 2:
            continue

        position = dict(zip(lower, count()))
        ends: list[int] = []
        for vertex in upper:
            heads = sorted(map(position.__getitem__, graph.below[vertex]))
            for head in heads:
                total += len(ends) - bisect_left(ends, head + 1)

            for head in heads:
                insort(ends, head)

    return total
