"""Decoders as categorical decisions: width, base, tied head, blocks, and four decisions a block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, final

from archive.architecture.decoders.design import Block, Design, design_of
from archive.architecture.decoders.labels import text_of
from archive.architecture.graph import Architecture
from archive.errors import InvalidArchitectureError
from archive.spaces.base import NONE
from archive.spaces.decisions import ABSENT, Decision, Decisions, Vector
from archive.spaces.decoder.moves import rotary_base_of

if TYPE_CHECKING:
    from archive.spaces.decoder.space import Decoder

_STREAM = 4
_BLOCK = 4
"""Decisions of the stream, and of a block."""


@final
class DecoderDecisions(Decisions):
    """The decisions of the space `decoder`.

    A block of the vector may have no part; the network then has a block less.

    Args:
        decoders: The space.
    """

    def __init__(self, decoders: Decoder) -> None:
        """Name the decisions."""
        super().__init__(decoders)
        settings = decoders.settings
        self._settings = settings
        width = settings.widths[0]
        base = settings.rotary_bases[0]
        mixers = []
        for mixer in settings.mixer_options(width, base):
            mixers.append(text_of(mixer, width))

        feed_forwards = []
        for feed_forward in settings.feed_forward_options(width):
            feed_forwards.append(text_of(feed_forward, width))

        decisions = [
            Decision("width", tuple(map(str, settings.widths)), ordered=True),
            Decision("rotary base", tuple(f"{base:g}" for base in settings.rotary_bases)),
            Decision("head", tuple("tied" if tied else "free" for tied in settings.tied)),
            Decision("blocks", tuple(map(str, range(1, settings.max_blocks + 1))), ordered=True),
        ]
        for number in range(1, settings.max_blocks + 1):
            decisions += [
                Decision(f"block {number} mixer", tuple(mixers)),
                Decision(f"block {number} feed-forward", tuple(feed_forwards)),
                Decision(f"block {number} norm", tuple(settings.norms)),
                Decision(f"block {number} order", _orders(settings.parallel)),
            ]

        self._none = mixers.index(NONE) if NONE in mixers else ABSENT
        self._nothing = feed_forwards.index(NONE) if NONE in feed_forwards else ABSENT
        self.decisions = tuple(decisions)

    def needed(self, prefix: Sequence[int]) -> bool:
        """Return whether the decision exists: its block does, and has parts to place."""
        position = len(prefix)
        if position < _STREAM:
            return True

        block, offset = divmod(position - _STREAM, _BLOCK)
        if block > prefix[_STREAM - 1]:
            return False

        if offset < 2:
            return True

        mixer, feed_forward = prefix[position - offset : position - offset + 2]
        missing = (mixer == self._none) + (feed_forward == self._nothing)
        return missing < (2 if offset == 2 else 1)

    def encode(self, architecture: Architecture) -> Vector | None:
        """Return the decisions of a network."""
        if not self.space.contains(architecture):
            return None

        settings = self._settings
        design = design_of(architecture)
        base = rotary_base_of(design) or settings.rotary_bases[0]
        vector = [
            settings.widths.index(design.width),
            settings.rotary_bases.index(base),
            settings.tied.index(design.tied),
            len(design.blocks) - 1,
        ]
        for block in design.blocks:
            mixer = settings.mixer_options(design.width, base).index(block.mixer)
            feed_forwards = settings.feed_forward_options(design.width)
            vector += [mixer, feed_forwards.index(block.feed_forward)]
            vector.append(settings.norms.index(block.norm))
            both = len(block.parts) == 2
            vector.append(settings.parallel.index(block.parallel) if both else ABSENT)

        missing = len(self.decisions) - len(vector)
        return (*vector, *[ABSENT] * missing)

    def build(self, vector: Vector) -> Architecture:
        """See `Decisions.build`."""
        settings = self._settings
        width = settings.widths[vector[0]]
        base = settings.rotary_bases[vector[1]]
        mixers = settings.mixer_options(width, base)
        feed_forwards = settings.feed_forward_options(width)
        blocks = []
        for number in range(vector[3] + 1):
            start = _STREAM + _BLOCK * number
            mixer, feed_forward, norm, parallel = vector[start : start + _BLOCK]
            if norm == ABSENT:
                continue

            block = Block(
                mixers[mixer],
                feed_forwards[feed_forward],
                settings.norms[norm],
                parallel != ABSENT and settings.parallel[parallel],
            )
            blocks.append(block)

        if not blocks:
            raise InvalidArchitectureError("a decoder needs a block with a part")

        tied = settings.tied[vector[2]]
        return Design(settings.vocabulary, width, tuple(blocks), tied).normal().graph()


def _orders(parallel: Sequence[bool]) -> tuple[str, ...]:
    return tuple("parallel" if choice else "sequential" for choice in parallel)
