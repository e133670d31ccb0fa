"""Bourgain embedding: a Euclidean approximation of a metric, with a valid Gaussian kernel.

Jin, Song, Hu: Efficient Neural Architecture Search with Network Morphism (2018), equation (2) and
theorem 2.
Bourgain: On Lipschitz embedding of finite metric spaces in Hilbert space (1985). Linial, London,
Rabinovich: The geometry of graphs and some of its algorithmic applications (1995): the
algorithm.

| symbol | meaning                                                                         | shape  |
|--------|---------------------------------------------------------------------------------|--------|
| d      | a metric between the n networks that the embedding is made of                   | (n, n) |
| S_c    | reference sets: subsets of the n networks                                       | k sets |
| f      | f_c(x) = min over s in S_c of d(x, s)                                           | (k,)   |
| rho    | rho(x, y) = |f(x) - f(y)| / sqrt(k), Euclidean                                  | scalar |
| K      | exp(-gamma rho^2); gamma = 1 is eq. (2)                                         | (m, n) |

The sizes of the sets are 1, 2, 4, … up to 2^ceil(log2(n) - 1) < n, with ceil(ln n) sets of each
size, drawn without replacement from a generator of fixed seed: the same distances give the same
embedding. The authors' code intends these numbers, but decrements its repeats in one loop too many,
so that it draws hardly any large sets; it also predicts new networks from exp(-d^2), which belongs
to another kernel. Its kernel of the observed networks, with gamma = 1 over the number of
coordinates, is this one.

- Each coordinate is 1-Lipschitz in x for a metric d, and rho averages their squares: 0 <= rho <= d.
- rho >= d / D, where the distortion D is O(log n) with high probability (Linial, London,
  Rabinovich, theorem 3.2).
- Equal distances to all sets would give rho = 0 for two networks with d > 0. Random sets leave such
  pairs, so a set of one network is added for each of them. Hence rho is a metric on the n networks,
  and K strictly positive definite on distinct ones, as theorem 2 says; up to rounding, as for any
  Gaussian kernel.
- A network outside the n has its coordinates from its distances to the n. K is the Gaussian kernel
  of points in a Euclidean space, so K of any networks together, old and new, is positive
  semi-definite for every d.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from archive.errors import NumericalError, UsageError
from archive.values import require_at_least

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SEED = 123
ROUNDING = 1e-9
"""Tolerance of symmetry and of the zero diagonal, as a share of the largest distance."""


@dataclass(frozen=True, eq=False)
class Bourgain:
    """Embedding of n networks, and of others with known distances to these. Immutable.

    `fit` constructs it, in O(n^2) for the check of the distances and O(n log^2 n) members of sets;
    embedding m networks costs O(m n log n). The embedding depends on the n networks: a further
    observation requires another fit.

    Attributes:
        sets: Reference sets, each of ascending positions among the n networks.
        coordinates: (n, k) float64, f of the n networks.
    """

    sets: tuple[Integers, ...]
    coordinates: Floats

    @classmethod
    def fit(cls, distances: Floats, seed: int = SEED, repeats: int | None = None) -> Bourgain:
        """Draw the reference sets of n networks.

        Args:
            distances: (n, n) float64, symmetric, 0 on the diagonal. For n = 0 the embedding has no
                dimension, and all kernels are 1; for n = 1 the one coordinate is the distance to
                that network.
            seed: Seed of the random sets.
            repeats: Sets of each size; None means ceil(ln n). The cost is proportional; more sets
                reduce the variance: with 20, a Gaussian process on 100 cells of either NAS-Bench
                table ranks other cells better.

        Raises:
            NumericalError: The matrix is not square, finite, symmetric, never negative and 0 on the
                diagonal.
            UsageError: `repeats` is below 1.
        """
        require_at_least(1, repeats=repeats)
        _check(distances)
        sets = _random_sets(len(distances), repeats, np.random.default_rng(seed))
        coordinates = _nearest(distances, sets)
        added = _separators(distances, coordinates)
        return cls((*sets, *added), np.hstack([coordinates, _nearest(distances, added)]))

    def embed(self, distances: Floats) -> Floats:
        """Return f of other networks.

        Args:
            distances: (m, n) float64, from each of them to the n networks of `fit`, in their order.

        Returns:
            (m, k) float64.

        Raises:
            UsageError: The number of columns is not n.
            NumericalError: The distances are not finite and >= 0.
        """
        n = len(self.coordinates)
        if distances.ndim != 2 or distances.shape[1] != n:
            raise UsageError(f"distances must have shape (m, {n}), got {distances.shape}")

        if not (np.isfinite(distances).all() and (distances >= 0).all()):
            raise NumericalError("distances to embed must be finite and >= 0")

        return _nearest(distances, self.sets)

    def distances(self, first: Floats | None = None, second: Floats | None = None) -> Floats:
        """Return rho.

        Args:
            first: (m, k) coordinates; None means the n networks.
            second: (m', k) coordinates; None means the n networks.

        Returns:
            (m, m') float64.
        """
        return np.sqrt(self._squares(first, second))

    def kernel(
        self, first: Floats | None = None, second: Floats | None = None, gamma: float = 1.0
    ) -> Floats:
        """Return K = exp(-gamma rho^2).

        Args:
            first: (m, k) coordinates; None means the n networks.
            second: (m', k) coordinates; None means the n networks.
            gamma: Positive semi-definite for every gamma >= 0.

        Returns:
            (m, m') float64 in [0, 1].

        Raises:
            UsageError: gamma is negative or not finite.
        """
        if not 0 <= gamma < np.inf:
            raise UsageError(f"gamma must be a finite number >= 0, got {gamma}")

        return np.exp(-gamma * self._squares(first, second))

    def distortion(self, distances: Floats) -> float:
        """Return D, the largest d / rho over the pairs of the n networks with d > 0.

        1 without such pairs.

        Args:
            distances: (n, n) float64, as passed to `fit`.
        """
        apart = distances > 0
        return float(np.max(distances[apart] / self.distances()[apart], initial=1.0))

    def _squares(self, first: Floats | None, second: Floats | None) -> Floats:
        from scipy.spatial.distance import cdist

        rows = self.coordinates if first is None else first
        columns = self.coordinates if second is None else second
        if not self.sets:
            return np.zeros((len(rows), len(columns)))

        # By differences: |x|^2 + |y|^2 - 2xy cancels to noise for close networks.
        squares: Floats = cdist(rows, columns, "sqeuclidean")
        return squares / len(self.sets)


def _random_sets(n: int, repeats: int | None, rng: np.random.Generator) -> tuple[Integers, ...]:
    if n < 2:
        return (np.zeros(1, np.int64),) * n

    sizes = [2**power for power in range((n - 1).bit_length())]
    repeats = repeats or int(np.ceil(np.log(n)))
    sets = []
    for size in sizes:
        for _ in range(repeats):
            sets.append(np.sort(rng.choice(n, size, replace=False)))

    return tuple(sets)


def _separators(distances: Floats, coordinates: Floats) -> tuple[Integers, ...]:
    """Return a set of one network for each pair at d > 0 with equal coordinates."""
    _, group = np.unique(coordinates, axis=0, return_inverse=True)
    group = group.ravel()
    added = []
    for number in np.flatnonzero(np.bincount(group, minlength=1) > 1):
        left = np.flatnonzero(group == number)
        # The set of a network separates it from all networks at d > 0; those at d = 0 are the same
        # network.
        while (distances[left[0], left[1:]] > 0).any():
            added.append(left[:1])
            left = left[1:][distances[left[0], left[1:]] > 0]

    return tuple(added)


def _nearest(distances: Floats, sets: tuple[Integers, ...]) -> Floats:
    coordinates = np.empty((len(distances), len(sets)))
    for c, members in enumerate(sets):
        coordinates[:, c] = distances[:, members].min(axis=1)

    return coordinates


def _check(distances: Floats) -> None:
    if distances.ndim != 2 or distances.shape[0] != distances.shape[1]:
        raise NumericalError(f"distances must be square, got shape {distances.shape}")

    if not np.isfinite(distances).all():
        raise NumericalError(f"{len(distances)} x {len(distances)} distances are not all finite")

    if (distances < 0).any():
        raise NumericalError(f"distances must be >= 0, got {distances.min():.3g}")

    slack = ROUNDING * distances.max(initial=0.0)
    if np.abs(np.diag(distances)).max(initial=0.0) > slack:
        raise NumericalError(
            f"a network must be at distance 0 from itself, got {np.diag(distances).max():.3g}"
        )

    if np.abs(distances - distances.T).max(initial=0.0) > slack:
        raise NumericalError(
            f"distances must be symmetric, got {np.abs(distances - distances.T).max():.3g} off"
        )
