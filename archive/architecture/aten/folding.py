"""Folding of repeated blocks: equal parts in a row become one block with a number of copies, and
back.

`archive.architecture.repeats` finds the equal parts.
"""

from __future__ import annotations

from collections.abc import Sequence

from archive.architecture.aten.blocks import END, START, blocks
from archive.architecture.attributes import Attributes
from archive.architecture.graph import Architecture, Connection, Layer
from archive.architecture.repeats import Part, Repeat, folded_parts, parts
from archive.errors import InvalidArchitectureError

MOST_LAYERS = 20_000
"""Largest network that is unfolded."""


def fold(architecture: Architecture) -> Architecture:
    """Return a network with its repeated parts folded into blocks.

    A network without repeated parts, or one that has blocks already, is returned as it is.
    """
    if any(layer.op == START for layer in architecture.layers):
        return architecture

    chain, free = parts(architecture)
    items = folded_parts(chain)
    if not any(isinstance(item, Repeat) for item in items):
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
                copy.written_out(start, end, sorted(inside), times)
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

    def written_out(self, start: int, end: int, inside: Sequence[int], times: int) -> None:
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
