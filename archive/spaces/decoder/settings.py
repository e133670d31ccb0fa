"""Settings of the space `decoder`: sizes, and the parts that a block may have.

Heads and hidden neurons follow the width of the stream: a head has `width / heads` numbers, of
`mamba2` twice as many, and a feed-forward part has `expansion * width` hidden neurons, rounded to a
multiple of 8. So the options of a block are the same at every width, in the same order, and a
network of another width has the option at the same position.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from typing import Any

from archive.architecture.decoders.design import NORMS, Norm
from archive.architecture.decoders.parts import (
    Attention,
    FeedForward,
    GatedDelta,
    Gelu,
    Mamba2,
    Mixer,
    MixtureOfExperts,
    SwiGlu,
)
from archive.architecture.decoders.vocabulary import (
    ATTENTION,
    FEED_FORWARDS,
    GATED_DELTA,
    GELU,
    MAMBA2,
    MIXERS,
    MOE,
    SLIDING,
)
from archive.errors import SettingsError, UnknownNameError
from archive.spaces.base import NONE
from archive.values import brief

STEP = 8
"""Hidden neurons are a multiple of this."""

EXPAND = 2
"""Channels of a state-space layer, as a multiple of the width: Mamba's factor."""

_MOST_BLOCKS = 256
_LARGEST = 1e9
"""Largest number of any setting: products of two are exact, and 64-bit numbers of the database."""


