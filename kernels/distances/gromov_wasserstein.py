"""Gromov-Wasserstein distance between the wirings of two networks, computed by the library POT.

Memoli: Gromov-Wasserstein distances and the metric approach to object matching (2011), section 5;
the baseline BO-GW of Nguyen, Le, Yamada, Osborne (2021), section 4.1. Fused with labels: Vayer,
Chapel, Flamary, Tavenard, Courty: Optimal transport for structured data (2019).

| symbol | meaning                                                                       | shape    |
|--------|-------------------------------------------------------------------------------|----------|
| C      | hops on the shortest path between two layers, along edges in either direction | (n, n)   |
| Z      | coupling: weight of each pair of layers; rows add up to 1/n1, columns to 1/n2 | (n1, n2) |
| M      | 0 for layers of equal operation, stride included, else 1                      | (n1, n2) |

    d(G1, G2)^2 = min over Z of  alpha sum_ijkl (C1_ik - C2_jl)^2 Z_ij Z_kl + (1 - alpha) <Z, M>

With alpha = 1 this is twice Memoli's distance D_2. The paper does not define its C; its authors'
code uses adjacency matrices, which are no distances. With hops, C is a metric. Layers without a
path between them are n hops apart, more than any two connected layers.

The program is not convex. POT's conditional gradient finds a stationary Z, from several starts
here: the uniform coupling, the optimal coupling of Memoli's third lower bound (each layer described
by the distribution of its distances to all others), and the uniform coupling with a fifth of a
random vertex of the polytope, drawn with a fixed seed. The best Z is used. Where a start reaches
the lower bound, no other can be better and the remaining starts are left out.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from archive.architecture import canonical
from archive.architecture.graph import Architecture, Layer
from archive.architecture.networks import take
from archive.errors import InvalidArchitectureError, UsageError
from archive.kernels.base import PairDistance, check_one_space
from archive.kernels.distances.wasserstein import pot
from archive.values import check_whole, require_at_least

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

ITERATIONS = 1000
"""Limit of iterations of conditional gradient; most problems need about ten."""
ROUNDING = 1e-10
"""Rounding error of a loss: smaller differences from 0 or from the bound do not count, since hops
are integers."""
REMEMBERED = 500_000
NUDGE = 0.2
"""Weight of a random vertex in a start.

