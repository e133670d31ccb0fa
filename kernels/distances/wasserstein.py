"""Wasserstein distance between the layers of two networks: balanced optimal transport.

Nguyen, Le, Yamada, Osborne: Optimal Transport Kernels for Sequential and Parallel Neural
Architecture Search (2021), section 4.1: the baseline BO-OT, optimal transport with the cost of
NASBOT (Kandasamy et al., 2018).

| symbol | meaning                                                                      | shape    |
|--------|------------------------------------------------------------------------------|----------|
| a, b   | weights of the layers, positive, adding up to 1                              | (n,)     |
| M      | label penalties of NASBOT, at most 1 (`distances.penalties`)                 | (n1, n2) |
| C_str  | structural cost of NASBOT: mean difference of path lengths from ip and to op | (n1, n2) |
| Z      | weight moved from layer to layer                                             | (n1, n2) |

    W(G1, G2) = min over Z >= 0 of <Z, min(M, 1) + nu_str C_str>     with  Z 1 = a,  Z^T 1 = b

NASBOT never matches layers of different families: their cost is infinite. Balanced transport must
move every layer, hence the maximum of 1. On cells this is the 0/1 cost between operations.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from archive import runtime
from archive.architecture.graph import Architecture
from archive.architecture.layer_mass import layer_masses
from archive.architecture.operations import vocabulary
from archive.errors import InvalidArchitectureError, NumericalError, UsageError
from archive.kernels.base import PairDistance, check_one_space, solve_on_threads
from archive.kernels.distances.penalties import NU_STR, Penalties, check_weights, penalties
from archive.kernels.packing import pack
from archive.kernels.search.lower_bounds import TransportBound
from archive.values import require_at_least

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Weights = Literal["uniform", "mass"]
Solver = Literal["compiled", "pot"]

PAIRS_A_THREAD = 64
"""Number of pairs below which a second thread costs more than it saves."""


@dataclass(frozen=True, eq=False)
class WeighedLayers:
    """Layers of one network as a distribution; layers of equal label and place are merged.

    Attributes:
        key: The architecture's key.
        space: The architecture's space.
        weights: (n,) float64, positive, adding up to 1.
        labels: (n,) int64, rows of the label penalties.
        places: (n, f) float64, path lengths scaled so that C_str is their L1 distance.
    """

    key: str
    space: str
    weights: Floats
    labels: Integers
    places: Floats


class Wasserstein(PairDistance[WeighedLayers]):
    """Exact balanced optimal transport of one network's layers to another's.

    The ground cost is a pseudo-metric of layers, so each component is a pseudo-metric of networks:
    symmetric, 0 for equal networks, and the triangle inequality holds. Different networks can be at
    distance 0; with uniform weights, those that differ in units only are. It is not negative
    definite in general, so that exp(-beta d^p) may be
    indefinite: see `archive.kernels.covariance.spectrum`.

    Preparing costs O(edges). A pair costs O(n1 n2) for the costs and, in practice, a few pivots a
    layer for each nu_str; all nu_str share one pass. Choose it as the baseline of OTMANN that
    ignores the size of networks: a network and one that repeats each of its layers in parallel are
    close.

    Args:
        nu_str: Weights of the structural cost, each >= 0; one component for each.
        weights: `"uniform"`, equal weights as in tree-Wasserstein, or `"mass"`, shares of the
            computation as in OTMANN; a network without mass has uniform weights.
        solver: `"compiled"`, or `"pot"`: `ot.emd2` of the library POT, pair by pair, as in the
            paper. Both are exact; they differ by rounding and in speed.
        threads: Threads for large blocks; None for all processors available to the process.

    Raises:
        UsageError: An argument is out of range.
    """

    name: ClassVar[str] = "wasserstein"
    store_pairs: ClassVar[bool] = True

    def __init__(
        self,
        nu_str: Iterable[float] = NU_STR,
        weights: Weights = "uniform",
        solver: Solver = "compiled",
        threads: int | None = None,
    ) -> None:
        self.nu_str = check_weights(nu_str)
        self.weights = weights
        self.solver = solver
        if weights not in get_args(Weights):
            raise UsageError(
                f"weights must be one of {', '.join(get_args(Weights))}, got {weights!r}"
            )

        if solver not in get_args(Solver):
            raise UsageError(f"solver must be one of {', '.join(get_args(Solver))}, got {solver!r}")

        require_at_least(1, threads=threads)
        self.threads = threads or runtime.count_cores()

    @property
    def components(self) -> tuple[str, ...]:
        """Return `wasserstein:NU` for each nu_str."""
        return tuple(f"{self.name}:{nu:g}" for nu in self.nu_str)

    @property
    def unnormalised(self) -> int:
        """Return the number of nu_str: distances of normalised weights need no normalised form."""
        return len(self.nu_str)

    def lower_bound(self, space: str) -> TransportBound:
        """Return equation (1) of `archive.kernels.search.lower_bounds`."""
        table = _penalties(space)
        return TransportBound("weights", np.minimum(table.matrix, 1.0), table.family, 0.5)

    def prepare(self, architecture: Architecture) -> WeighedLayers:
        """Compute weights and path lengths, and merge layers of equal label and place."""
        from archive.kernels.distances.path_lengths import path_lengths

        table = _penalties(architecture.space)
        labels = table.rows(architecture.layers)
        counted = table.counted[labels]
        # Three path lengths in each of two directions.
        places = np.hstack(path_lengths(architecture, counted)) / (6 * counted.shape[1])
        # The order of the merged layers depends on labels and places alone, hence on no
        # relabelling.
        distinct, which = np.unique(np.column_stack([labels, places]), axis=0, return_inverse=True)
        weights = np.bincount(which.ravel(), weights=self._weigh(architecture))
        weighed = weights > 0
        return WeighedLayers(
            architecture.key,
            architecture.space,
            weights[weighed] / weights.sum(),
            distinct[weighed, 0].astype(np.int64),
            np.ascontiguousarray(distinct[weighed, 1:]),
        )

    def _weigh(self, architecture: Architecture) -> Floats:
        if self.weights == "mass":
            masses = np.array(layer_masses(architecture))
            if not np.isfinite(masses.sum()):
                raise InvalidArchitectureError("the mass of the network is not finite")

            if masses.any():
                return masses

        return np.ones(len(architecture.layers))

    def pairs(self, networks: Sequence[WeighedLayers], pairs: Integers) -> Floats:
        """Solve the pairs in compiled batches, on threads for many pairs, or one by one by POT."""
        if not len(pairs):
            return np.zeros((len(self.nu_str), 0))

        check_one_space(networks)
        # The network of the smaller key is first, so that no digit depends on the order of the
        # arguments.
        keys = np.array([network.key for network in networks])
        swapped = keys[pairs[:, 0]] > keys[pairs[:, 1]]
        ordered = np.where(swapped[:, None], pairs[:, ::-1], pairs)
        if self.solver == "pot":
            distances = []
            for i, j in ordered:
                distances.append(transport_by_pot(networks[i], networks[j], self.nu_str))

            return np.array(distances).T

        batch = WassersteinBatch(networks, self.nu_str)
        return solve_on_threads(
            batch.solve, np.ascontiguousarray(ordered), self.threads, PAIRS_A_THREAD
        )


class WassersteinBatch:
    """Concatenated arrays of prepared networks: the input of OTMANN's compiled solver.

    That solver may leave weight unmatched at a cost of 1 on either side. With costs scaled to at
    most 1 it matches all weight, as both sides weigh 1 in total. The scale is a power of 64,
    hence of two: division by it is exact, so no digit of a distance depends on the other networks of
    the batch.
    """

    def __init__(self, networks: Sequence[WeighedLayers], nu_str: Sequence[float]) -> None:
        self.order = np.argsort(nu_str, kind="stable")
        packed = pack(networks)
        places = packed["places"]
        costs = 1.0 + max(nu_str) * float(np.ptp(places, axis=0).sum())
        self.scale = 64.0 ** math.ceil(math.log(costs, 64))
        self.nu_str = np.array(nu_str)[self.order] / self.scale
        self.costs = np.minimum(_penalties(networks[0].space).matrix, 1.0) / self.scale
        self.places = places
        self.weights = packed["weights"]
        self.labels = packed["labels"]
        ends = packed["weights.starts"]
        self.blocks = np.ascontiguousarray(np.stack([ends[:-1], ends[1:]], axis=1))

    def solve(self, pairs: Integers) -> Floats:
        """Return (k, q) distances."""
        from archive.kernels.distances.transport import solve

        distances = np.empty((len(self.nu_str), len(pairs)))
        distances[self.order] = self.scale * solve(
            pairs, self.weights, self.labels, self.places, self.blocks, self.costs, self.nu_str
        )
        return distances


def transport_by_pot(
    first: WeighedLayers, second: WeighedLayers, nu_str: Sequence[float]
) -> list[float]:
    """Return the distance of one pair for each nu_str, by `ot.emd2`.

    Raises:
        NumericalError: POT did not converge.
    """
    ot = pot()
    label = np.minimum(_penalties(first.space).matrix, 1.0)[np.ix_(first.labels, second.labels)]
    structure = np.abs(first.places[:, None] - second.places[None]).sum(axis=2)
    distances = []
    for nu in nu_str:
        cost, log = ot.emd2(
            first.weights, second.weights, label + nu * structure, numItermax=10_000_000, log=True
        )
        if log["warning"]:
            raise NumericalError(f"optimal transport by POT: {log['warning']}")

        distances.append(max(float(cost), 0.0))

    return distances


def _penalties(space: str) -> Penalties:
    return penalties(vocabulary(space))


@functools.cache
def pot() -> Any:
    """Return the package `ot`.

    Some of its docstrings have invalid escapes, of which the interpreter warns where no bytecode is
    cached. The user of a distance cannot act on these warnings, so they are ignored.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        import ot

    return ot
