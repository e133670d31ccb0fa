"""Order of the vertices within their ranks: few crossings, by sweeps of barycentres.

Sugiyama, Tagawa, Toda: Methods for Visual Understanding of Hierarchical System Structures (1981).
The first order comes from a walk in depth that puts the spine in the middle of the branches of a
fork, and left of a single skip. Crossings are counted as inversions (Barth, Mutzel, Jünger: Simple
and Efficient Bilayer Cross Counting, 2004).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from itertools import pairwise

from archive.drawing.ranks import RankedGraph

Rows = list[list[int]]

_SWEEPS = 12
# Number of sweeps without an improvement that end the sweeping.
_PATIENCE = 3


def ordered(graph: RankedGraph) -> Rows:
    """Return the vertices of each rank from left to right."""
    rows = _first_order(graph)
    best = [list(row) for row in rows]
    fewest = _crossings(graph, rows)
    improved = 0
    for sweep in range(_SWEEPS):
        if not fewest or sweep - improved > _PATIENCE:
            break

        _sweep(graph, rows, down=sweep % 2 == 0)
        crossings = _crossings(graph, rows)
        if crossings < fewest:
            best = [list(row) for row in rows]
            fewest = crossings
            improved = sweep

    return best


def _first_order(graph: RankedGraph) -> Rows:
    rows: Rows = [[] for _ in graph.rows()]
    seen = [False] * len(graph.rank)
    on_spine = set(graph.spine)
    roots = [vertex for vertex in range(len(graph.rank)) if not graph.above[vertex]]
    for root in sorted(roots, key=lambda vertex: (vertex not in on_spine, vertex)):
        stack = [root]
        while stack:
            vertex = stack.pop()
            if seen[vertex]:
                continue

            seen[vertex] = True
            rows[graph.rank[vertex]].append(vertex)
            stack += reversed(_spine_in_middle(graph.below[vertex], on_spine))

    return rows


def _spine_in_middle(children: list[int], spine: set[int]) -> list[int]:
    others = sorted(child for child in children if child not in spine)
    middle = [child for child in children if child in spine]
    left = len(others) // 2 if middle else 0
    return [*others[:left], *middle, *others[left:]]


def _sweep(graph: RankedGraph, rows: Rows, *, down: bool) -> None:
    neighbours = graph.above if down else graph.below
    for rank in range(1, len(rows)) if down else reversed(range(len(rows) - 1)):
        row = rows[rank]
        if len(row) < 2:
            continue

        fixed = {vertex: place for place, vertex in enumerate(rows[rank - 1 if down else rank + 1])}
        key = {}
        for place, vertex in enumerate(row):
            near = neighbours[vertex]
            # A vertex without neighbours keeps its place.
            key[vertex] = sum(fixed[other] for other in near) / len(near) if near else float(place)

        row.sort(key=key.__getitem__)


def _crossings(graph: RankedGraph, rows: Rows) -> int:
    total = 0
    for upper, lower in pairwise(rows):
        if len(upper) < 2 or len(lower) < 2:
            continue

        place = {vertex: at for at, vertex in enumerate(lower)}
        ends: list[int] = []
        for vertex in upper:
            heads = sorted(place[child] for child in graph.below[vertex])
            for head in heads:
                total += len(ends) - bisect_left(ends, head + 1)

            for head in heads:
                insort(ends, head)

    return total
