"""Repeated blocks: `block_start` and `block_end` enclose layers that stand for several copies in a
row.

    … ─> block_start {times: 3} ─> layers of the block ─> block_end ─> …

The block is applied to its own output, each time with different weights. It has one input and one
output; layers without inputs, such as parameters, belong to the block that they feed. Blocks may
contain blocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from archive.errors import InvalidArchitectureError

if TYPE_CHECKING:
    from archive.architecture.graph import Architecture

START = "block_start"
END = "block_end"
MOST_TIMES = 10_000


def blocks(architecture: Architecture) -> list[tuple[int, int, frozenset[int]]]:
    """Return each block: the positions of its start and its end, and those of the layers between.

    Inner blocks come before the blocks that contain them.

    Raises:
        InvalidArchitectureError: A block has no end, or an edge passes its start or its end.
    """
    starts = [u for u, layer in enumerate(architecture.layers) if layer.op == START]
    ends = [u for u, layer in enumerate(architecture.layers) if layer.op == END]
    if not starts and not ends:
        return []

    if len(starts) != len(ends):
        raise InvalidArchitectureError(f"{len(starts)} blocks begin and {len(ends)} end")

    spans = []
    free = set(ends)
    for start in reversed(starts):
        end = _end(architecture, start, free)
        free.discard(end)
        spans.append((start, end, _inside(architecture, start, end)))

    return spans


def repeats(architecture: Architecture) -> list[int]:
    """Return how often each layer stands in the network, 1 outside of all blocks.

    Raises:
        InvalidArchitectureError: The blocks are not nested.
    """
    times = [1] * len(architecture.layers)
    for start, _, inside in blocks(architecture):
        count = architecture.layers[start].attributes.get("times")
        if type(count) is not int or not 2 <= count <= MOST_TIMES:
            raise InvalidArchitectureError(
                f"times must be a whole number from 2 to {MOST_TIMES}, got {count}", start
            )

        for u in inside:
            times[u] *= count

    return times


def _end(architecture: Architecture, start: int, free: set[int]) -> int:
    """Return the end of the block of a start: the first one behind it in topological order that is
    still free.

    Args:
        architecture: The network.
        start: Position of the start. Ends of the blocks that start later are assigned before.
        free: Ends that no block has yet.
    """
    behind = {start}
    stack = [start]
    while stack:
        for child in architecture.children[stack.pop()]:
            if child not in behind:
                behind.add(child)
                if child not in free:
                    stack.append(child)

    reached = sorted(behind & free)
    if not reached:
        raise InvalidArchitectureError("the block has no end", start)

    return reached[0]


def _inside(architecture: Architecture, start: int, end: int) -> frozenset[int]:
    """Return the layers between start and end, and the layers without inputs that feed only these
    layers.
    """
    inside: set[int] = set()
    stack = list(architecture.parents[end])
    while stack:
        u = stack.pop()
        if u in inside or u == start:
            continue

        if u == 0:
            raise InvalidArchitectureError("an edge leads into the block past its start", end)

        inside.add(u)
        stack += [
            parent for parent in architecture.parents[u] if not _is_order(architecture, parent, u)
        ]

    last = len(architecture.layers) - 1
    for u in (*inside, start):
        if (
            any(child not in inside and child != end for child in architecture.children[u])
            or u == last
        ):
            raise InvalidArchitectureError("an edge leads out of the block past its end", u)

    return frozenset(inside)


def _is_order(architecture: Architecture, tail: int, head: int) -> bool:
    """Return whether an edge carries no value: it leads from the input to a layer without
    inputs.
    """
    return tail == 0 and not architecture.argument_of[tail, head]
