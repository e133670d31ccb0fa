"""Edit distance of network morphism: the cost of the operations that turn one network into another.

Jin, Song, Hu: Efficient Neural Architecture Search with Network Morphism (2018), equations (3) to
(8) and theorem 1.

| symbol   | meaning                                                                                | shape  |
|----------|----------------------------------------------------------------------------------------|--------|
| L        | layers of a network in sequence                                                        | (n,)   |
| w        | width of a layer: its units                                                            | scalar |
| d_l      | |w - w'| / max(w, w'), eq. (5): widening a layer; 1 for layers that cannot be widened  | scalar |
| A        | A_ij = min(A_i-1,j + 1, A_i,j-1 + 1, A_i-1,j-1 + d_l(l_i, l_j')), eq. (6); D_l = A_nn' | scalar |
| S        | skips of a network (`distances.edit.sequence`)                                         | (s,)   |
| u, delta | rank of the layer that a skip starts from; number of layers between its ends           | scalar |
| d_s      | (|u - u'| + |delta - delta'|) / (max(u, u') + max(delta, delta')), eq. (8)             | scalar |
| D_s      | min over matchings of sum d_s + | |S| - |S'| |, eq. (7)                                | scalar |
| lambda   | weight of the skips                                                                    | scalar |

    d(G, G') = D_l + lambda D_s                                                                            eq. (3)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, get_args

import numpy as np
from numpy.typing import NDArray

from archive import runtime
from archive.architecture.graph import Architecture
from archive.argument_checks import require_at_least
from archive.errors import UsageError
from archive.kernels.base import PairDistance, check_one_space
from archive.kernels.distances.edit.sequence import Comparison, Sequenced, sequenced
from archive.kernels.distances.threads import solve_on_threads
from archive.kernels.search.lower_bounds import EditBound

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

PAIRS_A_THREAD = 512
"""Number of pairs below which a second thread costs more than it saves."""


class EditDistance(PairDistance[Sequenced]):
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

    `archive.kernels.distances.edit.sequence` defines the sequence and the skips of networks that
    are no chain with skips, which the paper leaves open. Preparing costs the canonical ranks,
    O(edges log layers) for most networks. A pair costs O(n n') for the layers and O(s^2 s') for the
    s <= s' skips that only one of the networks has. Choose it where networks are grown from one
    another by deepening, widening and skips; it is faster than OTMANN, but in networks with many
    parallel branches one more layer changes many ranks, and with them many skips.

    Args:
        lam: lambda, >= 0; 1 in the authors' code.
        layers: `"width"` is eq. (5): layers of equal label and stride differ by their widths, all
            others by 1. `"attributes"` is the authors' later code: layers whose labels differ only
            in the side of their window differ by the mean of the relative differences of units,
            side and stride.
        threads: Threads for large blocks; None for all processors available to the process.

    Raises:
        UsageError: An argument is out of range.
    """

    name: ClassVar[str] = "edit"

    def __init__(
        self, lam: float = 1.0, layers: Comparison = "width", threads: int | None = None
    ) -> None:
        """Check the arguments."""
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

    def lower_bound(self, space: str) -> EditBound:
        """Return equation (2) of `archive.kernels.search.lower_bounds`."""
        return EditBound(self.lam)

    def prepare(self, architecture: Architecture) -> Sequenced:
        """Order the layers in sequence and list the skips.

        Raises:
            InvalidArchitectureError: The network has too many skips to match, or a width beyond
                floating point.
        """
        return sequenced(architecture, self.layers)

    def pairs(self, networks: Sequence[Sequenced], pairs: Integers) -> Floats:
        """Solve the pairs in compiled batches, on several threads for many pairs."""
        if not len(pairs):
            return np.zeros((1, 0))

        check_one_space(networks)
        return solve_on_threads(
            EditBatch(networks, self.lam).solve, pairs, self.threads, PAIRS_A_THREAD
        )


class EditBatch:
    """Concatenated arrays of prepared networks: the input of the compiled solver."""

    def __init__(self, networks: Sequence[Sequenced], lam: float) -> None:
        self.kinds = np.concatenate([network.kinds for network in networks])
        self.scales = np.concatenate([network.scales for network in networks])
        self.attributes = np.concatenate([network.attributes for network in networks])
        self.skips = np.concatenate([network.skips for network in networks])
        self.layer_starts = np.cumsum([0, *(len(network.kinds) for network in networks)])
        self.skip_starts = np.cumsum([0, *(len(network.skips) for network in networks)])
        self.lam = lam

    def solve(self, pairs: Integers) -> Floats:
        """Return (1, q) distances."""
        from archive.kernels.distances.edit import solver

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
