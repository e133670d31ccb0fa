"""OTMANN: NASBOT's optimal transport distance between neural architectures.

Kandasamy, Neiswanger, Schneider, Poczos, Xing: Neural Architecture Search with Bayesian
Optimisation and Optimal Transport (2018), program (3), theorem 3 and appendix A.3.

| symbol | meaning                                                                      | shape        |
|--------|------------------------------------------------------------------------------|--------------|
| lm     | layer masses (`archive.architecture.layer_mass`)                             | (n,)         |
| M      | label penalties (`archive.kernels.distances.penalties`)                      | (labels,) x2 |
| delta  | path lengths from ip and to op (`archive.kernels.distances.path_lengths`)    | (n, f)       |
| C_str  | mean over groups of 1/6 sum over {sp, lp, rw} x {ip, op} of |delta - delta'| | (n1, n2)     |
| Z      | mass matched between layers                                                  | (n1, n2)     |
| tm     | total mass of a network                                                      | scalar       |

    d(G1, G2) = min over Z of  <Z, M + nu_str C_str> + unmatched mass,      normalised: d / (tm(G1) + tm(G2))
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from archive import runtime
from archive.architecture.graph import Architecture
from archive.architecture.layer_mass import layer_masses
from archive.architecture.operations import vocabulary
from archive.errors import InvalidArchitectureError, UsageError
from archive.kernels.base import PairDistance, check_one_space, solve_on_threads
from archive.kernels.covariance.base import Covariance, nasbot_covariance
from archive.kernels.distances.penalties import NU_STR, Penalties, check_weights, penalties
from archive.kernels.packing import pack
from archive.kernels.search.lower_bounds import TransportBound
from archive.values import require_at_least

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Variant = Literal["appendix", "main_text", "code"]

MASSES: dict[str, dict[str, float]] = {
    "appendix": {"fc_factor": 0.1, "res_factor": 2.0, "floor": 0.0},
    "main_text": {"fc_factor": 1.0, "res_factor": 2.0, "floor": 0.0},
    "code": {"fc_factor": 0.1, "res_factor": 1.0, "floor": 100.0},
}
PAIRS_A_THREAD = 64
"""Number of pairs below which a second thread costs more than it saves."""


@dataclass(frozen=True, slots=True)
class LayersWithMass:
    """Layers of one network that have mass, sorted by family of labels.

    Attributes:
        key: The architecture's key.
        space: The architecture's space.
        masses: (n,) float64, all positive.
        labels: (n,) int64, rows of the label penalties.
        places: (n, f) float64, path lengths scaled so that C_str is their L1 distance.
        blocks: (families + 1,) int64, position of the first layer of each family.
        total: Sum of the masses.
    """

    key: str
    space: str
    masses: Floats
    labels: Integers
    places: Floats
    blocks: Integers
    total: float


class OTMANN(PairDistance[LayersWithMass]):
    """Exact optimal transport of one network's computation to another's.

    With the penalties of every variant the unnormalised distance is a pseudo-metric: symmetric, 0
    for equal networks, and the triangle inequality holds (theorem 3); different networks can be at
    distance 0 (the paper's figure 3). The normalised distance is symmetric and in [0, 1] but
    violates the triangle inequality. Neither is known to be negative definite, so that exp(-beta
    d^p) may be indefinite: see `archive.kernels.covariance.spectrum`.

    Preparing costs O(edges). A pair costs O(n1 n2) for the costs and, in practice, a few pivots a
    layer for each nu_str; all nu_str share one pass. Choose it for networks of differing size and
    wiring with units in their layers.

    Args:
        variant: `"appendix"` (A.3: fc masses x 0.1, C_str averaged over groups of layers),
            `"main_text"` (section 3: neither) or `"code"` (the authors' code: other penalties, res
            masses not doubled, masses of input, output and decision layers at least 100).
        nu_str: Weights of the structural cost, each >= 0; one component of either kind for each.
        threads: Threads for large blocks; None for all processors available to the process.

    Raises:
        UsageError: An argument is out of range.
    """

    name: ClassVar[str] = "otmann"
    store_pairs: ClassVar[bool] = True

    def __init__(
        self,
        variant: Variant = "appendix",
        nu_str: Iterable[float] = NU_STR,
        threads: int | None = None,
    ) -> None:
        self.variant = variant
        self.nu_str = check_weights(nu_str)
        if variant not in get_args(Variant):
            raise UsageError(
                f"variant must be one of {', '.join(get_args(Variant))}, got {variant!r}"
            )

        require_at_least(1, threads=threads)
        self.threads = threads or runtime.count_cores()

    @property
    def components(self) -> tuple[str, ...]:
        """Return `otmann:NU` for each nu_str, then `otmann_normalised:NU`."""
        plain = [f"otmann:{nu:g}" for nu in self.nu_str]
        normalised = [f"otmann_normalised:{nu:g}" for nu in self.nu_str]
        return (*plain, *normalised)

    @property
    def unnormalised(self) -> int:
        """Return the number of nu_str."""
        return len(self.nu_str)

    def default_covariance(self) -> Covariance:
        """Return NASBOT's covariance, eq. (4)."""
        return nasbot_covariance(len(self.nu_str))

    def lower_bound(self, space: str) -> TransportBound:
        """Return equation (1) of `archive.kernels.search.lower_bounds`."""
        table = self.penalties_of(space)
        return TransportBound("masses", table.matrix, table.family, 1.0)

    def prepare(self, architecture: Architecture) -> LayersWithMass:
        """Compute masses and path lengths, and sort by family.

        Layers without mass cost nothing and are left out.
        """
        from archive.kernels.distances.path_lengths import path_lengths

        table = self.penalties_of(architecture.space)
        labels = table.rows(architecture.layers)
        masses = np.array(layer_masses(architecture, **MASSES[self.variant]))
        if not np.isfinite(masses).all():
            raise InvalidArchitectureError(
                "the mass of a layer is not finite", int(np.argmin(np.isfinite(masses)))
            )

        counted = table.counted[labels]
        places = np.hstack(path_lengths(architecture, counted)) / (6 * counted.shape[1])
        order = _by_family(table.family[labels], masses)
        blocks = np.searchsorted(
            table.family[labels[order]], np.append(np.unique(table.family), len(table.family))
        )
        return LayersWithMass(
            architecture.key,
            architecture.space,
            masses[order],
            labels[order],
            places[order],
            blocks.astype(np.int64),
            float(masses.sum()),
        )

    def order(self, architecture: Architecture) -> Integers:
        """Return the positions of the layers with mass, in the order of `LayersWithMass`."""
        table = self.penalties_of(architecture.space)
        masses = np.array(layer_masses(architecture, **MASSES[self.variant]))
        return _by_family(table.family[table.rows(architecture.layers)], masses)

    def pairs(self, networks: Sequence[LayersWithMass], pairs: Integers) -> Floats:
        """Solve the pairs in compiled batches, on several threads for many pairs."""
        k = len(self.nu_str)
        q = len(pairs)
        if not q:
            return np.zeros((2 * k, 0))

        check_one_space(networks)
        # The network of the smaller key is first, so that no digit depends on the order of the
        # arguments.
        keys = np.array([network.key for network in networks])
        pairs = np.where((keys[pairs[:, 0]] > keys[pairs[:, 1]])[:, None], pairs[:, ::-1], pairs)
        ascending = np.argsort(self.nu_str, kind="stable")
        batch = OtmannBatch(
            networks, self.penalties_of(networks[0].space), np.array(self.nu_str)[ascending]
        )
        unnormalised = np.empty((k, q))
        unnormalised[ascending] = solve_on_threads(batch.solve, pairs, self.threads, PAIRS_A_THREAD)
        totals = np.array([network.total for network in networks])
        both = totals[pairs[:, 0]] + totals[pairs[:, 1]]
        # Two networks without mass are at distance 0, normalised too.
        normalised = unnormalised / np.where(both > 0, both, 1.0)
        return np.concatenate([unnormalised, np.minimum(normalised, 1.0)])

    def penalties_of(self, space: str) -> Penalties:
        """Return the label penalties of a space."""
        return penalties(
            vocabulary(space),
            released_code=self.variant == "code",
            groups=self.variant != "main_text",
        )


class OtmannBatch:
    """Concatenated arrays of prepared networks: the input of the compiled solver."""

    def __init__(
        self, networks: Sequence[LayersWithMass], table: Penalties, nu_str: Floats
    ) -> None:
        packed = pack(networks)
        self.masses = packed["masses"]
        self.labels = packed["labels"]
        self.places = packed["places"]
        starts = packed["masses.starts"][:-1, None]
        self.blocks = packed["blocks"].reshape(len(networks), -1) + starts
        self.penalties = table.matrix
        self.nu_str = nu_str

    def solve(self, pairs: Integers) -> Floats:
        """Return (k, q) unnormalised distances."""
        from archive.kernels.distances.transport import solve

        return solve(
            pairs, self.masses, self.labels, self.places, self.blocks, self.penalties, self.nu_str
        )


def _by_family(families: Integers, masses: Floats) -> Integers:
    """Return the positions of the layers with mass, families in a row."""
    order = np.argsort(families, kind="stable")
    return order[masses[order] > 0]
