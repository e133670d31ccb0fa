"""Designs of decoders: an embedding, blocks and a head, and their way into a graph and back.

    x = embedding(tokens)
    sequential        x = x + mixer(norm(x));  x = x + feed_forward(norm(x))
    parallel          y = norm(x);  x = x + mixer(y) + feed_forward(y)
    norm `sandwich`   a second norm behind each part, before the sum
    logits = head(norm(x))

Published networks have two further places of norms:

    norm `post`       a norm behind each part alone:  x = x + norm(mixer(x))
    norm `separate`   in parallel, each part has a norm of its own

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
    further_of,
    part_of,
    whole,
)
from archive.architecture.decoders.vocabulary import (
    ADD,
    ALL_FEED_FORWARDS,
    ALL_MIXERS,
    EMBEDDING,
    HEAD,
    NAME,
    NORM,
)
from archive.architecture.graph import Architecture
from archive.architecture.layer import NONE, Attributes, Layer
from archive.architecture.operations import INPUT, OUTPUT
from archive.errors import InvalidArchitectureError

Norm = Literal["pre", "sandwich", "post", "separate"]
NORMS: tuple[Norm, ...] = ("pre", "sandwich")
"""Places of the norms of the space."""


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a decoder.

    Attributes:
        mixer: The part that reads other positions; None for none.
        feed_forward: The part that reads its own position; None for none.
        norm: `pre`, before each part, or `sandwich`, before and behind it; of published networks
            also `post`, behind it, or `separate`, one before each of two parallel parts.
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
class StreamSettings:
    """Further settings of layers around the parts, as published networks have them.

    Attributes:
        embedding: Settings of the embedding.
        norm: Settings of each norm.
        residual: Settings of each sum.
        head: Settings of the head.
    """

    embedding: Attributes = NONE
    norm: Attributes = NONE
    residual: Attributes = NONE
    head: Attributes = NONE


PLAIN = StreamSettings()
"""Settings of the members of the space: none."""


@dataclass(frozen=True, slots=True)
class Design:
    """A decoder.

    Attributes:
        vocabulary: Number of different tokens.
        width: Width of the residual stream.
        blocks: The blocks in their order.
        tied: Whether the head shares the embedding's matrix.
        stream: Further settings.
    """

    vocabulary: int
    width: int
    blocks: tuple[Block, ...]
    tied: bool = True
    stream: StreamSettings = PLAIN

    def normal(self) -> Design:
        """Return the design with the blocks that its graph has: see the module."""
        return replace(self, blocks=tuple(_merge(self.blocks)))

    def graph(self) -> Architecture:
        """Return the network of the design."""
        graph = _DecoderGraph(self.width, self.stream)
        stream = graph.add(self._embedding(), [0])
        for block in self.blocks:
            if block.parallel and len(block.parts) == 2:
                stream = graph.parallel(block, stream)
                continue

            for part in block.parts:
                stream = graph.sum([stream, graph.normed_part(part, stream, block.norm)])

        logits = graph.add(self._head(), [graph.norm(stream)])
        graph.add(Layer(OUTPUT), [logits])
        return Architecture(NAME, graph.layers, graph.edges)

    def further(self) -> list[str]:
        """Return what no member of the space has, a phrase each; empty for its members."""
        phrases: list[str] = []
        for name, settings in (
            (EMBEDDING, self.stream.embedding),
            (NORM, self.stream.norm),
            (ADD, self.stream.residual),
            (HEAD, self.stream.head),
        ):
            if settings:
                phrases.append(f"{name} with {', '.join(settings)}")

        for block in self.blocks:
            if block.norm not in NORMS:
                phrases.append(f"{block.norm} norms")

            for part in block.parts:
                if not part.is_searched:
                    extras = f" with {', '.join(part.extras)}" if part.extras else ""
                    phrases.append(part.op + extras)

        return list(dict.fromkeys(phrases))

    def _embedding(self) -> Layer:
        attributes = Attributes({"vocabulary": self.vocabulary, **self.stream.embedding})
        return Layer(EMBEDDING, self.width, attributes=attributes)

    def _head(self) -> Layer:
        attributes = Attributes({WIDTH: self.width, "tied": self.tied, **self.stream.head})
        return Layer(HEAD, self.vocabulary, attributes=attributes)


class _DecoderGraph:
    """Layers and edges while they are collected."""

    def __init__(self, width: int, stream: StreamSettings) -> None:
        self.width = width
        self.stream = stream
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
        return self.add(Layer(NORM, self.width, attributes=self.stream.norm), [source])

    def sum(self, sources: Iterable[int]) -> int:
        """Add a sum of layers."""
        return self.add(Layer(ADD, self.width, attributes=self.stream.residual), sources)

    def part(self, part: DecoderPart, source: int, norm: Norm) -> int:
        """Add a part, and its norm behind it."""
        position = self.add(part.layer(self.width), [source])
        return self.norm(position) if norm in ("sandwich", "post") else position

    def normed_part(self, part: DecoderPart, stream: int, norm: Norm) -> int:
        """Add a part with its norms."""
        return self.part(part, stream if norm == "post" else self.norm(stream), norm)

    def parallel(self, block: Block, stream: int) -> int:
        """Add a block whose parts read the same input."""
        if block.norm in ("separate", "post"):
            mixed = [self.normed_part(part, stream, block.norm) for part in block.parts]
        else:
            normed = self.norm(stream)
            mixed = [self.part(part, normed, block.norm) for part in block.parts]

        return self.sum([stream, *mixed])


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
            merged.append(_alone(block))

    return merged


def _alone(block: Block) -> Block:
    """Return a block of one part."""
    norm: Norm = "pre" if block.norm == "separate" else block.norm
    return replace(block, norm=norm, parallel=False)


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
        norm: Position of the norm before it; None without.
        position: Position of its layer.
        behind: Position of the norm behind it; None without.
        addition: Position of the sum that it enters.
        part: Its settings.
    """

    norm: int | None
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

        around = StreamSettings(
            embedding=further_of(self.layers[embedding]),
            norm=further_of(self.layers[norm]),
            residual=further_of(self.layers[stream]) if steps else NONE,
            head=further_of(self.layers[head]),
        )
        design = Design(vocabulary, width, tuple(blocks), tied, around).normal()
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

        parts.sort(key=lambda placed: placed.part.op not in ALL_MIXERS)
        ops = [placed.part.op for placed in parts]
        if len(parts) == 2 and ops[0] in ALL_MIXERS and ops[1] in ALL_FEED_FORWARDS:
            if _norms_of(parts) is not None:
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
        entered = self._source(position)
        norm = None if behind is not None and entered == stream else entered
        if norm is not None and (self.layers[norm].op != NORM or self._source(norm) != stream):
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


def _norms_of(step: Sequence[PlacedPart]) -> Norm | None:
    """Return the place of the norms of one part, or of two parallel ones; None for any other."""
    norms = {placed.norm for placed in step}
    behind = {placed.behind is not None for placed in step}
    if len(behind) > 1:
        return None

    if None in norms:
        return "post" if len(norms) == 1 else None

    if len(norms) > 1:
        return None if True in behind else "separate"

    return "sandwich" if True in behind else "pre"


def _block_of(step: Sequence[PlacedPart]) -> Block:
    mixer = None
    feed_forward = None
    for placed in step:
        if placed.part.op in ALL_MIXERS:
            mixer = placed.part
        else:
            feed_forward = placed.part

    norm = _norms_of(step)
    return Block(mixer, feed_forward, norm, parallel=len(step) == 2)  # type: ignore[arg-type]