A start near the middle of the polytope leads to better optima than a vertex, which is often
stationary itself."""


class GromovWassersteinWarning(RuntimeWarning):
    """The solver stopped before a stationary coupling: the distance is a poor upper bound."""


@dataclass(frozen=True, eq=False)
class WiredNetwork:
    """Hops and labels of one network, in canonical order.

    Attributes:
        key: The architecture's key.
        space: The architecture's space.
        shape: Hash of hops and labels: equal for two networks exactly when these are.
        hops: (n, n) float64, symmetric.
        labels: Operation and stride of each layer; all equal where labels do not count.
    """

    key: str
    space: str
    shape: str
    hops: Floats
    labels: tuple[str, ...]


class GromovWasserstein(PairDistance[WiredNetwork]):
    """Distortion of the hops between layers under the best coupling of two networks' layers.

    The exact minimum would be a pseudo-metric of networks: for alpha = 1 independent of operations,
    units and the direction of edges, for alpha < 1 of units and direction only. The computed value
    is an upper bound from several
    starts: symmetric to the last digit, 0 for isomorphic networks, but the triangle inequality can
    fail. For 30 pairs of cells of 7 layers, 8 starts reach the best one-to-one matching in 12 cases
    and 64 starts in 29. It is not negative definite: see `archive.kernels.covariance.spectrum`.

    Preparing costs O(n edges), and the search for a canonical order. A pair costs O(n^3) an
    iteration, about ten iterations a start: milliseconds for 10 layers, most of a second for 100.
    Pairs of wirings are solved once and cached, so that spaces of cells are fast. Choose it as a
    baseline only.

    Args:
        alpha: In (0, 1]: weight of the wiring; the operations have the weight 1 - alpha.
        starts: Number of couplings to start from, >= 1.
        max_layers: Largest number of layers; larger networks raise an error.

    Raises:
        UsageError: An argument is out of range.
    """

    name: ClassVar[str] = "gromov-wasserstein"
    store_pairs: ClassVar[bool] = True

    def __init__(self, alpha: float = 1.0, starts: int = 8, max_layers: int = 128) -> None:
        self.alpha = float(alpha)
        self.starts = starts
        self.max_layers = max_layers
        if not 0 < self.alpha <= 1:
            raise UsageError(f"alpha must be in (0, 1], got {alpha}")

        require_at_least(1, starts=check_whole("starts", starts))
        require_at_least(2, max_layers=check_whole("max_layers", max_layers))
        # A cache of results, so that instances behave as immutable ones; at worst two threads solve
        # the same pair.
        self._known: dict[tuple[str, str], float] = {}

    @property
    def components(self) -> tuple[str, ...]:
        """Return the one component; its name contains alpha where labels count."""
        return (self.name if self.alpha == 1 else f"{self.name}:{self.alpha:g}",)

    @property
    def unnormalised(self) -> int:
        """Return 1: there is no normalised form."""
        return 1

    def prepare(self, architecture: Architecture) -> WiredNetwork:
        """Count hops, in an order of the layers that depends on hops and labels alone."""
        n = len(architecture.layers)
        if n > self.max_layers:
            raise InvalidArchitectureError(
                "the Gromov-Wasserstein distance takes networks "
                f"of at most {self.max_layers} layers, got {n}"
            )

        kinds = ["layer"] * n
        if self.alpha != 1:
            kinds = [f"{layer.op}/{layer.stride}" for layer in architecture.layers]

        order = _canonical_order(architecture, kinds)
        hops = np.ascontiguousarray(_hops(architecture)[np.ix_(order, order)])
        labels = tuple(take(kinds, order))
        shape = hashlib.blake2b(repr(labels).encode() + hops.tobytes(), digest_size=16).hexdigest()
        return WiredNetwork(architecture.key, architecture.space, shape, hops, labels)

    def pairs(self, networks: Sequence[WiredNetwork], pairs: Integers) -> Floats:
        """Solve each pair of distinct wirings once, the smaller shape first."""
        check_one_space(networks)
        distances = np.zeros((1, len(pairs)))
        for column, (i, j) in enumerate(pairs):
            if networks[i].shape != networks[j].shape:
                first, second = sorted(
                    (networks[i], networks[j]), key=lambda network: network.shape
                )
                distances[0, column] = self._recall(first, second)

        return distances

    def _recall(self, first: WiredNetwork, second: WiredNetwork) -> float:
        pair = (first.shape, second.shape)
        distance = self._known.get(pair)
        if distance is None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()

            distance = self._known[pair] = gromov_wasserstein(
                first, second, self.alpha, self.starts
            )

        return distance


def gromov_wasserstein(
    first: WiredNetwork, second: WiredNetwork, alpha: float = 1.0, starts: int = 8
) -> float:
    """Return the distance of one pair, from the best of several starts.

    Args:
        first: The wiring of one network.
        second: The wiring of the other.
        alpha: Weight of the wiring; the labels have the weight 1 - alpha.
        starts: Number of couplings to start from, >= 1.

    Warns:
        GromovWassersteinWarning: The solver of the best coupling did not converge.
    """
    differ = np.array(first.labels)[:, None] != np.array(second.labels)
    mismatch = differ.astype(np.float64)
    bound, coupling = _third_lower_bound(first.hops, second.hops, mismatch, alpha)
    least = np.inf
    converged = False
    for start in _starts(coupling, starts):
        loss, done = _descend(first.hops, second.hops, mismatch, alpha, start)
        if loss < least:
            least = loss
            converged = done

        if least <= bound + ROUNDING:
            converged = True
            break

    if not converged:
        warnings.warn(
            f"Gromov-Wasserstein between {len(first.hops)} and {len(second.hops)} layers stopped "
            f"after {ITERATIONS} iterations; its distance is at most {np.sqrt(max(least, 0.0)):g}",
            GromovWassersteinWarning,
            stacklevel=2,
        )

    return float(np.sqrt(least)) if least > ROUNDING else 0.0


def _canonical_order(architecture: Architecture, kinds: Sequence[str]) -> Integers:
    """Return positions in an order by the kinds of layers and their undirected edges only."""
    # Twins are layers of one kind with the same neighbours. They are interchangeable: numbering
    # them does not change the canonical form, and excludes all other orders of the twins from the
    # search.
    twins: dict[tuple[str, frozenset[int]], int] = {}
    marked = []
    for kind, parents, children in zip(
        kinds, architecture.parents, architecture.children, strict=True
    ):
        twin = (kind, frozenset(parents + children))
        twins[twin] = twins.get(twin, 0) + 1
        marked.append(Layer(f"{kind} {twins[twin]}"))

    both_ways = [*architecture.edges, *map(itemgetter(1, 0), architecture.edges)]
    return np.argsort(canonical.canonical_ranks(marked, both_ways))


def _hops(architecture: Architecture) -> Floats:
    """Return C: (n, n) float64."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import shortest_path

    n = len(architecture.layers)
    edges = np.array(architecture.edges, np.int64).reshape(-1, 2)
    graph = csr_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
    hops = shortest_path(graph, directed=False, unweighted=True)
    return np.where(np.isfinite(hops), hops, float(n))


