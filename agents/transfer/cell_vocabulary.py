"""Cells of several benchmarks in one language, so that kernels compare them.

A vocabulary names its operations in this language (`archive.architecture.operations.Vocabulary.common`):

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

from archive.architecture.graph import Architecture, Edge, Layer
from archive.architecture.operations import INPUT, OUTPUT, vocabulary
from archive.errors import UsageError

WORDS = "nasbench101"
"""The vocabulary of the common language."""


def comparable(space: str, other: str) -> bool:
    """Return whether networks of two spaces can be compared."""
    return space == other or (_words(space) is not None and _words(other) is not None)


def translate(architecture: Architecture) -> Architecture:
    """Return a cell in the common language; its vocabulary names its operations there (`Vocabulary.common`)."""
    if architecture.space == WORDS:
        return architecture
    words = {INPUT: INPUT, OUTPUT: OUTPUT, **(vocabulary(architecture.space).common or {})}
    names = [words[layer.op] for layer in architecture.layers]
    kept = [at for at, name in enumerate(names) if name is not None]
    position = {old: new for new, old in enumerate(kept)}
    layers = [Layer(name) for name in names if name is not None]
    return Architecture(WORDS, layers, sorted(_edges(architecture, position)))


def _words(space: str) -> Mapping[str, str | None] | None:
    try:
        return vocabulary(space).common
    except UsageError:
        # A study of another package's space, which cannot be loaded here.
        return None


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
