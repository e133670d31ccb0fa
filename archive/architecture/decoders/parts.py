"""Mixers and feed-forward parts of a decoder's block, and their way from a layer.

| symbol | meaning                                                      |
|--------|--------------------------------------------------------------|
| d      | width of the residual stream                                 |
| u      | units of a layer: heads times the size of a head, or hidden  |
| h, g   | heads, and key/value heads                                   |
| p      | size of a head, u / h                                        |
| s      | size of a state-space layer's state                          |
| c      | positions that a short convolution reads                     |
| e, k   | experts, and experts that a token uses                       |
| q, m   | ranks: of queries, of keys and values; q also of Mamba's step |
| a, b   | numbers of a latent key that do not turn, and that turn      |
| n      | tokens of a sequence                                         |
| r      | mean number of positions that a position attends to          |

| part                | parameters                                  | multiply-adds of a token beside matrices |
|---------------------|---------------------------------------------|------------------------------------------|
| `attention`         | d u + 2 d g p + u d                         | 2 u r                                    |
| `sliding_attention` | the same                                    | 2 u r                                    |
| `latent_attention`  | (d + 1) q + q h (a + b) + d (m + b) + m + m (h a + u) + u d | (h (a + b) + u) r        |
| `gated_delta`       | 5 d u + 2 d h + 3 u c + 2 h + p             | 3 u c + 3 u p                            |
| `mamba2`            | d (2 u + 2 s + h) + (u + 2 s)(c + 1) + 3 h + u + u d | (u + 2 s) c + 2 u s             |
| `mamba`             | u (3 d + 2 q + 2 s) + u (c + s + 3)         | u c + 2 u s                              |
| `gelu`              | 2 d u                                       |                                          |
| `swiglu`, `geglu`   | 3 d u                                       |                                          |
| `moe`               | d e + 3 e d u                               | only k of the e experts                  |
| `linear`            | d d                                         |                                          |

A multiply-add counts once. A position attends to itself and to earlier ones, so r = (n + 1) / 2
without a window. Activations, normalisations and element-wise factors do not count. What the further
settings of published networks add stands beside them
(`archive.architecture.decoders.vocabulary.FURTHER`).

Vaswani et al.: Attention Is All You Need (2017). Ainslie et al.: GQA (2023). Su et al.: RoFormer
(2021). Yang, Kautz, Hatamizadeh: Gated Delta Networks (2024). Dao, Gu: Transformers are SSMs,
Mamba-2 (2024). Shazeer: GLU Variants Improve Transformer (2020). Shazeer et al.: Outrageously Large
Neural Networks (2017).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from archive.architecture.decoders.feed_forwards import (
    FeedForward,
    GeGlu,
    Gelu,
    Linear,
    MixtureOfExperts,
    SwiGlu,
)
from archive.architecture.decoders.mixers import (
    Attention,
    GatedDelta,
    LatentAttention,
    Mamba,
    Mamba2,
    Mixer,
)
from archive.architecture.decoders.part import KERNEL, WIDTH, DecoderPart
from archive.architecture.decoders.vocabulary import (
    ALL_FEED_FORWARDS,
    ALL_MIXERS,
    ATTENTION,
    FLAG,
    FURTHER,
    GATED_DELTA,
    GEGLU,
    GELU,
    LATENT,
    LINEAR,
    MAMBA,
    MAMBA2,
    MOE,
    REAL,
    SLIDING,
    SWIGLU,
    WHOLE,
)
from archive.architecture.layer import Attributes, Layer
from archive.errors import InvalidArchitectureError

__all__ = [
    "KERNEL",
    "WIDTH",
    "Attention",
    "DecoderPart",
    "FeedForward",
    "GatedDelta",
    "GeGlu",
    "Gelu",
    "LatentAttention",
    "Linear",
    "Mamba",
    "Mamba2",
    "Mixer",
    "MixtureOfExperts",
    "SwiGlu",
    "further_of",
    "part_of",
    "whole",
]


def part_of(layer: Layer) -> DecoderPart:
    """Return the mixer or the feed-forward part of a layer.

    Raises:
        InvalidArchitectureError: The layer is none, or lacks a setting.
    """
    read = _READERS.get(layer.op)
    if read is None:
        raise InvalidArchitectureError(
            f"a mixer is {', '.join(ALL_MIXERS)}, a feed-forward part "
            f"{', '.join(ALL_FEED_FORWARDS)}, "
            f"got {layer.op}"
        )

    part = read(layer)
    width = whole(layer, WIDTH)
    if part.layer(width) != layer:
        raise InvalidArchitectureError(
            f"{layer.op} has the settings {', '.join([WIDTH, *part.settings()])}, "
            f"got {layer.attributes.text or 'none'}"
        )

    return part


def further_of(layer: Layer) -> Attributes:
    """Return the settings of a layer that no member of the space has.

    Raises:
        InvalidArchitectureError: One has a value of the wrong kind.
    """
    values = {}
    for name, kind in FURTHER.get(layer.op, {}).items():
        value = layer.attributes.get(name)
        if value is None:
            continue

        if not _is_of_kind(value, kind):
            raise InvalidArchitectureError(f"{layer.op} needs {name} {kind}, got {value!r}")

        values[name] = value

    return Attributes(values)


def _is_of_kind(value: object, kind: str) -> bool:
    if kind == FLAG:
        return value is True

    if kind == WHOLE:
        return isinstance(value, int) and not isinstance(value, bool) and value >= 1

    if kind == REAL:
        return isinstance(value, float) and math.isfinite(value) and value > 0

    return isinstance(value, str) and value != ""


def whole(layer: Layer, name: str) -> int:
    """Return a setting that is a whole number >= 1.

    Raises:
        InvalidArchitectureError: It is none.
    """
    value = layer.units if name == "units" else layer.attributes.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidArchitectureError(f"{layer.op} needs {name} >= 1, got {value!r}")

    return value


def _attention(layer: Layer) -> Attention:
    heads = whole(layer, "heads")
    kv_heads = whole(layer, "kv_heads")
    size = _head_size(layer, heads)
    if heads % kv_heads:
        raise InvalidArchitectureError(
            f"{layer.op} needs kv_heads that divide its {heads} heads, got {kv_heads}"
        )

    extras = further_of(layer)
    window = whole(layer, "window") if layer.op == SLIDING else None
    if "positions" in extras:
        return Attention(heads, kv_heads, size, 0.0, window, extras)

    base = _rotary_base(layer)
    if size % 2:
        raise InvalidArchitectureError(
            f"rotary positions need heads of an even size, got {size} ({layer.units} / {heads})"
        )

    return Attention(heads, kv_heads, size, base, window, extras)


def _latent_attention(layer: Layer) -> LatentAttention:
    heads = whole(layer, "heads")
    query_rank = whole(layer, "query_rank") if "query_rank" in layer.attributes else 0
    return LatentAttention(
        heads,
        kv_rank=whole(layer, "kv_rank"),
        query_rank=query_rank,
        plain_size=whole(layer, "plain_size"),
        rotary_size=whole(layer, "rotary_size"),
        value_size=_head_size(layer, heads),
        rotary_base=_rotary_base(layer),
        extras=further_of(layer),
    )


def _gated_delta(layer: Layer) -> GatedDelta:
    heads = whole(layer, "heads")
    size = _head_size(layer, heads)
    return GatedDelta(heads, size, whole(layer, "kernel"), further_of(layer))


def _mamba2(layer: Layer) -> Mamba2:
    heads = whole(layer, "heads")
    size = _head_size(layer, heads)
    return Mamba2(heads, size, whole(layer, "state"), whole(layer, "kernel"), further_of(layer))


def _mamba(layer: Layer) -> Mamba:
    return Mamba(
        whole(layer, "units"),
        state=whole(layer, "state"),
        rank=whole(layer, "rank"),
        kernel=whole(layer, "kernel"),
        extras=further_of(layer),
    )


def _gelu(layer: Layer) -> Gelu:
    return Gelu(whole(layer, "units"), further_of(layer))


def _swiglu(layer: Layer) -> SwiGlu:
    return SwiGlu(whole(layer, "units"), further_of(layer))


def _geglu(layer: Layer) -> GeGlu:
    return GeGlu(whole(layer, "units"), further_of(layer))


def _linear(layer: Layer) -> Linear:
    return Linear(whole(layer, "units"), further_of(layer))


def _moe(layer: Layer) -> MixtureOfExperts:
    experts = whole(layer, "experts")
    active = whole(layer, "active")
    if active > experts:
        raise InvalidArchitectureError(
            f"moe needs active experts <= its {experts} experts, got {active}"
        )

    return MixtureOfExperts(whole(layer, "units"), experts, active, further_of(layer))


def _rotary_base(layer: Layer) -> float:
    base = layer.attributes.get("rotary_base")
    if isinstance(base, bool) or not isinstance(base, float) or base <= 1:
        raise InvalidArchitectureError(f"{layer.op} needs a rotary_base > 1, got {base!r}")

    return base


def _head_size(layer: Layer, heads: int) -> int:
    units = whole(layer, "units")
    if units % heads:
        raise InvalidArchitectureError(
            f"{layer.op} needs heads that divide its {units} units, got {heads}"
        )

    return units // heads


_READERS: dict[str, Callable[[Layer], DecoderPart]] = {
    ATTENTION: _attention,
    SLIDING: _attention,
    LATENT: _latent_attention,
    GATED_DELTA: _gated_delta,
    MAMBA2: _mamba2,
    MAMBA: _mamba,
    GELU: _gelu,
    SWIGLU: _swiglu,
    GEGLU: _geglu,
    LINEAR: _linear,
    MOE: _moe,
}