def _starts(coupling: Floats, count: int) -> Iterator[Floats]:
    """Yield the couplings to start from, lazily."""
    ot = pot()
    n1, n2 = coupling.shape
    rng = np.random.default_rng(0)
    for start in range(count):
        if start == 0:
            yield np.full((n1, n2), 1.0 / (n1 * n2))
        elif start == 1:
            yield coupling
        else:
            vertex = ot.emd(np.full(n1, 1.0 / n1), np.full(n2, 1.0 / n2), rng.random((n1, n2)))
            yield (1.0 - NUDGE) / (n1 * n2) + NUDGE * vertex


def _third_lower_bound(
    first: Floats, second: Floats, mismatch: Floats, alpha: float
) -> tuple[float, Floats]:
    """Return Memoli's third lower bound (squared, labels added) and its coupling (n1, n2).

    min over Z of sum_ij Z_ij (alpha W_2^2(C1_i, C2_j) + (1 - alpha) M_ij), where W_2 is the
    distance on the line of the distances from layer i to all layers and from layer j to all layers.
    """
    ot = pot()
    n1 = len(first)
    n2 = len(second)
    # The quantile functions of uniform weights are constant between the multiples of 1/n1 and 1/n2.
    steps = np.unique(np.concatenate([np.arange(n1 + 1) * n2, np.arange(n2 + 1) * n1]))
    middles = (steps[1:] + steps[:-1]) / 2
    x = np.sort(first, axis=1)[:, (middles // n2).astype(np.int64)]
    y = np.sort(second, axis=1)[:, (middles // n1).astype(np.int64)]
    share = np.diff(steps) / (n1 * n2)
    line = (x**2 @ share)[:, None] + (y**2 @ share)[None] - 2 * (x * share) @ y.T
    cost = alpha * np.maximum(line, 0.0) + (1 - alpha) * mismatch
    coupling, log = ot.emd(np.full(n1, 1.0 / n1), np.full(n2, 1.0 / n2), cost, log=True)
    return float(log["cost"]), coupling


def _descend(
    first: Floats, second: Floats, mismatch: Floats, alpha: float, start: Floats
) -> tuple[float, bool]:
    """Return the final loss of POT's conditional gradient, and whether it converged."""
    ot = pot()
    p = np.full(len(first), 1.0 / len(first))
    q = np.full(len(second), 1.0 / len(second))
    options = {"symmetric": True, "G0": start, "log": True, "max_iter": ITERATIONS}
    if alpha == 1:
        _, log = ot.gromov.gromov_wasserstein(first, second, p, q, "square_loss", **options)
    else:
        _, log = ot.gromov.fused_gromov_wasserstein(
            mismatch, first, second, p, q, "square_loss", alpha=alpha, **options
        )

    # The log has the loss of the start and one entry for each iteration.
    return float(log["loss"][-1]), len(log["loss"]) <= ITERATIONS
