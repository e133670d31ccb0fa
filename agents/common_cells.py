"""Cells of several benchmarks in one language, so that kernels compare them.

| operation       | NAS-Bench-101     | NAS-Bench-201  |
|-----------------|-------------------|----------------|
| convolution 3x3 | `conv3x3-bn-relu` | `nor_conv_3x3` |
| convolution 1x1 | `conv1x1-bn-relu` | `nor_conv_1x1` |
| pooling 3x3     | `maxpool3x3`      | `avg_pool_3x3` |
| identity        | an edge           | `skip_connect` |

A cell of NAS-Bench-201 becomes one in the words of NAS-Bench-101: what an identity joins becomes an edge, parallel ones
one. What the networks around the cells are, how inputs of a layer come together, and which pooling it is, are then
no longer told apart: the language is for expectations, which later evaluations correct.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from archive.graph import Architecture, Edge, Layer

WORDS = "nasbench101"
"""The vocabulary of the common language."""

IDENTITY = "skip_connect"

TRANSLATED: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "nasbench101": {},
        "nasbench201": {
            "nor_conv_3x3": "conv3x3-bn-relu",
            "nor_conv_1x1": "conv1x1-bn-relu",
            "avg_pool_3x3": "maxpool3x3",
        },
    }
)
"""The operations of each space that can be translated, where their names differ."""


def comparable(space: str, other: str) -> bool:
    """Return whether networks of two spaces can be compared."""
    return space == other or {space, other} <= TRANSLATED.keys()


def translate(architecture: Architecture) -> Architecture:
    """Return a cell in the common language; the space is one of `TRANSLATED`."""
    words = TRANSLATED[architecture.space]
    if not words:
        return architecture
    kept = [at for at, layer in enumerate(architecture.layers) if layer.op != IDENTITY]
    position = {old: new for new, old in enumerate(kept)}
    layers = [Layer(words.get(architecture.layers[at].op, architecture.layers[at].op)) for at in kept]
    return Architecture(WORDS, layers, sorted(_edges(architecture, position)))


def _edges(architecture: Architecture, position: Mapping[int, int]) -> set[Edge]:
    """Return the edges between layers that stay, through any number of identities."""
    reached: list[set[int]] = []
    found: set[Edge] = set()
    for at in range(len(architecture.layers)):
        into: set[int] = set()
        for parent in architecture.parents[at]:
            into |= {position[parent]} if parent in position else reached[parent]
        reached.append(into)
        if at in position:
            found |= {(tail, position[at]) for tail in into}
    return found
