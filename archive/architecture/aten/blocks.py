"""Repeated blocks: `block_start` and `block_end` enclose layers that stand for several copies.

    … ─> block_start {times: 3} ─> layers of the block ─> block_end ─> …

The block is applied to its own output, each time with different weights. It has one input and one
output; layers without inputs, such as parameters, belong to the block that they feed. Blocks may
contain blocks.
"""

from __future__ import annotations

from collections.abc import Sequence

from archive.architecture.graph import Architecture, Connection, Layer
from archive.architecture.layer import Attributes
from archive.architecture.repeats import Part, Repeat, fold_parts, parts
from archive.errors import InvalidArchitectureError

START = "block_start"
END = "block_end"
MOST_TIMES = 10_000


def blocks(architecture: Architecture) -> list[tuple[int, int, frozenset[int]]]:
    """Return each block: the positions of its start, its end and the layers between.

    Inner blocks come before the blocks that contain them.

    Raises:
        InvalidArchitectureError: A block has no end, or an edge passes its start or its end.
    """
    starts = architecture.positions(START)
    ends = architecture.positions(END)
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
    """Return the end of a block: the first free one behind its start in topological order.

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
    """Return the layers between start and end, with layers without inputs that feed only these."""
    inside: set[int] = set()
    stack = list(architecture.parents[end])
    while stack:
        u = stack.pop()
        if u in inside or u == start:
            continue

        if u == 0:
            raise InvalidArchitectureError("an edge leads into the block past its start", end)

        inside.add(u)
        for parent in architecture.parents[u]:
            # Another edge from the input carries no value to a layer without inputs.
            if parent != 0 or architecture.argument_of[parent, u]:
                stack.append(parent)

    last = len(architecture.layers) - 1
    followers = {*inside, end}
    for u in (*inside, start):
        if u == last or not followers.issuperset(architecture.children[u]):
            raise InvalidArchitectureError("an edge leads out of the block past its end", u)

    return frozenset(inside)


MOST_LAYERS = 20_000
"""Largest network that is unfolded."""


def fold(architecture: Architecture) -> Architecture:
    """Return a network with its repeated parts folded into blocks.

    A network without repeated parts, or one that has blocks already, is returned as it is.
    """
    if architecture.positions(START):
        return architecture

    chain, free = parts(architecture)
    items = fold_parts(chain)
    if items == chain:
        return architecture

    copy = _Copy(architecture)
    for u in (0, *free):
        copy.layer(u)

    copy.items(items)
    return Architecture(architecture.space, copy.layers, copy.edges)


def unfold(architecture: Architecture) -> Architecture:
    """Return a network with its blocks written out.

    Raises:
        InvalidArchitectureError: The result would have more than 20,000 layers, or the blocks are
            not nested.
    """
    while spans := blocks(architecture):
        # Inner blocks come first, and are copied with the blocks around them.
        start, end, inside = spans[0]
        times = architecture.layers[start].attributes.get("times", 0)
        if (
            not isinstance(times, int)
            or len(architecture.layers) + times * len(inside) > MOST_LAYERS
        ):
            raise InvalidArchitectureError(
                f"at most {MOST_LAYERS} layers are unfolded, got a block {times} times", start
            )

        copy = _Copy(architecture)
        for u in range(len(architecture.layers)):
            if u == end:
                # In topological order, the layers that the block reads precede its end: they are
                # copied already.
                copy.write_out(start, end, sorted(inside), times)
            elif u != start and u not in inside:
                copy.layer(u)

        architecture = Architecture(architecture.space, copy.layers, copy.edges)

    return architecture


class _Copy:
    """A changed copy of a network.

    Attributes:
        layers: The layers of the copy.
        edges: Its edges.
        at: Position of a layer in the network to the position of the layer in the copy whose output
            replaces its own.
    """

    def __init__(self, architecture: Architecture) -> None:
        self.architecture = architecture
        self.layers: list[Layer] = []
        self.edges: list[Connection] = []
        self.at: dict[int, int] = {}

    def layer(self, u: int) -> None:
        """Copy a layer with the edges that lead to it."""
        self.at[u] = self._put(self.architecture.layers[u])
        for parent in self.architecture.parents[u]:
            # An edge without arguments carries no value: it leads from the input to a source.
            arguments = self.architecture.argument_of[parent, u]
            self.edges.append((self.at[parent] if arguments else 0, self.at[u], *arguments))

    def items(self, items: Sequence[Part | Repeat]) -> None:
        """Copy parts, and fold each repeat into a block."""
        for item in items:
            if isinstance(item, Part):
                for u in item.layers:
                    self.layer(u)

                continue

            start = self._put(Layer(START, attributes=Attributes({"times": item.times})))
            self.edges.append((self.at[item.begin], start, 0))
            self.at[item.begin] = start
            self.items(item.items)
            end = self._put(Layer(END))
            self.edges.append((self.at[item.first_end], end, 0))
            self.at[item.end] = end

    def write_out(self, start: int, end: int, inside: Sequence[int], times: int) -> None:
        """Copy the layers of a block as often as it is repeated."""
        (before,), (last,) = self.architecture.parents[start], self.architecture.parents[end]
        self.at[start] = self.at[before]
        for _ in range(times):
            for u in inside:
                self.layer(u)

            self.at[start] = self.at[last]

        self.at[end] = self.at[last]

    def _put(self, layer: Layer) -> int:
        self.layers.append(layer)
        return len(self.layers) - 1
