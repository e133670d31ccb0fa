"""Channels of the vertices of a NAS-Bench-101 cell.

Source: `nasbench/lib/model_builder.py` of google-research/nasbench.

The output's channels are divided evenly among the inner vertices that feed it; where that leaves a
remainder, the first of them get one channel more. Any other inner vertex has as many channels as
the largest of the inner vertices it feeds.

"First" depends on the order of the vertices, and isomorphic cells differ in it. The published cell
of each class is the first that `nasbench/scripts/generate_graphs.py` enumerates: by the bits of its
matrix, column by column, the last column highest; then by the labels. `published_order` finds it,
so that all relabellings of a cell have the parameters of the publication. Nothing here needs torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from archive.architecture.graph import Architecture, Neighbours
from archive.architecture.operations import NASBENCH101
from archive.errors import InvalidArchitectureError

_LABELS = {name: index for index, name in enumerate(NASBENCH101.of_group("cell"))}


@dataclass(frozen=True, slots=True)
class CellPlan:
    """Channels and connections of a cell, its vertices in published order.

    Attributes:
        operations: Labels of the inner vertices.
        parents: Vertices that feed each vertex, ascending.
        channels: Channels of each vertex; the first are the cell's inputs, the last its outputs.
        projected: Vertices that the input feeds, through a projection.
    """

    operations: tuple[str, ...]
    parents: Neighbours
    channels: tuple[int, ...]
    projected: tuple[int, ...]

    def inner_parents(self, v: int) -> tuple[int, ...]:
        """Return the parents of a vertex without the input."""
        parents = self.parents[v]
        return parents[1:] if parents and parents[0] == 0 else parents

    def convolutions(self) -> Iterator[tuple[int, int, int]]:
        """Yield (inputs, outputs, kernel) of each convolution, projections first."""
        for v in self.projected:
            yield self.channels[0], self.channels[v], 1

        for name, channels in zip(self.operations, self.channels[1:-1], strict=True):
            if not NASBENCH101[name].pools:
                yield channels, channels, NASBENCH101[name].kernel


def plan(architecture: Architecture, order: Sequence[int], inputs: int, outputs: int) -> CellPlan:
    """Return the plan of a cell.

    Args:
        architecture: The cell.
        order: Its vertices in the order in which channels are assigned (`published_order`).
        inputs: Channels of its input.
        outputs: Channels of its output.

    Raises:
        InvalidArchitectureError: More vertices share the channels of the output than it has.
    """
    position = {old: new for new, old in enumerate(order)}
    parents = tuple(tuple(sorted(position[p] for p in architecture.parents[old])) for old in order)
    operations = tuple(architecture.layers[old].op for old in order[1:-1])
    projected = tuple(v for v, feeding in enumerate(parents) if 0 in feeding)
    return CellPlan(operations, parents, _channels(parents, inputs, outputs), projected)


def published_order(architecture: Architecture) -> tuple[int, ...]:
    """Return the vertices of a cell in the order of the published cell that is isomorphic to it."""
    last = len(architecture.layers) - 1
    needs = [frozenset(parents) - {0} for parents in architecture.parents]
    orders = [(0, *inner, last) for inner in _topological(frozenset(range(1, last)), needs)]
    if len(orders) == 1:
        return orders[0]

    return min(orders, key=lambda order: _number(architecture, order))


def _channels(parents: Neighbours, inputs: int, outputs: int) -> tuple[int, ...]:
    last = len(parents) - 1
    channels = [inputs, *[0] * (last - 1), outputs]
    ends = [v for v in parents[last] if v]
    if len(ends) > outputs:
        raise InvalidArchitectureError(
            f"{len(ends)} vertices of the cell share the {outputs} channels of its output: set "
            f"channels to {len(ends)} or more in the protocol's network"
        )

    for index, v in enumerate(ends):
        channels[v] = outputs // len(ends) + (index < outputs % len(ends))

    for v in range(last - 1, 0, -1):
        # A vertex comes after all that it feeds: its channels are final.
        for parent in parents[v]:
            if parent and parent not in ends:
                channels[parent] = max(channels[parent], channels[v])

    return tuple(channels)


def _topological(
    left: frozenset[int], needs: Sequence[frozenset[int]]
) -> Iterator[tuple[int, ...]]:
    """Yield the orders of the remaining vertices in which each follows the vertices it needs."""
    if not left:
        yield ()

    for v in sorted(left):
        if not needs[v] & left:
            for others in _topological(left - {v}, needs):
                yield (v, *others)


def _number(architecture: Architecture, order: Sequence[int]) -> tuple[int, list[int]]:
    """Return the place of a cell with this order in the enumeration of all cells of its size."""
    position = {old: new for new, old in enumerate(order)}
    edges = [(position[tail], position[head]) for tail, head in architecture.edges]
    bits = sum(1 << (tail + head * (head - 1) // 2) for tail, head in edges)
    return bits, [_LABELS[architecture.layers[old].op] for old in order[1:-1]]
