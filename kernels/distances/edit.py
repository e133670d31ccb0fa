"""Edit distance of network morphism: the cost of the operations that turn one network into another.

Jin, Song, Hu: Efficient Neural Architecture Search with Network Morphism (2018), equations (3) to
(8) and theorem 1.

| symbol   | meaning                                                                | shape  |
|----------|------------------------------------------------------------------------|--------|
| L        | layers of a network in sequence                                        | (n,)   |
| w        | width of a layer: its units                                            | scalar |
| d_l      | |w - w'| / max(w, w'), eq. (5); 1 for layers that cannot be widened    | scalar |
| A        | A_ij = min(A_i-1,j + 1, A_i,j-1 + 1, A_i-1,j-1 + d_l(l_i, l_j')), eq. (6) | scalar |
| D_l      | A_nn', distance of the sequences                                       | scalar |
| S        | skips of a network                                                     | (s,)   |
| u        | rank of the layer where a skip starts                                  | scalar |
| delta    | number of layers between the ends of a skip                            | scalar |
| d_s      | (|u - u'| + |delta - delta'|) / (max(u, u') + max(delta, delta')), eq. (8) | scalar |
| D_s      | min over matchings of sum d_s + | |S| - |S'| |, eq. (7)                | scalar |
| lambda   | weight of the skips                                                    | scalar |

    d(G, G') = D_l + lambda D_s                                                     eq. (3)

The paper's networks are one main chain with skip connections: the topological order is the chain, a
skip is an edge outside the chain, u is the position of the layer where it starts (0 for the input),
and delta the number of layers it passes over. Networks with parallel branches or dead ends have no
such chain. For these:

- The sequence has all layers, ordered by the number of hops on the longest path that ends in them,
  input first and output last. Ties are broken by canonical rank, which compares label and units
  first: relabelled networks have the same sequence.
- A skip is an edge between layers that are not adjacent in the sequence.
- Where adjacent layers of the sequence have no edge, the chain has a break: a skip of another kind,
  with u the rank before it and delta 0. Without breaks, two parallel and two consecutive branches
  could have equal sequences.

Sequence, skips and breaks determine the network, and the paper's networks have the paper's
sequences. As in the authors' code, matching a skip with a break costs 1.

Decoders of language models have a distance of their own, with a block as the unit:
`archive.kernels.distances.block_edit`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import ClassVar, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from archive import runtime
from archive.architecture.canonical import canonical_ranks
from archive.architecture.decoders.vocabulary import NAME as DECODER
from archive.architecture.graph import Architecture, Layer
from archive.architecture.operations import INPUT, OUTPUT, Operation, Vocabulary, vocabulary
from archive.errors import InvalidArchitectureError, UsageError
from archive.kernels.base import PairDistance, check_one_space, solve_on_threads
from archive.kernels.distances.block_edit import BlockBatch, SequencedBlocks, prepare_blocks
from archive.kernels.packing import pack
from archive.kernels.search.lower_bounds import EditBound
from archive.values import require_at_least

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Comparison = Literal["width", "attributes"]

SKIP = 0
BREAK = 1
MAX_SKIPS = 2000
"""Most skips of a network.

