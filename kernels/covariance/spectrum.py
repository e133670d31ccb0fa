"""Spectral repair of covariance matrices that are not positive semi-definite.

exp(-beta d^p) is a covariance for all beta exactly when d^p is of negative type. This is not proven
for OTMANN, and it is false for the edit distance on cells. The repair: with K = V diag(s) V^T, keep
the positive part of s. The result is the nearest positive semi-definite matrix in Frobenius norm
(Higham 1988) and, unlike a constant added to the diagonal, it leaves the positive eigenvalues and
their eigenvectors unchanged. The amount of the change is reported.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from archive.errors import NumericalError

Floats = NDArray[np.float64]

TOLERANCE = 1e-14
"""Tolerance of rounding: eigenvalues above -TOLERANCE * n * (largest) count as zero."""


class IndefiniteKernelWarning(UserWarning):
    """A covariance matrix had negative eigenvalues and was repaired; `repair` holds the amounts."""

    def __init__(self, repair: Repair) -> None:
        self.repair = repair
        super().__init__(
            f"{repair.negative} of {len(repair.matrix)} eigenvalues of a covariance were negative, down to "
            f"{repair.smallest:.3g}; setting them to 0 changed the matrix by {repair.amount:.3g} of its norm"
        )


@dataclass(frozen=True, eq=False)
class Repair:
    """A positive semi-definite matrix and its distance from the original.

    Attributes:
        matrix: (n, n) float64, symmetric positive semi-definite; the original where that is
            positive semi-definite.
        smallest: Smallest eigenvalue of the original.
        negative: Number of eigenvalues of the original that are negative beyond rounding.
        amount: Frobenius norm of the change, relative to the original's.
        projection: (n, n) float64, projection onto the kept eigenvectors; None where nothing
            changed. Covariances with other networks must be projected, too: predictions would be
            inconsistent with the repaired matrix.
    """

    matrix: Floats
    smallest: float
    negative: int
    amount: float
    projection: Floats | None = None


def repair(matrix: Floats, *, warn: bool = True) -> Repair:
    """Make a symmetric matrix positive semi-definite by clipping its negative eigenvalues; O(n^3).

    Args:
        matrix: (n, n) float64.
        warn: Whether to warn of a change by an `IndefiniteKernelWarning`.

    Raises:
        NumericalError: The matrix is not square, not symmetric or not finite.
    """
    _check(matrix)
    if not len(matrix):
        return Repair(matrix, 0.0, 0, 0.0)

    values, vectors = np.linalg.eigh(matrix)
    negative = int((values < -TOLERANCE * len(values) * np.abs(values).max()).sum())
    if not negative:
        return Repair(matrix, float(values[0]), 0, 0.0)

    kept = vectors[:, negative:]
    sound = (kept * np.maximum(values[negative:], 0.0)) @ kept.T
    amount = float(np.linalg.norm(values[:negative]) / np.linalg.norm(values))
    repaired = Repair(0.5 * (sound + sound.T), float(values[0]), negative, amount, kept @ kept.T)
    if warn:
        warnings.warn(IndefiniteKernelWarning(repaired), stacklevel=2)

    return repaired


def surely_positive_semidefinite(matrix: Floats) -> bool:
    """Return True only where `repair` would change nothing, at a tenth of its cost or less.

    A Cholesky factor of K + t I exists where no eigenvalue is below -t; t is `TOLERANCE` n times
    1^T K 1 / n, a lower bound of the largest eigenvalue that is close for covariances with positive
    elements. False is undecided: use `repair`.

    Args:
        matrix: (n, n) float64, symmetric.
    """
    n = len(matrix)
    if not n:
        return True

    shifted = matrix.copy()
    shifted[np.diag_indices(n)] += TOLERANCE * max(float(matrix.sum()), 0.0)
    try:
        factor = np.linalg.cholesky(shifted)
    except np.linalg.LinAlgError:
        return False

    return bool(np.isfinite(factor.diagonal().sum()))


def _check(matrix: Floats) -> None:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise NumericalError(f"a covariance matrix must be square, got shape {matrix.shape}")

    if not np.isfinite(matrix).all():
        raise NumericalError(
            f"a {len(matrix)} x {len(matrix)} covariance has elements that are not finite"
        )

    if not np.allclose(matrix, matrix.T, rtol=1e-10, atol=1e-12 * np.abs(matrix).max(initial=0.0)):
        raise NumericalError(
            f"a covariance matrix must be symmetric, got {np.abs(matrix - matrix.T).max():.3g} off"
        )
