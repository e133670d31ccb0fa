"""Small decoders for tests: tiny widths, every kind of part."""

from __future__ import annotations

import numpy as np

from archive import spaces
from archive.architecture.decoders.design import Design
from archive.architecture.graph import Architecture
from archive.spaces.base import Space
from archive.trainer.protocols.networks import NetworkForm

SMALL = {
    "widths": [16, 32],
    "heads": [2, 4],
    "kv_heads": [1, 2, 4],
    "windows": [3, 5],
    "states": [4],
    "expansions": [1, 2],
    "experts": [3],
    "expert_expansions": [0.5],
    "max_blocks": 3,
    "vocabulary": 11,
}
"""Settings of a space of small decoders."""

FORM = NetworkForm((12,), 11, "language")


def small_space() -> Space:
    """Return a space of small decoders."""
    return spaces.get("decoder", **SMALL)


def sampled(count: int, seed: int = 0) -> list[Architecture]:
    """Return random small decoders."""
    rng = np.random.default_rng(seed)
    return [small_space().sample(rng) for _ in range(count)]


def network_of(*blocks, width: int = 16, tied: bool = True, vocabulary: int = 11) -> Architecture:
    """Return the network of some blocks."""
    return Design(vocabulary, width, blocks, tied).graph()
