"""The space `decoder`: decoders of language whose blocks are chosen one by one.

A member is an embedding, 1 to `max_blocks` blocks, a norm and a head
(`archive.architecture.decoders`). Each block has a mixer and a feed-forward part, of which one may
be missing, norms before its parts or also behind them, and its parts one after the other or in
parallel. The width of the stream, the base of the rotary positions and whether the head is tied are
decisions of the whole network. A block that does nothing has no layers: two designs that differ in
such blocks are one network.

The number of tokens in a sequence is no part of a network; the task decides on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar, final

import numpy as np

from archive.architecture.decoders.design import Block, Design, design_of
from archive.architecture.decoders.parts import Attention, DecoderPart
from archive.architecture.graph import Architecture
from archive.errors import InvalidArchitectureError
from archive.spaces.base import Mutation, Space, check_space, draw_distinct
from archive.spaces.decisions import Decisions
from archive.spaces.decoder.moves import edits
from archive.spaces.decoder.pool import designs
from archive.spaces.decoder.settings import DecoderSettings

_POOL_SIZE = 10

Drawn = TypeVar("Drawn", bound=DecoderPart | None)


@final
class Decoder(Space):
    """Decoders of language whose blocks are chosen one by one.

    Args:
        **config: The fields of `DecoderSettings`, by name.

    Attributes:
        settings: The settings.

    Raises:
        SettingsError: A setting has an invalid value.
        UnknownNameError: There is no such setting.
    """

    name = "decoder"

    def __init__(self, **config: Any) -> None:
        """Check the settings."""
        self.settings = DecoderSettings.of(config)

    @property
    def config(self) -> dict[str, Any]:
        """All settings."""
        return self.settings.as_dict()

    def validate(self, architecture: Architecture) -> None:
        """Check that an architecture is a decoder of the settings.

        Raises:
            InvalidArchitectureError: It is not; the message gives the reason.
        """
        check_space(self.name, architecture)
        self._check(design_of(architecture))

    def initial_pool(self, rng: np.random.Generator | None = None) -> list[Architecture]:
        """Return ten designs after published families; samples where the settings exclude some."""
        del rng
        pool: dict[str, Architecture] = {}
        for design in designs(self.settings):
            if self._fault(design) is None:
                network = design.graph()
                pool.setdefault(network.functional_key, network)

        generator = np.random.default_rng(0)
        others = draw_distinct(
            lambda: self.sample(generator),
            lambda network: network.functional_key,
            max(0, _POOL_SIZE - len(pool)),
            taken=pool,
        )
        return [*pool.values(), *others][:_POOL_SIZE]

    def sample(self, rng: np.random.Generator) -> Architecture:
        """Draw the width, the number of blocks, and for each part first its kind."""
        settings = self.settings
        width = settings.widths[int(rng.integers(len(settings.widths)))]
        base = settings.rotary_bases[int(rng.integers(len(settings.rotary_bases)))]
        tied = settings.tied[int(rng.integers(len(settings.tied)))]
        count = int(rng.integers(settings.max_blocks)) + 1
        while True:
            blocks = tuple(self._draw_block(rng, width, base) for _ in range(count))
            design = Design(settings.vocabulary, width, blocks, tied).normal()
            if self._fault(design) is None:
                return design.graph()

    def mutate(self, architecture: Architecture, rng: np.random.Generator) -> Mutation:
        """Draw a kind of modification, then one of its applications."""
        by_name: dict[str, list[Design]] = {}
        for name, design in edits(design_of(architecture), self.settings):
            by_name.setdefault(name, []).append(design)

        while by_name:
            name = list(by_name)[int(rng.integers(len(by_name)))]
            candidates = by_name[name]
            design = candidates.pop(int(rng.integers(len(candidates)))).normal()
            if not candidates:
                del by_name[name]

            if self._fault(design) is not None:
                continue

            child = design.graph()
            if child.functional_key != architecture.functional_key:
                return Mutation(child, (name,))

        return Mutation(architecture, ())

    def neighbours(self, architecture: Architecture) -> Iterator[Mutation]:
        """Yield the designs that are one modification away."""
        seen = {architecture.key}
        for name, edited in edits(design_of(architecture), self.settings):
            design = edited.normal()
            if self._fault(design) is not None:
                continue

            child = design.graph()
            if child.key not in seen:
                seen.add(child.key)
                yield Mutation(child, (name,))

    def decisions(self) -> Decisions:
        """Return the decisions of the stream and of each block."""
        from archive.spaces.decoder.decisions import DecoderDecisions

        return DecoderDecisions(self)

    def _check(self, design: Design) -> None:
        fault = self._fault(design)
        if fault is not None:
            raise InvalidArchitectureError(fault)

    def _fault(self, design: Design) -> str | None:
        """Return why a design in its normal form is no member; None for a member."""
        settings = self.settings
        if design.vocabulary != settings.vocabulary:
            return f"the space has {settings.vocabulary} tokens, got {design.vocabulary}"

        if not 1 <= len(design.blocks) <= settings.max_blocks:
            return f"a decoder has 1 to {settings.max_blocks} blocks, got {len(design.blocks)}"

        if design.width not in settings.widths:
            return f"widths are {', '.join(map(str, settings.widths))}, got {design.width}"

        if design.tied not in settings.tied:
            return f"the head must {'not ' if design.tied else ''}be tied"

        bases: set[float] = set()
        for number, block in enumerate(design.blocks, 1):
            if isinstance(block.mixer, Attention):
                bases.add(block.mixer.rotary_base)

            if fault := self._block_fault(design, block):
                return f"block {number}: {fault}"

        if len(bases) > 1:
            return f"all attention layers have one rotary base, got {sorted(bases)}"

        return None

    def _block_fault(self, design: Design, block: Block) -> str | None:
        settings = self.settings
        base = settings.rotary_bases[0]
        if isinstance(block.mixer, Attention):
            base = block.mixer.rotary_base
            if base not in settings.rotary_bases:
                return f"no rotary base of the space, got {base:g}"

        mixer = block.mixer
        if mixer is not None and mixer not in settings.mixer_options(design.width, base):
            return f"no mixer of the space, got {mixer}"

        feed_forward = block.feed_forward
        options = settings.feed_forward_options(design.width)
        if feed_forward is not None and feed_forward not in options:
            return f"no feed-forward part of the space, got {feed_forward}"

        if mixer is None and None not in settings.mixer_options(design.width, base):
            return "a block of the space needs a mixer"

        if feed_forward is None and None not in options:
            return "a block of the space needs a feed-forward part"

        if block.norm not in settings.norms:
            return f"norms are {', '.join(settings.norms)}, got {block.norm}"

        if len(block.parts) == 2 and block.parallel not in settings.parallel:
            return f"parallel must be {' or '.join(map(str, settings.parallel)).lower()}"

        return None

    def _draw_block(self, rng: np.random.Generator, width: int, base: float) -> Block:
        settings = self.settings
        mixer = _draw(rng, settings.mixer_options(width, base))
        feed_forward = _draw(rng, settings.feed_forward_options(width))
        norm = settings.norms[int(rng.integers(len(settings.norms)))]
        parallel = settings.parallel[int(rng.integers(len(settings.parallel)))]
        return Block(mixer, feed_forward, norm, parallel)


def _draw(rng: np.random.Generator, options: tuple[Drawn, ...]) -> Drawn:
    """Draw a kind of part, then a part of this kind: rich kinds are no more frequent."""
    kinds: dict[str, list[Drawn]] = {}
    for option in options:
        kinds.setdefault("none" if option is None else option.op, []).append(option)

    kind = list(kinds.values())[int(rng.integers(len(kinds)))]
    return kind[int(rng.integers(len(kind)))]
