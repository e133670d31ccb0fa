"""Input of the edit distance: the sequence of a network's layers, and its skips.

The paper's networks are one main chain with skip connections: the topological order is the chain, a
skip is an edge outside the chain, u is the position of the layer that it starts from (0 for the
input), and delta the number of layers it passes over. Networks with parallel branches or dead ends
have no such chain. For these:

- The sequence has all layers, ordered by the number of hops on the longest path that ends in them,
  input first and output last. Ties are broken by canonical rank, which compares label and units
  first: relabelled networks have the same sequence.
- A skip is an edge between layers that are not adjacent in the sequence.
- Where adjacent layers of the sequence have no edge, the chain has a break: a skip of another kind,
  with u the rank before it and delta 0. Without breaks, two parallel and two consecutive branches
  could have equal sequences.

Sequence, skips and breaks determine the network, and the paper's networks have the paper's
sequences. As in the authors' code, matching a skip with a break costs 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from archive.architecture.canonical import canonical_ranks
from archive.architecture.graph import Architecture, Layer
from archive.architecture.operations import INPUT, OUTPUT, Operation, Vocabulary, vocabulary
from archive.errors import InvalidArchitectureError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Comparison = Literal["width", "attributes"]

SKIP = 0
BREAK = 1
MAX_SKIPS = 2000
"""Most skips of a network.

Matching takes cubic time and quadratic memory: with so many, seconds a pair and 32 MB a thread."""


@dataclass(frozen=True, slots=True)
class Sequenced:
    """Layers and skips of one network, in sequence.

    Input and output are left out of the sequence: they are the same in every network, so that
    matching them is free.

    Attributes:
        key: The architecture's key.
        space: The architecture's space.
        kinds: (n,) int64; layers of two kinds are at distance 1.
        scales: (n,) float64; layers of one kind are at distance scale * sum of |x - x'| / max(x,
            x').
        attributes: (n, f) float64, x: widths, or units, side of the window and stride; 0 where a
            layer has none.
        skips: (s, 3) int64, sorted: `SKIP` or `BREAK`, u, delta.
    """

    key: str
    space: str
    kinds: Integers
    scales: Floats
    attributes: Floats
    skips: Integers


def sequenced(architecture: Architecture, comparison: Comparison) -> Sequenced:
    """Return the layers and skips of a network.

    Args:
        architecture: Any network.
        comparison: Comparison of layers: by width, or by all attributes.

    Raises:
        InvalidArchitectureError: The network has more than `MAX_SKIPS` skips, or a width beyond
            floating point.
    """
    order = sequence(architecture)
    described = _LayerComparison(vocabulary(architecture.space), comparison)
    layers = [(u, architecture.layers[u]) for u in order[1:-1]]
    attributes = [described.attributes(layer, u) for u, layer in layers]
    return Sequenced(
        architecture.key,
        architecture.space,
        np.array([described.kind(layer) for _, layer in layers], np.int64),
        np.array([described.scale(layer) for _, layer in layers], np.float64),
        np.array(attributes, np.float64).reshape(len(layers), described.width),
        _skips(architecture, order),
    )


def sequence(architecture: Architecture) -> list[int]:
    """Return the positions of the layers in sequence, a topological order that is invariant under
    relabelling.
    """
    ranks = canonical_ranks(architecture.layers, architecture.edges)
    hops = [0] * len(ranks)
    for tail, head in architecture.edges:
        # Edges are sorted by tail, and every edge leads to a later position: hops[tail] is final.
        hops[head] = max(hops[head], hops[tail] + 1)

    ends = {INPUT: -1, OUTPUT: 1}
    return sorted(
        range(len(ranks)), key=lambda u: (ends.get(architecture.layers[u].op, 0), hops[u], ranks[u])
    )


def _skips(architecture: Architecture, order: list[int]) -> Integers:
    rank = {u: place for place, u in enumerate(order)}
    joined = {(rank[tail], rank[head]) for tail, head in architecture.edges}
    skips = [(SKIP, u, v - u - 1) for u, v in joined if v > u + 1]
    breaks = [(BREAK, u, 0) for u in range(len(order) - 1) if (u, u + 1) not in joined]
    if len(skips) + len(breaks) > MAX_SKIPS:
        raise InvalidArchitectureError(
            f"the edit distance takes at most {MAX_SKIPS} skips, got {len(skips) + len(breaks)}"
        )

    return np.array(sorted(skips + breaks), np.int64).reshape(-1, 3)


class _LayerComparison:
    """Kind, scale and attributes of the layers of one space."""

    def __init__(self, words: Vocabulary, comparison: Comparison) -> None:
        self.words = words
        self.widths = comparison == "width"
        self.width = 1 if self.widths else 3
        stems = sorted({_stem(operation) for operation in words.operations.values()})
        self.stems = {
            op: stems.index(_stem(operation)) for op, operation in words.operations.items()
        }
        self.labels = {op: at for at, op in enumerate(words.operations)}

    def kind(self, layer: Layer) -> int:
        """Return the kind: a change of attributes turns layers of one kind into each other."""
        if not self.widths:
            return self.stems[layer.op]

        return self.labels[layer.op] + len(self.labels) * (layer.stride - 1)

    def scale(self, layer: Layer) -> float:
        """Return the factor that turns the sum of relative differences into their mean."""
        operation = self.words[layer.op]
        window = operation.kernel > 0
        strides = window or len(operation.strides) > 1
        return 1.0 if self.widths else 1.0 / max(operation.has_units + window + strides, 1)

    def attributes(self, layer: Layer, position: int) -> tuple[float, ...]:
        """Return the units, then the other attributes of the comparison."""
        try:
            units = float(layer.units or 0)
        except OverflowError:
            raise InvalidArchitectureError(f"{layer.op} has units beyond 1e308", position) from None

        return (
            (units,)
            if self.widths
            else (units, float(self.words[layer.op].kernel), float(layer.stride))
        )


def _stem(operation: Operation) -> tuple[str, bool]:
    """Return a label without the side of its window: conv3 and conv5 are both conv*."""
    side = str(operation.kernel)
    return (
        operation.name.replace(side, "*") if operation.kernel else operation.name,
        operation.has_units,
    )
