"""Layers of decoders in a reader's words: `4 heads, 2 kv heads, window 32, base 10000`."""

from __future__ import annotations

from archive.architecture.decoders.parts import DecoderPart
from archive.architecture.decoders.vocabulary import (
    ATTENTION,
    FURTHER,
    GATED_DELTA,
    HEAD,
    LATENT,
    MAMBA,
    MAMBA2,
    MOE,
    SLIDING,
)
from archive.architecture.layer import Layer

_HEADS = frozenset((ATTENTION, SLIDING, LATENT, GATED_DELTA, MAMBA2))
_MOST_DIGITS = 1e9
_NUMBERED = frozenset((LATENT, MAMBA, MAMBA2))


def details_of(layer: Layer) -> str:
    """Return the settings of a layer beside its units, empty for a layer without any."""
    words = _settings_in_words(layer)
    return ", ".join([*words, *_base_in_words(layer), *_further_in_words(layer)])


def text_of(part: DecoderPart | None, width: int, *, whole: bool = False) -> str:
    """Return a part in words, with its units; `none` for no part.

    Args:
        part: The part.
        width: Width of the stream.
        whole: Whether the rotary base is shown, which is a choice of a whole network in the space.
    """
    if part is None:
        return "none"

    layer = part.layer(width)
    words = _settings_in_words(layer)
    if whole:
        words += _base_in_words(layer)

    words += _further_in_words(layer)
    return f"{part.op} {part.units}" + (f" ({', '.join(words)})" if words else "")


def value_text(value: object) -> str:
    """Return the value of a setting as a short text: of a rotary scaling, the kind and the factor."""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and value < _MOST_DIGITS else f"{value:.6g}"

    return " ".join(str(value).split()[:2])


def _base_in_words(layer: Layer) -> list[str]:
    base = layer.attributes.get("rotary_base")
    return [f"base {value_text(base)}"] if isinstance(base, float) else []


def _further_in_words(layer: Layer) -> list[str]:
    """Return the settings that published networks have beside those of the space."""
    words = []
    for name in FURTHER.get(layer.op, {}):
        value = layer.attributes.get(name)
        if value is True:
            words.append(name.replace("_", " "))
        elif value is not None:
            words.append(f"{name.replace('_', ' ')} {value_text(value)}")

    return words


def _settings_in_words(layer: Layer) -> list[str]:
    values = layer.attributes
    words: list[str] = []
    if not values:
        # Operations of other spaces may have the same words.
        return words

    if layer.op in _HEADS:
        words.append(f"{values.get('heads')} heads")

    if layer.op in (ATTENTION, SLIDING) and values.get("kv_heads") != values.get("heads"):
        words.append(f"{values.get('kv_heads')} kv heads")

    if layer.op == SLIDING:
        words.append(f"window {values.get('window')}")

    for name in ("kv_rank", "query_rank", "state", "rank"):
        if layer.op in _NUMBERED and name in values:
            words.append(f"{name.replace('_', ' ')} {values[name]}")

    if layer.op == MOE:
        words.append(f"{values.get('active')} of {values.get('experts')} experts")

    if layer.op == HEAD and values.get("tied"):
        words.append("tied")

    return words
