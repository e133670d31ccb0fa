"""What to do when a matrix of covariances is not positive semi-definite.

exp(-beta d^p) is a covariance for all beta exactly when d^p is of negative type, which no one has shown of OTMANN or
the edit distance. The repair here is the spectral one: with K = V diag(s) V^T, keep the positive part of s. It is the
nearest positive semi-definite matrix in Frobenius norm (Higham 1988) and, unlike adding a constant to the diagonal, it
leaves the directions that were sound as they are. What was added is reported, never hidden.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from archive.errors import NumericalError

Floats = NDArray[np.float64]

# Eigenvalues above -TOLERANCE * (largest) * n are zero up to rounding.
TOLERANCE = 1e-14


class IndefiniteKernelWarning(UserWarning):
    """A covariance matrix had negative eigenvalues and was repaired; `repair` has the amounts as attributes."""

    def __init__(self, repair: Repair) -> None:
        """Keep the repair beside the message."""
        self.repair = repair
        super().__init__(
            f"{repair.negative} of {len(repair.matrix)} eigenvalues of a covariance were negative, down to "
            f"{repair.smallest:.3g}; setting them to 0 changed the matrix by {repair.amount:.3g} of its norm"
        )


@dataclass(frozen=True, eq=False)
class Repair:
    """A positive semi-definite matrix and how far it is from the given one.

    Attributes:
        matrix: (n, n) float64, symmetric positive semi-definite; the given matrix where that was sound.
        smallest: Smallest eigenvalue of the given matrix.
        negative: How many eigenvalues were negative beyond rounding.
        amount: Frobenius norm of the change over that of the given matrix.
        projection: (n, n) float64, onto the directions that were kept; None where nothing changed.
    """

    matrix: Floats
    smallest: float
    negative: int
    amount: float
    projection: Floats | None = None

    def project(self, cross: Floats) -> Floats:
        """Return (n, m) covariances with other networks, restricted to the directions that were kept.

        Training on a repaired matrix and predicting from raw covariances would contradict each other.
        """
        return cross if self.projection is None else np.asarray(self.projection @ cross)


def repair(matrix: Floats, *, warn: bool = True) -> Repair:
    """Make a symmetric matrix positive semi-definite by clipping its negative eigenvalues; O(n^3).

    Args:
        matrix: (n, n) float64.
        warn: Whether a change raises an `IndefiniteKernelWarning`.

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


def is_positive_semidefinite(matrix: Floats) -> bool:
    """Return whether no eigenvalue of a symmetric matrix is negative beyond rounding; O(n^3)."""
    return repair(matrix, warn=False).negative == 0


def _check(matrix: Floats) -> None:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise NumericalError(f"a covariance matrix must be square, got shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise NumericalError(f"a {len(matrix)} x {len(matrix)} covariance has elements that are not finite")
    if not np.allclose(matrix, matrix.T, rtol=1e-10, atol=1e-12 * np.abs(matrix).max(initial=0.0)):
        raise NumericalError(f"a covariance matrix must be symmetric, got {np.abs(matrix - matrix.T).max():.3g} off")