Matching takes cubic time and quadratic memory: with so many, seconds per pair, 32 MB per thread."""

PAIRS_A_THREAD = 512
"""Number of pairs below which a second thread costs more than it saves."""


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


def prepare_sequence(architecture: Architecture, comparison: Comparison) -> Sequenced:
    """Return the layers and skips of a network.

    Args:
        architecture: Any network.
        comparison: Comparison of layers: by width, or by all attributes.

    Raises:
        InvalidArchitectureError: The network has more than `MAX_SKIPS` skips, or a width beyond
            floating point.
    """
    order = sequence(architecture)
    compared = _LayerComparison(vocabulary(architecture.space), comparison)
    kinds: list[int] = []
    scales: list[float] = []
    attributes: list[tuple[float, ...]] = []
    for u in order[1:-1]:
        layer = architecture.layers[u]
        kinds.append(compared.kind(layer))
        scales.append(compared.scale(layer))
        attributes.append(compared.attributes(layer, u))

    return Sequenced(
        architecture.key,
        architecture.space,
        kinds=np.array(kinds, np.int64),
        scales=np.array(scales, np.float64),
        attributes=np.array(attributes, np.float64).reshape(len(kinds), compared.width),
        skips=_skips(architecture, order),
    )


def sequence(architecture: Architecture) -> list[int]:
    """Return the positions of the layers in sequence, topological and equal for relabellings."""
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
    rank = np.argsort(order)
    edges = np.unique(rank[np.array(architecture.edges, np.int64).reshape(-1, 2)], axis=0)
    lengths = edges[:, 1] - edges[:, 0] - 1
    breaks = np.setdiff1d(np.arange(len(order) - 1), edges[lengths == 0, 0])
    far = lengths > 0
    skips = np.zeros((far.sum() + len(breaks), 3), np.int64)
    skips[:, 0] = np.repeat([SKIP, BREAK], [far.sum(), len(breaks)])
    skips[:, 1] = np.concatenate([edges[far, 0], breaks])
    skips[: far.sum(), 2] = lengths[far]
    if len(skips) > MAX_SKIPS:
        raise InvalidArchitectureError(
            f"the edit distance takes at most {MAX_SKIPS} skips, got {len(skips)}"
        )

    return skips[np.lexsort(skips.T[::-1])]


class _LayerComparison:
    """Kind, scale and attributes of the layers of one space."""

    def __init__(self, words: Vocabulary, comparison: Comparison) -> None:
        self.words = words
        self.widths = comparison == "width"
        self.width = 1 if self.widths else 3
        stems = list(map(_stem, words.operations.values()))
        self.stems = dict(zip(words.operations, map(sorted(set(stems)).index, stems), strict=True))
        self.labels = dict(zip(words.operations, range(len(stems)), strict=True))

    def kind(self, layer: Layer) -> int:
        """Return the kind: a change of attributes turns layers of one kind into each other."""
        if self.words.is_open:
            # Operations have no list, so that their number is a digest.
            label = f"{layer.op} {layer.attributes.text}"
            return int.from_bytes(blake2b(label.encode(), digest_size=7).digest())

        if not self.widths:
            return self.stems[layer.op]

        return self.labels[layer.op] + len(self.labels) * (layer.stride - 1)

    def scale(self, layer: Layer) -> float:
        """Return the factor that turns the sum of relative differences into their mean."""
        if self.widths:
            return 1.0

        operation = self.words[layer.op]
        window = operation.kernel > 0
        strides = window or len(operation.strides) > 1
        return 1.0 / max(operation.has_units + window + strides, 1)

    def attributes(self, layer: Layer, position: int) -> tuple[float, ...]:
        """Return the units, then the other attributes of the comparison."""
        try:
            units = float(layer.units or 0)
        except OverflowError:
            raise InvalidArchitectureError(f"{layer.op} has units beyond 1e308", position) from None

        if self.widths:
            return (units,)

        return units, float(self.words[layer.op].kernel), float(layer.stride)


def _stem(operation: Operation) -> tuple[str, bool]:
    """Return a label without the side of its window: conv3 and conv5 are both conv*."""
    name = operation.name
    if operation.kernel:
        name = name.replace(str(operation.kernel), "*")

    return name, operation.has_units


class EditDistance(PairDistance[Sequenced | SequencedBlocks]):
    """Least cost of layers and skips to insert, remove or change, exactly: d = D_l + lambda D_s.

    Eq. (4) and eq. (6) of the paper differ: (4) matches every layer of the shorter network, (6) may
    leave out layers of both. This is (6), as in the authors' code: it is never larger, and only (6)
    satisfies the triangle inequality. For lambda > 0 the distance is a metric on networks (theorem
    1): symmetric, 0 for the same network and for no other, with the triangle inequality. For lambda
    = 0 it is a pseudo-metric. Eqs. (5) and (8) are weighted Jaccard distances, which are metrics of
    at most 1, and inserting or removing costs 1. D_l is therefore an edit distance of sequences
    with metric costs (Sellers 1974), and D_s an assignment with metric costs. Neither d nor d^2 is
    of negative type: exp(-d / 10) on 60 NAS-Bench cells and exp(-d^2) on 60 networks of the cnn
    space have negative eigenvalues. The embedding of `archive.kernels.distances.bourgain` gives a
    valid kernel.

    On decoders the blocks are inserted, removed and changed, whatever `lam` and `layers` are
    (`archive.kernels.distances.block_edit`); this is a metric too. Where operations tell their
    inputs apart, networks that differ in the order of inputs alone are at distance 0.

    Preparing costs the canonical ranks, O(edges log layers) for most networks. A pair costs O(n n')
    for the layers and O(s^2 s') for the s <= s' skips that only one of the networks has. Choose it
    where networks are grown from one another by deepening, widening and skips; it is faster than
    OTMANN, but in networks with many parallel branches one more layer changes many ranks, and with
    them many skips.

    Args:
        lam: lambda, >= 0; 1 in the authors' code.
        layers: `"width"` is eq. (5): layers of equal label and stride differ by their widths, all
            others by 1. `"attributes"` is the authors' later code: layers with labels that differ
            only in the side of their window differ by the mean of the relative differences of
            units, side and stride.
        threads: Threads for large blocks; None for all processors available to the process.

    Raises:
        UsageError: An argument is out of range.
    """

    name: ClassVar[str] = "edit"

    def __init__(
        self, lam: float = 1.0, layers: Comparison = "width", threads: int | None = None
    ) -> None:
        self.lam = float(lam)
        self.layers = layers
        if not 0 <= self.lam < np.inf:
            raise UsageError(f"lam must be a finite number >= 0, got {lam}")

        if layers not in get_args(Comparison):
            raise UsageError(
                f"layers must be one of {', '.join(get_args(Comparison))}, got {layers!r}"
            )

        require_at_least(1, threads=threads)
        self.threads = threads or runtime.count_cores()

    @property
    def components(self) -> tuple[str, ...]:
        """Return `edit`."""
        return ("edit",)

    @property
    def unnormalised(self) -> int:
        """Return 1: the distance has no normalised form."""
        return 1

    def lower_bound(self, space: str) -> EditBound | None:
        """Return equation (2) of `archive.kernels.search.lower_bounds`; None for decoders."""
        return None if space == DECODER else EditBound(self.lam)

    def prepare(self, architecture: Architecture) -> Sequenced | SequencedBlocks:
        """Order the layers in sequence and list the skips, or list the blocks of a decoder.

        Raises:
            InvalidArchitectureError: The network has too many skips to match, or a width beyond
                floating point; or it should be a decoder and is none.
        """
        if architecture.space == DECODER:
            return prepare_blocks(architecture)

        return prepare_sequence(architecture, self.layers)

    def pairs(self, networks: Sequence[Sequenced | SequencedBlocks], pairs: Integers) -> Floats:
        """Solve the pairs in compiled batches, on several threads for many pairs."""
        if not len(pairs):
            return np.zeros((1, 0))

        check_one_space(networks)
        return solve_on_threads(self._batch(networks).solve, pairs, self.threads, PAIRS_A_THREAD)

    def _batch(self, networks: Sequence[Sequenced | SequencedBlocks]) -> EditBatch | BlockBatch:
        if networks[0].space == DECODER:
            return BlockBatch(cast("Sequence[SequencedBlocks]", networks))

        return EditBatch(cast("Sequence[Sequenced]", networks), self.lam)


class EditBatch:
    """Concatenated arrays of prepared networks: the input of the compiled solver."""

    def __init__(self, networks: Sequence[Sequenced], lam: float) -> None:
        packed = pack(networks)
        self.kinds = packed["kinds"]
        self.scales = packed["scales"]
        self.attributes = packed["attributes"]
        self.skips = packed["skips"]
        self.layer_starts = packed["kinds.starts"]
        self.skip_starts = packed["skips.starts"]
        self.lam = lam

    def solve(self, pairs: Integers) -> Floats:
        """Return (1, q) distances."""
        from archive.kernels.distances import edit_solver as solver

        layers = int(np.diff(self.layer_starts).max())
        skips = int(np.diff(self.skip_starts).max())
        out = np.empty((1, len(pairs)))
        solver.solve_pairs(
            np.ascontiguousarray(pairs),
            self.kinds,
            self.scales,
            self.attributes,
            self.layer_starts,
            self.skips,
            self.skip_starts,
            self.lam,
            solver.workspace(layers, skips),
            out[0],
        )
        return out
