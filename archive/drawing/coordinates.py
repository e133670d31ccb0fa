"""Horizontal positions of vertices in a layered layout.

Vertical lines stay straight, the rest lies near its neighbours: Brandes and Köpf: Fast and Simple
Horizontal Coordinate Assignment (2001). Vertices of adjacent ranks are aligned to blocks, each of
which has one position. Unlike there, the spine is aligned first, then the points of trunks, then
nodes with the median of their neighbours, so that one alignment is enough. Alignments never cross,
hence blocks have a consistent order from left to right.

| symbol | meaning                                                    |
|--------|------------------------------------------------------------|
| block  | vertices of consecutive ranks, one of each, with equal x   |
| gap    | least distance of the centres of two neighbours of a rank  |
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from itertools import count, pairwise
from math import inf

from archive.drawing.ranks import RankedGraph

_PASSES = 8

Gap = Callable[[int, int], float]


def horizontal_positions(graph: RankedGraph, rows: list[list[int]], gap: Gap) -> list[float]:
    """Return the x of each vertex's centre.

    Args:
        graph: Vertices and their neighbours.
        rows: Vertices of each rank from left to right.
        gap: Least distance of two neighbours' centres, the left one given first.
    """
    block = _blocks(graph, rows)
    left, right = _constraints(rows, block, gap)
    order = _left_to_right(left, right)
    x = dict.fromkeys(order, 0.0)
    for b in order:
        x[b] = _lowest(x, left[b], 0.0)

    neighbours = _neighbours(graph, block)
    for _ in range(_PASSES):
        moved = _move(order[::-1], x, left, right, neighbours) + _move(
            order, x, left, right, neighbours
        )
        if moved < 1:
            break

    return [x[b] for b in block]


def _blocks(graph: RankedGraph, rows: list[list[int]]) -> list[int]:
    """Return the block of each vertex: the top vertex of those that it is aligned with."""
    block = list(range(len(graph.rank)))
    on_spine = set(pairwise(graph.spine))
    for upper, lower in pairwise(rows):
        position = dict(zip(upper, count())) | dict(zip(lower, count()))
        edges = []
        for u in upper:
            for v in graph.below[u]:
                edges.append((u, v))

        edges.sort(key=lambda edge: _priority(graph, edge, on_spine, position))
        taken: list[tuple[int, int]] = []
        for u, v in edges:
            s = position[u]
            t = position[v]
            # Equal places at either end mean that one vertex would be aligned twice.
            if all((s - other_s) * (t - other_t) > 0 for other_s, other_t in taken):
                taken.append((s, t))
                block[v] = block[u]

    return block


def _priority(
    graph: RankedGraph,
    edge: tuple[int, int],
    on_spine: set[tuple[int, int]],
    position: dict[int, int],
) -> tuple[float, ...]:
    u, v = edge
    if edge in on_spine:
        return (0, 0, position[u], position[v])

    if u >= graph.nodes and v >= graph.nodes:
        return (1, 0, position[u], position[v])

    return (
        2,
        _off_middle(graph.below[u], v, position) + _off_middle(graph.above[v], u, position),
        position[u],
        position[v],
    )


def _off_middle(neighbours: list[int], vertex: int, position: dict[int, int]) -> float:
    left = sum(position[other] < position[vertex] for other in neighbours)
    return abs(left - (len(neighbours) - 1) / 2)


Gaps = dict[int, dict[int, float]]
"""Block to its neighbours on one side, each with the gap to it."""


def _constraints(rows: list[list[int]], block: list[int], gap: Gap) -> tuple[Gaps, Gaps]:
    """Return the gaps of each block to blocks on its left, and on its right."""
    left: Gaps = {}
    right: Gaps = {}
    for b in sorted(set(block)):
        left[b] = {}
        right[b] = {}

    for row in rows:
        for u, v in pairwise(row):
            a = block[u]
            b = block[v]
            right[a][b] = left[b][a] = max(right[a].get(b, 0.0), gap(u, v))

    return left, right


def _left_to_right(left: Gaps, right: Gaps) -> list[int]:
    waiting: dict[int, int] = {}
    order: list[int] = []
    for b, others in left.items():
        waiting[b] = len(others)
        if not others:
            order.append(b)

    for b in order:
        for other in right[b]:
            waiting[other] -= 1
            if not waiting[other]:
                order.append(other)

    return order


def _neighbours(graph: RankedGraph, block: list[int]) -> dict[int, list[int]]:
    neighbours: dict[int, list[int]] = defaultdict(list)
    for u, children in enumerate(graph.below):
        for v in children:
            if block[u] != block[v]:
                neighbours[block[u]].append(block[v])
                neighbours[block[v]].append(block[u])

    return neighbours


def _move(
    order: list[int],
    x: dict[int, float],
    left: Gaps,
    right: Gaps,
    neighbours: dict[int, list[int]],
) -> float:
    """Move each block toward its neighbours' mean, within its gaps; return the longest move."""
    longest = 0.0
    for b in order:
        if not neighbours[b]:
            continue

        target = sum(x[other] for other in neighbours[b]) / len(neighbours[b])
        target = max(target, _lowest(x, left[b], -inf))
        for other, gap in right[b].items():
            target = min(target, x[other] - gap)

        longest = max(longest, abs(target - x[b]))
        x[b] = target

    return longest


def _lowest(x: dict[int, float], left: dict[int, float], low: float) -> float:
    """Return the least x, at least `low`, that the gaps to blocks on the left allow."""
    for other, gap in left.items():
        low = max(low, x[other] + gap)

    return low
