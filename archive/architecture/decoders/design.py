"""Designs of decoders: an embedding, blocks and a head, and their way into a graph and back.

    x = embedding(tokens)
    sequential        x = x + mixer(norm(x));  x = x + feed_forward(norm(x))
    parallel          y = norm(x);  x = x + mixer(y) + feed_forward(y)
    norm `sandwich`   a second norm behind each part, before the sum
    logits = head(norm(x))

The graph has one layer for each part, norm and sum. A part that a block lacks has no layer, so a
block that does nothing vanishes, and two designs that differ in nothing else are one network.
`design_of` reads the blocks of a graph in their normal form: a mixer and the feed-forward part that
follows it are one block where their norms agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Literal

from archive.architecture.decoders.parts import (
    WIDTH,
    DecoderPart,
    FeedForward,
    Mixer,
    part_of,
    whole,
)
from archive.architecture.decoders.vocabulary import (
    ADD,
    EMBEDDING,
    FEED_FORWARDS,
    HEAD,
    MIXERS,
    NAME,
    NORM,
)
from archive.architecture.graph import Architecture
from archive.architecture.layer import Attributes, Layer
from archive.architecture.operations import INPUT, OUTPUT
from archive.errors import InvalidArchitectureError

Norm = Literal["pre", "sandwich"]
NORMS: tuple[Norm, ...] = ("pre", "sandwich")


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a decoder.

    Attributes:
        mixer: The part that reads other positions; None for none.
        feed_forward: The part that reads its own position; None for none.
        norm: `pre`, before each part, or `sandwich`, before and behind it.
        parallel: Whether both parts read the same input.
    """

    mixer: Mixer | None = None
    feed_forward: FeedForward | None = None
    norm: Norm = "pre"
    parallel: bool = False

    @property
    def parts(self) -> tuple[DecoderPart, ...]:
        """The parts that there are, the mixer first."""
        return tuple(part for part in (self.mixer, self.feed_forward) if part is not None)


@dataclass(frozen=True, slots=True)
class Design:
    """A decoder.

    Attributes:
        vocabulary: Number of different tokens.
        width: Width of the residual stream.
        blocks: The blocks in their order.
        tied: Whether the head shares the embedding's matrix.
    """

    vocabulary: int
    width: int
    blocks: tuple[Block, ...]
    tied: bool = True

    def normal(self) -> Design:
        """Return the design with the blocks that its graph has: see the module."""
        return replace(self, blocks=tuple(_merge(self.blocks)))

    def graph(self) -> Architecture:
        """Return the network of the design."""
        graph = _DecoderGraph(self.width)
        stream = graph.add(self._embedding(), [0])
        for block in self.blocks:
            if block.parallel and len(block.parts) == 2:
                normed = graph.norm(stream)
                mixed = [graph.part(part, normed, block.norm) for part in block.parts]
                stream = graph.add(Layer(ADD, self.width), [stream, *mixed])
                continue

            for part in block.parts:
                normed = graph.norm(stream)
                stream = graph.add(
                    Layer(ADD, self.width), [stream, graph.part(part, normed, block.norm)]
                )

        logits = graph.add(self._head(), [graph.norm(stream)])
        graph.add(Layer(OUTPUT), [logits])
        return Architecture(NAME, graph.layers, graph.edges)

    def _embedding(self) -> Layer:
        attributes = Attributes({"vocabulary": self.vocabulary})
        return Layer(EMBEDDING, self.width, attributes=attributes)

    def _head(self) -> Layer:
        attributes = Attributes({WIDTH: self.width, "tied": self.tied})
        return Layer(HEAD, self.vocabulary, attributes=attributes)


