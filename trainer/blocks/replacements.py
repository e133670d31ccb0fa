"""The replacements of one part of one block of a decoder, by the settings of its space."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from archive.architecture.decoders.design import Block, Design, design_of
from archive.architecture.decoders.labels import text_of
from archive.architecture.decoders.parts import DecoderPart, FeedForward, Mixer
from archive.architecture.graph import Architecture
from archive.errors import UsageError
from archive.spaces.base import NONE
from archive.spaces.decoder.moves import rotary_base_of
from archive.spaces.decoder.space import Decoder

PartName = Literal["mixer", "feed-forward"]
PARTS: tuple[PartName, ...] = ("mixer", "feed-forward")


@dataclass(frozen=True)
class PartReplacement:
    """Another part in one block.

    Attributes:
        index: Position of the block, from 0.
        part: `mixer` or `feed-forward`.
        old: The parent's block.
        new: The block with the other part.
        width: Width of the stream.
        architecture: The network with the block.
    """

    index: int
    part: PartName
    old: Block
    new: Block
    width: int
    architecture: Architecture

    @property
    def before(self) -> str:
        """The parent's part in words."""
        return text_of(part_in(self.old, self.part), self.width)

    @property
    def after(self) -> str:
        """The other part in words."""
        return text_of(part_in(self.new, self.part), self.width)

    def __str__(self) -> str:
        """Return the replacement in words: `block 2 mixer: attention 64 (4 heads) to none`."""
        return f"block {self.index + 1} {self.part}: {self.before} to {self.after}"


def part_in(block: Block, name: PartName) -> DecoderPart | None:
    """Return a part of a block."""
    return block.mixer if name == "mixer" else block.feed_forward


def library(
    parent: Architecture,
    space: Decoder,
    *,
    parts: Sequence[PartName] = PARTS,
    blocks: Collection[int] = (),
    kinds: Collection[str] = (),
) -> list[PartReplacement]:
    """Return the replacements that are members of the space, each network once.

    The blocks take turns, so that the first replacements are of all blocks.

    Args:
        parent: The network.
        space: The space, whose settings are the alternatives.
        parts: Parts to replace.
        blocks: Numbers of the blocks, from 1; empty for all.
        kinds: Words of the new parts, as `gated_delta` or `none`; empty for all.

    Raises:
        UsageError: The network has no block of a number, or the space no part of a kind.
    """
    design = design_of(parent)
    _check(design, space, blocks, kinds)
    rows: list[list[PartReplacement]] = []
    for index in range(len(design.blocks)):
        if not blocks or index + 1 in blocks:
            for part in parts:
                rows.append(_of_block(design, space, index, part, kinds))

    longest = max(map(len, rows), default=0)
    ordered: dict[str, PartReplacement] = {}
    for turn in range(longest):
        for row in rows:
            if turn < len(row):
                key = row[turn].architecture.functional_key
                ordered.setdefault(key, row[turn])

    ordered.pop(parent.functional_key, None)
    return list(ordered.values())


def _check(design: Design, space: Decoder, blocks: Collection[int], kinds: Collection[str]) -> None:
    count = len(design.blocks)
    for number in blocks:
        if not 1 <= number <= count:
            raise UsageError(f"the network has the blocks 1 to {count}, got {number}")

    words = sorted({*space.settings.mixers, *space.settings.feed_forwards})
    for kind in kinds:
        if kind not in words:
            raise UsageError(f"parts of the space are {', '.join(words)}, got {kind!r}")


def _of_block(
    design: Design, space: Decoder, index: int, part: PartName, kinds: Collection[str]
) -> list[PartReplacement]:
    old = design.blocks[index]
    replacements = []
    for option in _options(design, space, part):
        if option == part_in(old, part):
            continue

        if kinds and (NONE if option is None else option.op) not in kinds:
            continue

        new = _with_part(old, part, option)
        blocks = (*design.blocks[:index], new, *design.blocks[index + 1 :])
        changed = replace(design, blocks=blocks).normal()
        network = changed.graph() if changed.blocks else None
        if network is not None and space.contains(network):
            replacements.append(PartReplacement(index, part, old, new, design.width, network))

    return replacements


def _options(
    design: Design, space: Decoder, part: PartName
) -> Sequence[Mixer | None] | Sequence[FeedForward | None]:
    settings = space.settings
    if part == "mixer":
        base = rotary_base_of(design) or settings.rotary_bases[0]
        return settings.mixer_options(design.width, base)

    return settings.feed_forward_options(design.width)


def _with_part(old: Block, part: PartName, option: DecoderPart | None) -> Block:
    changed = (
        replace(old, mixer=option)  # type: ignore[arg-type]
        if part == "mixer"
        else replace(old, feed_forward=option)  # type: ignore[arg-type]
    )
    return changed if len(changed.parts) == 2 else replace(changed, parallel=False)
