"""Horizontal positions: vertical lines stay straight, the rest lies near its neighbours.

After Brandes and Köpf: Fast and Simple Horizontal Coordinate Assignment (2001): vertices of
adjacent ranks are aligned to blocks, each of which has one position. Unlike there, the spine is
aligned first, then the points of trunks, then nodes with the median of their neighbours, so that
one alignment is enough. Alignments never cross, hence blocks have a consistent order from left to
right.

| symbol | meaning                                                    |
|--------|------------------------------------------------------------|
| block  | vertices of consecutive ranks, one of each, with equal x   |
| gap    | least distance of the centres of two neighbours of a rank  |
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import inf

from archive.drawing.ranks import RankedGraph

_PASSES = 8

Gap = Callable[[int, int], float]


def columns(graph: RankedGraph, rows: list[list[int]], gap: Gap) -> list[float]:
    """Return the x of each vertex's centre.

    Args:
        graph: Vertices and their neighbours.
        rows: Vertices of each rank from left to right.
        gap: Least distance of two neighbours' centres, the left one given first.
    """
    block = _blocks(graph, rows)
    right = _constraints(rows, block, gap)
    left: dict[int, dict[int, float]] = {b: {} for b in right}
    for a, others in right.items():
        for b, least in others.items():
            left[b][a] = least

    order = _left_to_right(left, right)
    x = dict.fromkeys(order, 0.0)
    for b in order:
        x[b] = max((x[a] + least for a, least in left[b].items()), default=0.0)

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
        position = {}
        for row in (upper, lower):
            for index, vertex in enumerate(row):
                position[vertex] = index

        edges = []
        for u in upper:
            edges += [(u, v) for v in graph.below[u]]

        edges.sort(key=lambda edge: _priority(graph, edge, on_spine, position))
        taken: list[tuple[int, int]] = []
        for u, v in edges:
            s = position[u]
            t = position[v]
            # Equal places at either end mean that one vertex would be aligned twice.
            if all(
                (s < other_s and t < other_t) or (s > other_s and t > other_t)
                for other_s, other_t in taken
            ):
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


def _constraints(rows: list[list[int]], block: list[int], gap: Gap) -> dict[int, dict[int, float]]:
    right: dict[int, dict[int, float]] = {b: {} for b in sorted(set(block))}
    for row in rows:
        for u, v in pairwise(row):
            others = right[block[u]]
            others[block[v]] = max(others.get(block[v], 0.0), gap(u, v))

    return right


def _left_to_right(
    left: dict[int, dict[int, float]], right: dict[int, dict[int, float]]
) -> list[int]:
    waiting = {b: len(others) for b, others in left.items()}
    order = [b for b, count in waiting.items() if not count]
    for b in order:
        for other in right[b]:
            waiting[other] -= 1
            if not waiting[other]:
                order.append(other)

    return order


def _neighbours(graph: RankedGraph, block: list[int]) -> dict[int, list[int]]:
    neighbours: dict[int, list[int]] = {b: [] for b in block}
    for u, children in enumerate(graph.below):
        for v in children:
            if block[u] != block[v]:
                neighbours[block[u]].append(block[v])
                neighbours[block[v]].append(block[u])

    return neighbours


def _move(
    order: list[int],
    x: dict[int, float],
    left: dict[int, dict[int, float]],
    right: dict[int, dict[int, float]],
    neighbours: dict[int, list[int]],
) -> float:
    """Move each block toward its neighbours' mean, within its gaps; return the longest move."""
    longest = 0.0
    for b in order:
        if not neighbours[b]:
            continue

        target = sum(x[other] for other in neighbours[b]) / len(neighbours[b])
        low = max((x[a] + least for a, least in left[b].items()), default=-inf)
        high = min((x[a] - least for a, least in right[b].items()), default=inf)
        target = min(max(target, low), high)
        longest = max(longest, abs(target - x[b]))
        x[b] = target

    return longest
