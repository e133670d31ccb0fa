"""Exact costs of a decoder, from its graph alone.

| quantity          | definition                                                                 |
|-------------------|----------------------------------------------------------------------------|
| `params`          | numbers of all matrices and vectors; a tied head has none of its own       |
| `flops_per_token` | mean multiply-adds of a token of a sequence (`archive.architecture.decoders.parts`) |
| `kv_cache_bytes`  | memory that generation keeps after so many tokens of one sequence: keys and values, states, and inputs of short convolutions, at `BYTES` a number |
"""

from __future__ import annotations

from archive.architecture.decoders.parts import WIDTH, further_of, part_of, whole
from archive.architecture.decoders.vocabulary import (
    ALL_FEED_FORWARDS,
    ALL_MIXERS,
    EMBEDDING,
    HEAD,
    NORM,
)
from archive.architecture.graph import Architecture
from archive.architecture.layer import Layer

BYTES = 2
"""Bytes of a number of the cache: bfloat16, as models are served."""

_PARTS = frozenset((*ALL_MIXERS, *ALL_FEED_FORWARDS))


def count_layer(layer: Layer) -> int:
    """Return the parameters of a layer."""
    if layer.op in _PARTS:
        return part_of(layer).params(whole(layer, WIDTH))

    extras = further_of(layer)
    if layer.op == NORM:
        vectors = ("unscaled" not in extras) + ("bias" in extras)
        return whole(layer, "units") * vectors

    if layer.op == EMBEDDING:
        positions = whole(layer, "positions") if "positions" in extras else 0
        return whole(layer, "units") * (whole(layer, "vocabulary") + positions)

    if layer.op == HEAD:
        matrix = 0 if layer.attributes.get("tied") else whole(layer, WIDTH) * whole(layer, "units")
        return matrix + (whole(layer, "units") if "bias" in extras else 0)

    return 0


def params(architecture: Architecture) -> int:
    """Return the parameters of a decoder."""
    return sum(map(count_layer, architecture.layers))


def flops_per_token(architecture: Architecture, length: int) -> float:
    """Return the mean multiply-adds of a token of a sequence of `length` tokens."""
    total = 0.0
    for layer in architecture.layers:
        if layer.op in _PARTS:
            total += part_of(layer).multiply_adds(whole(layer, WIDTH), length)
        elif layer.op == HEAD:
            total += whole(layer, WIDTH) * whole(layer, "units")

    return total


def kv_cache_bytes(architecture: Architecture, length: int) -> int:
    """Return the bytes that generation keeps after `length` tokens of one sequence."""
    numbers = 0
    for layer in architecture.layers:
        if layer.op in ALL_MIXERS:
            numbers += part_of(layer).cache_numbers(length)

    return BYTES * numbers
