"""Layers of decoders in a reader's words: `4 heads, 2 kv heads, window 32`."""

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
    values = layer.attributes
    if not values:
        # Operations of other spaces may have the same words.
        return ""

    words: list[str] = []
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

    return ", ".join(words)


def text_of(part: DecoderPart | None, width: int) -> str:
    """Return a part in words, with its units; `none` for no part."""
    if part is None:
        return "none"

    layer = part.layer(width)
    details = details_of(layer)
    return f"{part.op} {part.units}" + (f" ({details})" if details else "")
