"""Order and reachability in directed acyclic graphs of layers."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence, Set

from archive.architecture.layer import Edge, Layer
from archive.architecture.operations import INPUT, OUTPUT
from archive.errors import InvalidArchitectureError

Neighbours = tuple[tuple[int, ...], ...]


def topological_order(
    layers: Sequence[Layer], edges: Collection[Edge], rank: Sequence[int] | None = None
) -> list[int]:
    """Return positions in topological order, input first, output last, ties broken by rank."""
    rank = rank if rank is not None else range(len(layers))
    tie = [(_end(layer), rank[u], u) for u, layer in enumerate(layers)]
    children = neighbours_of(len(layers), edges, 0)
    waiting = [0] * len(layers)
    for _, head in edges:
        waiting[head] += 1

    ready = [tie[u] for u, edges_in in enumerate(waiting) if not edges_in]
    heapq.heapify(ready)
    order = []
    while ready:
        u = heapq.heappop(ready)[2]
        order.append(u)
        for child in children[u]:
            waiting[child] -= 1
            if not waiting[child]:
                heapq.heappush(ready, tie[child])

    if len(order) < len(layers):
        first = next(filter(waiting.__getitem__, range(len(layers))))
        raise InvalidArchitectureError("cycle through the layer", first)

    return order


def _end(layer: Layer) -> int:
    return {INPUT: 0, OUTPUT: 2}.get(layer.op, 1)


def neighbours_of(n: int, edges: Iterable[Edge], end: int) -> Neighbours:
    """Return, for each layer at this end of edges, the layers at their other end."""
    lists: list[list[int]] = [[] for _ in range(n)]
    for edge in edges:
        lists[edge[end]].append(edge[1 - end])

    return tuple(map(tuple, map(sorted, lists)))


def reach(
    neighbours: Neighbours | Mapping[int, Sequence[int]],
    start: int,
    closed: Set[int] = frozenset(),
) -> set[int]:
    """Return the positions that neighbours lead to, `start` included, `closed` ones left out."""
    reached = {start}
    stack = [start]
    while stack:
        for other in neighbours[stack.pop()]:
            if other not in reached and other not in closed:
                reached.add(other)
                stack.append(other)

    return reached
