"""A common vocabulary of cells, so that kernels can compare cells of different benchmarks.

A space's vocabulary maps its operations to common ones
(`archive.architecture.operations.Vocabulary.common`):

| operation       | NAS-Bench-101     | NAS-Bench-201  |
|-----------------|-------------------|----------------|
| convolution 3x3 | `conv3x3-bn-relu` | `nor_conv_3x3` |
| convolution 1x1 | `conv1x1-bn-relu` | `nor_conv_1x1` |
| pooling 3x3     | `maxpool3x3`      | `avg_pool_3x3` |
| identity        | an edge           | `skip_connect` |

A cell of NAS-Bench-201 becomes a cell with the operations of NAS-Bench-101: an identity becomes an
edge, and parallel identities one edge. The translation loses the network around the cell, the way
in which a layer combines its inputs, and the kind of pooling. It serves prior expectations, which
later evaluations correct.
"""

from __future__ import annotations

from collections.abc import Mapping

from archive.architecture.graph import Architecture, Edge, Layer
from archive.architecture.operations import INPUT, OUTPUT, vocabulary
from archive.errors import UsageError

WORDS = "nasbench101"
"""Name of the common vocabulary."""


def comparable(space: str, other: str) -> bool:
    """Return whether networks of two spaces can be compared."""
    return space == other or (_words(space) is not None and _words(other) is not None)


def translate(architecture: Architecture) -> Architecture:
    """Translate a cell to the common vocabulary by its own vocabulary's `common` operations."""
    if architecture.space == WORDS:
        return architecture

    words = {INPUT: INPUT, OUTPUT: OUTPUT, **(vocabulary(architecture.space).common or {})}
    names = [words[layer.op] for layer in architecture.layers]
    layers: list[Layer] = []
    position: dict[int, int] = {}
    for index, name in enumerate(names):
        if name is not None:
            position[index] = len(layers)
            layers.append(Layer(name))

    return Architecture(WORDS, layers, sorted(_edges(architecture, position)))


def _words(space: str) -> Mapping[str, str | None] | None:
    try:
        return vocabulary(space).common
    except UsageError:
        # The space of another package that is not installed here.
        return None


def _edges(architecture: Architecture, position: Mapping[int, int]) -> set[Edge]:
    """Return the edges between the remaining layers, through any number of identities."""
    reached: list[set[int]] = []
    edges: set[Edge] = set()
    for index in range(len(architecture.layers)):
        into: set[int] = set()
        for parent in architecture.parents[index]:
            into |= {position[parent]} if parent in position else reached[parent]

        reached.append(into)
        if index in position:
            edges |= {(tail, position[index]) for tail in into}

    return edges
