"""The first designs of a search: small decoders after the families that people train.

| design                         | family                                             |
|--------------------------------|----------------------------------------------------|
| attention, GELU                | GPT-2 (Radford et al., 2019)                        |
| fewer key/value heads, SwiGLU  | Llama, Qwen                                         |
| sliding and full, sandwich     | Gemma 2 and 3                                       |
| parallel, one key/value head   | GPT-J, PaLM, Falcon                                 |
| state-space layers alone       | Mamba-2 (Dao, Gu, 2024)                             |
| gated delta and attention      | Qwen3-Next, Kimi Linear                             |
| state-space, attention, experts | Jamba                                              |
| attention, experts             | Mixtral                                             |
| blocks with a part left out    | Puzzle, Nemotron                                    |
| narrow and deep                | MobileLLM                                           |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from archive.architecture.decoders.design import Block, Design
from archive.architecture.decoders.parts import FeedForward, Mixer
from archive.architecture.decoders.vocabulary import (
    ATTENTION,
    GATED_DELTA,
    GELU,
    MAMBA2,
    MOE,
    SLIDING,
    SWIGLU,
)
from archive.spaces.decoder.settings import DecoderSettings

_BLOCKS = 4


def designs(settings: DecoderSettings) -> Iterator[Design]:
    """Yield the designs of the families whose parts the settings have."""
    width = settings.widths[len(settings.widths) // 2]
    count = min(_BLOCKS, settings.max_blocks)
    yield from _families(_PartsOfKinds(settings, width), count)
    yield from _deep(_PartsOfKinds(settings, settings.widths[0]), settings.max_blocks)


def _families(parts: _PartsOfKinds, count: int) -> Iterator[Design]:
    many = parts.attention(ATTENTION, grouped=1)
    grouped = parts.attention(ATTENTION, grouped=2)
    sliding = parts.attention(SLIDING, grouped=2)
    single = parts.attention(ATTENTION, grouped=0)
    delta = parts.mixer(GATED_DELTA)
    state = parts.mixer(MAMBA2)
    gelu = parts.feed_forward(GELU, -1)
    gated = parts.feed_forward(SWIGLU, 2)
    experts = parts.feed_forward(MOE, -1)

    yield parts.design([Block(many, gelu)], count)
    yield parts.design([Block(grouped, gated)], count)
    sandwich = [Block(sliding, gated, "sandwich"), Block(grouped, gated, "sandwich")]
    yield parts.design(sandwich, count)
    yield parts.design([Block(single, gelu, parallel=True)], count)
    yield parts.design([Block(state)], count)
    recurrent = Block(delta, gated)
    yield parts.design([recurrent, recurrent, recurrent, Block(grouped, gated)], count)
    yield parts.design([Block(state, gated), Block(grouped, experts)], count)
    yield parts.design([Block(grouped, experts)], max(1, count // 2))
    yield parts.design([Block(grouped, gated), Block(None, gated), Block(grouped)], count)


def _deep(parts: _PartsOfKinds, count: int) -> Iterator[Design]:
    grouped = parts.attention(ATTENTION, grouped=2)
    yield parts.design([Block(grouped, parts.feed_forward(SWIGLU, 1))], count)


class _PartsOfKinds:
    """Parts that the settings have at a width; None for a kind that they lack."""

    def __init__(self, settings: DecoderSettings, width: int) -> None:
        self.settings = settings
        self.width = width
        self.heads = settings.heads[len(settings.heads) // 2]
        self.mixers = settings.mixer_options(width, settings.rotary_bases[0])

    def attention(self, kind: str, grouped: int) -> Mixer | None:
        """Return attention with so many queries for each key/value head; 0 for one head of keys."""
        options = self._of_kind(kind)
        kv_heads = 1 if not grouped else max(1, self.heads // grouped)
        exact = [option for option in options if getattr(option, "kv_heads", 0) == kv_heads]
        return next(iter([*exact, *options]), None)

    def mixer(self, kind: str) -> Mixer | None:
        """Return a mixer of a kind."""
        return next(iter(self._of_kind(kind)), None)

    def feed_forward(self, kind: str, position: int) -> FeedForward | None:
        """Return the feed-forward part of a kind at a position, the last one for -1."""
        options = []
        for option in self.settings.feed_forward_options(self.width):
            if option is not None and option.op == kind:
                options.append(option)

        return options[min(position, len(options) - 1)] if options else None

    def design(self, pattern: Sequence[Block], count: int) -> Design:
        """Return a design that repeats a pattern of blocks."""
        blocks = [pattern[index % len(pattern)] for index in range(count)]
        settings = self.settings
        return Design(settings.vocabulary, self.width, tuple(blocks), settings.tied[0]).normal()

    def _of_kind(self, kind: str) -> list[Mixer]:
        options = []
        for option in self.mixers:
            if option is None or option.op != kind:
                continue

            if option.settings().get("heads") == self.heads:
                options.append(option)

        return options
