"""k-determinantal point processes: subsets of k items that repel each other, sampled exactly.

Notation (Kulesza & Taskar, 2011 and 2012; tree-Wasserstein, section 3.2):

    symbol   meaning                                                          shape
    n, k     items, items of a subset                                         scalars
    K        similarity of the items, symmetric positive semi-definite        (n, n)
    lam, V   positive eigenvalues of K and their vectors, r = rank of K       (r,), (n, r)
    e_l      elementary symmetric polynomial of degree l
    E_lm     e_l(lam_1 .. lam_m)                                              (k + 1, r + 1)

    P(A) = det(K_A) / e_k(lam),  |A| = k                                      eq. (10) of tree-Wasserstein
    phase 1    take eigenvector m = r .. 1 with probability lam_m E_(l-1)(m-1) / E_lm, l still to be taken
    phase 2    take item i with probability |V_i|^2 / l, then project V onto the complement of its direction

E_lm = E_l(m-1) + lam_m E_(l-1)(m-1) overflows or underflows at some hundred items, so that its
logarithm is stored. Phase 2 updates the squared lengths of V's rows by Gram-Schmidt instead of
building a new basis after each item: O(n k^2) in all, as the paper states, where the textbook's
algorithm takes O(n k^3). Decomposing K is O(n^3), once for all samples.

Where k exceeds the rank r every determinant is 0 and eq. (10) is undefined. The limit of K + eps I
for eps to 0 is used, P(A) = e_r(lam of K_A) / (e_r(lam) C(n - r, k - r)): r items by the r-DPP, the
others uniformly.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import final

import numpy as np
from scipy.special import gammaln

from archive.errors import NumericalError, UsageError
from archive.kernels.base import Floats

ROUNDING = 1e-14
"""Fraction of the largest eigenvalue, times n, below which an eigenvalue is 0 up to rounding."""
NEGATIVE = 1e-8
"""Fraction of the largest eigenvalue above which a negative one is no rounding error."""


@final
class KDPP:
    """The k-DPP of a similarity matrix; immutable.

    Args:
        similarity: (n, n) float64, symmetric positive semi-definite: K. See
            `archive.kernels.covariance.spectrum.repair`.
        k: Size of the subsets, 0 to n.

    Attributes:
        k: Size of the subsets.
        rank: r.

    Raises:
        UsageError: k is out of range.
        NumericalError: K is not square, finite, symmetric and positive semi-definite.
    """

    def __init__(self, similarity: Floats, k: int) -> None:
        self._similarity = _check(similarity)
        n = len(self._similarity)
        if not 0 <= k <= n:
            raise UsageError(f"k must be between 0 and the number of items, {n}, got {k}")

        self.k = k
        self._values, self._vectors = _spectrum(self._similarity)
        self.rank = len(self._values)

    def sample(self, rng: np.random.Generator) -> tuple[int, ...]:
        """Draw one subset: k positions, ascending."""
        selected = _project(self._vectors[:, self._choose_vectors(rng)], rng)
        if self.k > self.rank:
            others = np.setdiff1d(np.arange(len(self._similarity)), selected)
            selected = [*selected, *rng.choice(others, self.k - self.rank, replace=False).tolist()]

        return tuple(sorted(selected))

    def log_probability(self, subset: Iterable[int]) -> float:
        """Return log P(A): -inf for a subset of another size or of determinant 0.

        Raises:
            UsageError: A position is out of range or occurs twice.
        """
        items = list(subset)
        if len(set(items)) < len(items) or not all(
            0 <= item < len(self._similarity) for item in items
        ):
            raise UsageError(
                f"subset must hold distinct positions below {len(self._similarity)}, got {items}"
            )

        if len(items) != self.k:
            return -np.inf

        part = self._similarity[np.ix_(items, items)]
        if self.k <= self.rank:
            sign, log_determinant = np.linalg.slogdet(part)
            return (
                float(log_determinant - self._log_polynomials[self.k, -1]) if sign > 0 else -np.inf
            )

        n = len(self._similarity)
        r = self.rank
        values = np.clip(np.linalg.eigvalsh(part), 0.0, None)
        ways = gammaln(n - r + 1) - gammaln(self.k - r + 1) - gammaln(n - self.k + 1)
        return float(log_elementary(values, r)[r, -1] - self._log_polynomials[r, -1] - ways)

    @cached_property
    def _log_polynomials(self) -> Floats:
        return log_elementary(self._values, min(self.k, self.rank))

    def _choose_vectors(self, rng: np.random.Generator) -> list[int]:
        logs = self._log_polynomials
        log_values = np.log(self._values)
        log_uniform = -rng.standard_exponential(self.rank)
        missing = min(self.k, self.rank)
        selected = []
        for m in range(self.rank, 0, -1):
            if not missing:
                break

            log_probability = log_values[m - 1] + logs[missing - 1, m - 1] - logs[missing, m]
            # Where all remaining vectors must be taken, the probability is 1 up to rounding.
            if m == missing or log_uniform[m - 1] < log_probability:
                selected.append(m - 1)
                missing -= 1

        return selected


def log_elementary(values: Floats, k: int) -> Floats:
    """Return the logarithms of the elementary symmetric polynomials e_0 .. e_k.

    The polynomials are of the first 0 .. r values.

    Args:
        values: (r,) float64, not negative.
        k: Highest degree.

    Returns:
        (k + 1, r + 1) float64, -inf for 0.
    """
    logs = np.full((k + 1, len(values) + 1), -np.inf)
    logs[0] = 0.0
    with np.errstate(divide="ignore"):
        log_values = np.log(values)

    for degree in range(1, k + 1):
        logs[degree, 1:] = np.logaddexp.accumulate(log_values + logs[degree - 1, :-1])

    return logs


def _project(vectors: Floats, rng: np.random.Generator) -> list[int]:
    """Sample the projection DPP of orthonormal columns, (n, k): k items."""
    n, k = vectors.shape
    lengths = np.einsum("nk,nk->n", vectors, vectors)
    taken = np.zeros((n, k))
    items: list[int] = []
    for step in range(k):
        weights = np.cumsum(np.maximum(lengths, 0.0))
        item = min(int(np.searchsorted(weights, rng.random() * weights[-1], side="right")), n - 1)
        direction = vectors @ vectors[item] - taken[:, :step] @ taken[item, :step]
        taken[:, step] = direction / np.sqrt(direction[item])
        lengths = lengths - np.square(taken[:, step])
        items.append(item)
        lengths[items] = 0.0

    return items


def _check(similarity: Floats) -> Floats:
    matrix = np.asarray(similarity, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise NumericalError(f"similarity must be a square matrix, got shape {matrix.shape}")

    if not np.isfinite(matrix).all():
        raise NumericalError(f"similarity must be finite, got {matrix[~np.isfinite(matrix)][0]}")

    asymmetry = float(np.abs(matrix - matrix.T).max(initial=0.0))
    if asymmetry > 1e-8 * np.abs(matrix).max(initial=0.0):
        raise NumericalError(f"similarity must be symmetric, got elements {asymmetry:.3g} apart")

    return 0.5 * (matrix + matrix.T)


def _spectrum(matrix: Floats) -> tuple[Floats, Floats]:
    if not len(matrix):
        return np.zeros(0), np.zeros((0, 0))

    values, vectors = np.linalg.eigh(matrix)
    largest = float(np.abs(values).max())
    if values[0] < -NEGATIVE * largest:
        raise NumericalError(
            f"similarity must be positive semi-definite, got an eigenvalue of {values[0]:.3g}"
        )

    kept = values > ROUNDING * len(matrix) * largest
    return values[kept], vectors[:, kept]
