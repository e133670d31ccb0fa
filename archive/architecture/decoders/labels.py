"""Layers of decoders in a reader's words: `4 heads, 2 kv heads, window 32, base 10000`."""

from __future__ import annotations

from archive.architecture.decoders.parts import DecoderPart
from archive.architecture.decoders.vocabulary import (
    ATTENTION,
    GATED_DELTA,
    HEAD,
    MAMBA2,
    MOE,
    SLIDING,
)
from archive.architecture.layer import Layer

_HEADS = frozenset((ATTENTION, SLIDING, GATED_DELTA, MAMBA2))


def details_of(layer: Layer) -> str:
    """Return the settings of a layer beside its units, empty for a layer without any."""
    words = _settings_in_words(layer)
    if words and layer.op in (ATTENTION, SLIDING):
        words.append(f"base {layer.attributes['rotary_base']:g}")

    return ", ".join(words)


def text_of(part: DecoderPart | None, width: int) -> str:
    """Return a part in words, with its units; `none` for no part.

    The rotary base is left out: it is a choice of the whole network.
    """
    if part is None:
        return "none"

    words = _settings_in_words(part.layer(width))
    return f"{part.op} {part.units}" + (f" ({', '.join(words)})" if words else "")


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

    if layer.op == MAMBA2:
        words.append(f"state {values.get('state')}")

    if layer.op == MOE:
        words.append(f"{values.get('active')} of {values.get('experts')} experts")

    if layer.op == HEAD and values.get("tied"):
        words.append("tied")

    return words