class _DecoderGraph:
    """Layers and edges while they are collected."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.layers = [Layer(INPUT)]
        self.edges: list[tuple[int, int]] = []

    def add(self, layer: Layer, sources: Iterable[int]) -> int:
        """Add a layer behind others, and return its position."""
        position = len(self.layers)
        self.layers.append(layer)
        for source in sources:
            self.edges.append((source, position))

        return position

    def norm(self, source: int) -> int:
        """Add a norm behind a layer."""
        return self.add(Layer(NORM, self.width), [source])

    def part(self, part: DecoderPart, normed: int, norm: Norm) -> int:
        """Add a part, and its second norm."""
        position = self.add(part.layer(self.width), [normed])
        return self.norm(position) if norm == "sandwich" else position


def _merge(blocks: Iterable[Block]) -> list[Block]:
    """Return blocks without empty ones, each mixer joined with the feed-forward part behind it."""
    merged: list[Block] = []
    for block in blocks:
        if len(block.parts) == 2:
            merged.append(block)
            continue

        if not block.parts:
            continue

        last = merged[-1] if merged else Block()
        is_open = last.mixer is not None and last.feed_forward is None and last.norm == block.norm
        if is_open and block.mixer is None:
            merged[-1] = replace(last, feed_forward=block.feed_forward)
        else:
            merged.append(replace(block, parallel=False) if block.parallel else block)

    return merged


def design_of(architecture: Architecture) -> Design:
    """Return the design of a decoder in its normal form.

    Raises:
        InvalidArchitectureError: The graph is no decoder; the message gives the reason.
    """
    return placed_design_of(architecture)[0]


@dataclass(frozen=True, slots=True)
class PlacedPart:
    """A part in a graph.

    Attributes:
        norm: Position of the norm before it.
        position: Position of its layer.
        behind: Position of the norm behind it; None without.
        addition: Position of the sum that it enters.
        part: Its settings.
    """

    norm: int
    position: int
    behind: int | None
    addition: int
    part: DecoderPart


def placed_design_of(
    architecture: Architecture,
) -> tuple[Design, tuple[tuple[PlacedPart, ...], ...]]:
    """Return the design of a decoder in its normal form, and the parts of each block.

    Raises:
        InvalidArchitectureError: The graph is no decoder; the message gives the reason.
    """
    if architecture.space != NAME:
        raise InvalidArchitectureError(
            f"the architecture must be of space {NAME}, got {architecture.space}"
        )

    return _StreamReader(architecture).read()


class _StreamReader:
    """Reads a graph along its residual stream."""

    def __init__(self, architecture: Architecture) -> None:
        self.layers = architecture.layers
        self.parents = architecture.parents
        self.children = architecture.children

    def read(self) -> tuple[Design, tuple[tuple[PlacedPart, ...], ...]]:
        """Return the design in its normal form, and the parts of each of its blocks."""
        embedding = self._only(self.children[0], EMBEDDING)
        width = whole(self.layers[embedding], "units")
        steps: list[tuple[PlacedPart, ...]] = []
        stream = embedding
        while (addition := self._sum_of(stream)) is not None:
            steps.append(self._step(stream, addition, width))
            stream = addition

        norm = self._only(self.children[stream], NORM)
        head = self._only(self.children[norm], HEAD)
        self._only(self.children[head], OUTPUT)
        blocks: list[Block] = []
        for step in steps:
            blocks.append(_block_of(step))

        vocabulary = whole(self.layers[embedding], "vocabulary")
        tied = self.layers[head].attributes.get("tied")
        if not isinstance(tied, bool):
            raise InvalidArchitectureError(f"head needs tied true or false, got {tied!r}", head)

        design = Design(vocabulary, width, tuple(blocks), tied).normal()
        self._check_whole(design)
        # A merge joins neighbours, so that the parts keep their order.
        parts = chain.from_iterable(steps)
        return design, tuple(tuple(islice(parts, len(block.parts))) for block in design.blocks)

    def _sum_of(self, stream: int) -> int | None:
        """Return the sum that a layer of the stream enters; None behind the last block."""
        sums = [child for child in self.children[stream] if self.layers[child].op == ADD]
        if len(sums) > 1:
            raise InvalidArchitectureError("a layer of the stream enters two sums", sums[1])

        return sums[0] if sums else None

    def _step(self, stream: int, addition: int, width: int) -> tuple[PlacedPart, ...]:
        parts: list[PlacedPart] = []
        for source in self.parents[addition]:
            if source != stream:
                parts.append(self._placed(stream, source, addition, width))

        parts.sort(key=lambda placed: placed.part.op not in MIXERS)
        ops = [placed.part.op for placed in parts]
        if len(parts) == 2 and ops[0] in MIXERS and ops[1] in FEED_FORWARDS:
            same_norm = parts[0].norm == parts[1].norm
            if same_norm and (parts[0].behind is None) == (parts[1].behind is None):
                return tuple(parts)

        if len(parts) != 1:
            raise InvalidArchitectureError(
                "a sum adds one part to the stream, or a mixer and a feed-forward part behind one "
                f"norm, got {', '.join(ops) or 'nothing'}",
                addition,
            )

        return tuple(parts)

    def _placed(self, stream: int, source: int, addition: int, width: int) -> PlacedPart:
        behind = source if self.layers[source].op == NORM else None
        position = source if behind is None else self._source(source)
        part = part_of(self.layers[position])
        norm = self._source(position)
        if self.layers[norm].op != NORM or self._source(norm) != stream:
            raise InvalidArchitectureError(
                f"{self.layers[position].op} reads a norm of the stream", position
            )

        if whole(self.layers[position], WIDTH) != width:
            raise InvalidArchitectureError(
                f"the stream has the width {width}, got {self.layers[position].attributes[WIDTH]}",
                position,
            )

        return PlacedPart(norm, position, behind, addition, part)

    def _source(self, position: int) -> int:
        """Return the only parent of a layer."""
        parents = self.parents[position]
        if len(parents) != 1:
            raise InvalidArchitectureError(
                f"{self.layers[position].op} reads one layer, got {len(parents)}", position
            )

        return parents[0]

    def _only(self, children: Sequence[int], op: str) -> int:
        if len(children) != 1 or self.layers[children[0]].op != op:
            ops = ", ".join(self.layers[child].op for child in children)
            raise InvalidArchitectureError(f"a decoder has {op} here alone, got {ops or 'nothing'}")

        return children[0]

    def _check_whole(self, design: Design) -> None:
        """Check that the graph of the design has the same layers and as many edges."""
        graph = design.graph()
        edges = sum(map(len, self.parents))
        layers = sorted(self.layers, key=_label)
        if len(graph.edges) != edges or sorted(graph.layers, key=_label) != layers:
            raise InvalidArchitectureError(
                "a decoder is an embedding, blocks that are added to the stream, a norm and a head"
            )


def _label(layer: Layer) -> tuple[str, int, str]:
    return layer.op, layer.units or 0, layer.attributes.text


def _block_of(step: Sequence[PlacedPart]) -> Block:
    norm: Norm = "pre" if step[0].behind is None else "sandwich"
    mixer = None
    feed_forward = None
    for placed in step:
        if placed.part.op in MIXERS:
            mixer = placed.part
        else:
            feed_forward = placed.part

    return Block(mixer, feed_forward, norm, parallel=len(step) == 2)  # type: ignore[arg-type]