@dataclass(frozen=True)
class DecoderSettings:
    """Settings of the space; each list holds the options of a decision, in ascending order.

    Attributes:
        vocabulary: Number of different tokens; 256 for bytes.
        widths: Widths of the residual stream.
        max_blocks: Largest number of blocks.
        mixers: Kinds of mixers, `none` for blocks without one.
        heads: Numbers of heads.
        kv_heads: Numbers of key/value heads; those that divide the heads are options.
        windows: Positions that sliding attention reads.
        states: Sizes of a state-space layer's state.
        rotary_bases: Bases of the rotary frequencies; all layers of a network share one.
        feed_forwards: Kinds of feed-forward parts, `none` for blocks without one.
        expansions: Hidden neurons of `gelu` and `swiglu`, as multiples of the width.
        experts: Numbers of experts.
        active: Numbers of experts that a token uses.
        expert_expansions: Hidden neurons of an expert, as multiples of the width.
        norms: Places of the norms of a block.
        parallel: Whether both parts of a block read the same input.
        tied: Whether the head shares the embedding's matrix.
    """

    vocabulary: int = 256
    widths: tuple[int, ...] = (64, 96, 128)
    max_blocks: int = 6
    mixers: tuple[str, ...] = (*MIXERS, NONE)
    heads: tuple[int, ...] = (2, 4, 8)
    kv_heads: tuple[int, ...] = (1, 2, 4, 8)
    windows: tuple[int, ...] = (32, 64)
    states: tuple[int, ...] = (16, 32)
    rotary_bases: tuple[float, ...] = (10_000.0, 500_000.0)
    feed_forwards: tuple[str, ...] = (*FEED_FORWARDS, NONE)
    expansions: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0)
    experts: tuple[int, ...] = (4, 8)
    active: tuple[int, ...] = (1, 2)
    expert_expansions: tuple[float, ...] = (0.5, 1.0)
    norms: tuple[Norm, ...] = NORMS
    parallel: tuple[bool, ...] = (False, True)
    tied: tuple[bool, ...] = (True, False)

    @classmethod
    def of(cls, config: dict[str, Any]) -> DecoderSettings:
        """Return checked settings by name.

        Raises:
            UnknownNameError: There is no such setting.
            SettingsError: A value cannot be used.
        """
        names = [field.name for field in fields(cls)]
        checked: dict[str, Any] = {}
        for name, value in config.items():
            if name not in names:
                raise UnknownNameError("setting of space decoder", name, names)

            checked[name] = _check(name, value)

        settings = cls(**checked)
        _check_together(settings)
        return settings

    def as_dict(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        values: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return values

    def mixer_options(self, width: int, base: float) -> tuple[Mixer | None, ...]:
        """Return every mixer of a block, in the same order at every width."""
        return _mixers(self, width, base)

    def feed_forward_options(self, width: int) -> tuple[FeedForward | None, ...]:
        """Return every feed-forward part of a block, in the same order at every width."""
        return _feed_forwards(self, width)


@lru_cache(maxsize=256)
def _mixers(settings: DecoderSettings, width: int, base: float) -> tuple[Mixer | None, ...]:
    options: list[Mixer | None] = []
    for kind in settings.mixers:
        if kind == NONE:
            options.append(None)
            continue

        for heads in settings.heads:
            options += _mixers_of(settings, kind, heads, width=width, base=base)

    return tuple(options)


def _mixers_of(
    settings: DecoderSettings, kind: str, heads: int, *, width: int, base: float
) -> list[Mixer | None]:
    size = width // heads
    if kind == GATED_DELTA:
        return [GatedDelta(heads, size)]

    if kind == MAMBA2:
        return [Mamba2(heads, EXPAND * size, state) for state in settings.states]

    options: list[Mixer | None] = []
    for kv_heads in settings.kv_heads:
        if heads % kv_heads:
            continue

        if kind == ATTENTION:
            options.append(Attention(heads, kv_heads, size, base))
            continue

        for window in settings.windows:
            options.append(Attention(heads, kv_heads, size, base, window))

    return options


@lru_cache(maxsize=256)
def _feed_forwards(settings: DecoderSettings, width: int) -> tuple[FeedForward | None, ...]:
    options: list[FeedForward | None] = []
    for kind in settings.feed_forwards:
        if kind == NONE:
            options.append(None)
        elif kind == MOE:
            options += _mixtures(settings, width)
        else:
            dense = Gelu if kind == GELU else SwiGlu
            for expansion in settings.expansions:
                options.append(dense(hidden_of(expansion, width)))

    return tuple(options)


def _mixtures(settings: DecoderSettings, width: int) -> list[FeedForward | None]:
    options: list[FeedForward | None] = []
    for experts in settings.experts:
        for active in settings.active:
            if active > experts:
                continue

            for expansion in settings.expert_expansions:
                hidden = hidden_of(expansion, width)
                options.append(MixtureOfExperts(hidden, experts, active))

    return options


def hidden_of(expansion: float, width: int) -> int:
    """Return the hidden neurons of an expansion."""
    return STEP * max(1, round(expansion * width / STEP))


_WORDS = {
    "mixers": (*MIXERS, NONE),
    "feed_forwards": (*FEED_FORWARDS, NONE),
    "norms": NORMS,
}
_TRUTHS = ("parallel", "tied")
_REALS = ("rotary_bases", "expansions", "expert_expansions")
_COUNTS = {"vocabulary": _LARGEST, "max_blocks": _MOST_BLOCKS}


def _check(name: str, value: Any) -> Any:
    """Return the value of a setting, lists as tuples in ascending order.

    Raises:
        SettingsError: It cannot be used.
    """
    if name in _COUNTS:
        most = _COUNTS[name]
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if not is_whole or not 1 <= value <= most:
            what = f"a whole number from 1 to {most:g}"
            raise SettingsError(f"{name} must be {what}, got {brief(value)}")

        return value

    options: Any = [value] if isinstance(value, str | int | float) else value
    if not _are_different(options):
        raise SettingsError(f"{name} must be a list of different values, got {brief(value)}")

    if name in _WORDS:
        return _check_words(name, options)

    for option in options:
        if name in _TRUTHS:
            fits = isinstance(option, bool)
        else:
            kinds = int | float if name in _REALS else int
            is_kind = isinstance(option, kinds) and not isinstance(option, bool)
            fits = is_kind and 0 < option <= _LARGEST

        if not fits:
            what = "true or false" if name in _TRUTHS else f"numbers > 0 and <= {_LARGEST:.0e}"
            if name not in (*_TRUTHS, *_REALS):
                what = f"whole numbers from 1 to {_LARGEST:.0e}"

            raise SettingsError(f"{name} must be {what}, got {brief(option)}")

    if name in _TRUTHS:
        return tuple(options)

    return tuple(sorted(map(float, options) if name in _REALS else options))


def _are_different(options: Any) -> bool:
    """Return whether options are a list of values, none of them twice."""
    if not isinstance(options, Sequence) or not options:
        return False

    scalars = all(isinstance(option, str | int | float) for option in options)
    return scalars and len({*options}) == len(options)


def _check_words(name: str, options: Sequence[Any]) -> tuple[str, ...]:
    for option in options:
        if option not in _WORDS[name]:
            raise SettingsError(f"{name} are {', '.join(_WORDS[name])}, got {brief(option)}")

    # The order of a list has no meaning.
    return tuple(word for word in _WORDS[name] if word in options)


def _check_together(settings: DecoderSettings) -> None:
    """Check that the settings fit each other.

    Raises:
        SettingsError: They do not.
    """
    if settings.mixers == settings.feed_forwards == (NONE,):
        raise SettingsError("mixers or feed_forwards must have more than none")

    if min(settings.rotary_bases) <= 1:
        raise SettingsError(f"rotary_bases must be > 1, got {min(settings.rotary_bases):g}")

    for heads in settings.heads:
        for width in settings.widths:
            if width % (2 * heads):
                raise SettingsError(
                    "widths must be multiples of twice the heads, since rotary positions turn "
                    f"pairs of numbers, got the width {width} with {heads} heads"
                )

        attends = ATTENTION in settings.mixers or SLIDING in settings.mixers
        if attends and all(heads % kv_heads for kv_heads in settings.kv_heads):
            raise SettingsError(
                f"kv_heads must have a divisor of {heads} heads, got {list(settings.kv_heads)}"
            )

    if MOE in settings.feed_forwards and min(settings.active) > min(settings.experts):
        raise SettingsError(
            f"active must have a number <= {min(settings.experts)} experts, "
            f"got {list(settings.active)}"
        )

    for name in ("expansions", "expert_expansions"):
        for width in settings.widths:
            sizes = [hidden_of(expansion, width) for expansion in getattr(settings, name)]
            if len({*sizes}) < len(sizes):
                raise SettingsError(
                    f"{name} must differ by {STEP} hidden neurons or more at every width, got "
                    f"{list(getattr(settings, name))} at {width}"
                )
