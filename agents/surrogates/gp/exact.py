"""An exact Gaussian process on given covariance matrices; independent of architectures.

Notation:

    symbol    meaning                                             shape
    n, m, k   observations, query points, added points            scalars
    K         covariance of the observed points                   (n, n)
    eta2, t   noise variance: common, or by row                   scalar, (n,)
    L         lower Cholesky factor of B = K + diag(t)            (n, n)
    y         observed values, of prior mean 0                    (n,)
    a         B^-1 y, the weights                                 (n,)
    c         covariance of observed and query points             (n, m)
    p, P      prior variance, prior covariance of query points    (m,), (m, m)
    Q         projection onto the eigenvectors of K that repair keeps (n, n)

    mean        c^T a                                    eq. (1) of NASBOT
    covariance  P - c^T B^-1 c                           eq. (1)
    log p(y)    -1/2 y^T a - sum log L_ii - n/2 log 2pi  (Rasmussen & Williams, 2006, eq. 2.30)

Covariances computed from distances may be indefinite; at a few hundred networks NASBOT's are.
`condition_repaired` then replaces K by its positive part and c by Q c
(`archive.kernels.covariance.spectrum`). Two alternatives ranked other networks far worse, measured
on 300 networks of each space: raising the noise until K is definite, and repairing K but not c.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import lapack, solve_triangular

from archive.agents.surrogates.base import Array
from archive.errors import NotPositiveDefiniteError, NumericalError
from archive.kernels.covariance.spectrum import repair, surely_positive_semidefinite

LOG_TWO_PI = float(np.log(2.0 * np.pi))


class JitterWarning(RuntimeWarning):
    """A covariance was not positive definite and has been repaired by jitter."""


@dataclass(frozen=True, eq=False)
class GaussianProcess:
    """A Gaussian process conditioned on n values; immutable, adding points returns another.

    Attributes:
        factor: (n, n) float64, lower triangular: L.
        values: (n,) float64: y.
        noise: eta2, at least 0; the default for added points.
        projection: (n0, n0) float64: Q for the first n0 points; None where their covariance needed
            no repair.
        repaired: Largest relative change of a covariance by repair; 0 without repair.
    """

    factor: Array
    values: Array
    noise: float
    projection: Array | None = None
    repaired: float = 0.0

    @classmethod
    def condition(
        cls, gram: Array, values: Array, noise: float, variances: Array | None = None
    ) -> GaussianProcess:
        """Condition on observed values.

        Args:
            gram: (n, n) float64, covariance without noise. Replicates of a point are equal rows.
            values: (n,) float64.
            noise: Noise variance, at least 0.
            variances: (n,) float64, noise variance of each row; None for `noise` everywhere.

        Raises:
            NotPositiveDefiniteError: Jitter could not repair `gram` plus noise.
        """
        noisy = gram.copy()
        noisy[np.diag_indices(len(gram))] += noise if variances is None else variances
        return cls(robust_cholesky(noisy), np.asarray(values, dtype=np.float64), noise)

    @classmethod
    def condition_repaired(
        cls, gram: Array, values: Array, noise: float, variances: Array | None = None
    ) -> GaussianProcess:
        """Condition on values with a covariance that may be indefinite; see `condition`."""
        # The eigenvalues of 5,000 networks take a minute, a Cholesky factor a second.
        if surely_positive_semidefinite(gram):
            return cls.condition(gram, values, noise, variances)

        sound = repair(gram, warn=False)
        process = cls.condition(sound.matrix, values, noise, variances)
        return replace(process, projection=sound.projection, repaired=sound.amount)

    @cached_property
    def weights(self) -> Array:
        """B^-1 y: (n,) float64."""
        half = solve_triangular(self.factor, self.values, lower=True, check_finite=False)
        weights: Array = solve_triangular(
            self.factor, half, lower=True, trans=1, check_finite=False
        )
        return weights

    @property
    def log_likelihood(self) -> float:
        """Log marginal likelihood of the values."""
        return float(
            -0.5 * self.values @ self.weights
            - np.log(np.diagonal(self.factor)).sum()
            - 0.5 * len(self.values) * LOG_TWO_PI
        )

    def log_likelihood_gradient(self, derivatives: Array) -> Array:
        """Return the gradient of `log_likelihood` (Rasmussen & Williams, 2006, eq. 5.9).

        Args:
            derivatives: (p, n, n) float64: of B with respect to each of p parameters. With respect
                to log eta2 it is `eta2 I`.

        Returns:
            (p,) float64: 1/2 tr((a a^T - B^-1) derivative).
        """
        inverse, _ = lapack.dpotri(self.factor, lower=1)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        gradient: Array = 0.5 * np.einsum(
            "ij,pij->p", np.outer(self.weights, self.weights) - inverse, derivatives
        )
        return gradient

    def loo_log_densities(self) -> Array:
        """Return the leave-one-out log densities log p(y_i | the others): (n,) float64.

        O(n^3 / 3).

        Rasmussen & Williams, 2006, eqs. (5.10) to (5.12).
        """
        gaps, precisions = leave_one_out(self.factor, self.weights)
        densities: Array = 0.5 * (np.log(precisions) - precisions * np.square(gaps) - LOG_TWO_PI)
        return densities

    def left_out(self) -> tuple[Array, Array]:
        """Return the leave-one-out means and variances of the values with noise: (n,), (n,)."""
        gaps, precisions = leave_one_out(self.factor, self.weights)
        return self.values - gaps, 1.0 / precisions

    def predict(self, cross: Array, prior: Array) -> tuple[Array, Array]:
        """Return mean and variance of the noise-free function at m points: (m,) and (m,) float64.

        Args:
            cross: (n, m) float64: c.
            prior: (m,) float64: p.
        """
        sound = self._project(cross)
        half = self._solve(sound)
        variance = prior - np.einsum("nm,nm->m", half, half)
        return sound.T @ self.weights, np.clip(variance, 0.0, None)

    def predict_jointly(self, cross: Array, prior: Array) -> tuple[Array, Array]:
        """Return mean and covariance of the noise-free function: (m,) and (m, m) float64.

        Args:
            cross: (n, m) float64: c.
            prior: (m, m) float64: P.
        """
        sound = self._project(cross)
        half = self._solve(sound)
        return sound.T @ self.weights, prior - half.T @ half

    def extend(
        self,
        cross: Array,
        prior: Array,
        values: Array | None = None,
        variances: Array | None = None,
    ) -> GaussianProcess:
        """Condition on k more values, in O(k n^2) instead of O(n^3).

        Args:
            cross: (n, k) float64: covariance of the observed with the added points.
            prior: (k, k) float64: covariance of the added points, without noise.
            values: (k,) float64, or None for fantasies equal to the posterior mean (kriging
                believer): the mean then stays the same everywhere, and only the variance shrinks.
            variances: (k,) float64, noise variance of each; None for `noise`.

        Raises:
            NotPositiveDefiniteError: Jitter could not repair the covariance.
        """
        n, k = cross.shape
        half = self._solve(self._project(cross))
        covariance = prior - half.T @ half
        # An indefinite prior covariance gives negative posterior variances, which repair sets to 0.
        sound = repair(covariance, warn=False).matrix
        change = float(np.linalg.norm(sound - covariance) / np.linalg.norm(prior))
        noisy = sound + np.diag(np.full(k, self.noise) if variances is None else variances)
        factor = np.zeros((n + k, n + k), order="F")
        factor[:n, :n] = self.factor
        factor[n:, :n] = half.T
        factor[n:, n:] = robust_cholesky(noisy)
        added = self._project(cross).T @ self.weights if values is None else values
        return replace(
            self,
            factor=factor,
            values=np.concatenate([self.values, added]),
            repaired=max(self.repaired, change),
        )

    def half(self, cross: Array) -> Array:
        """Return L^-1 c, the half-solve of the posterior: (n, m) float64 for (n, m) covariances."""
        return self._solve(self._project(cross))

    def _project(self, cross: Array) -> Array:
        if self.projection is None:
            return cross

        first = len(self.projection)
        return np.vstack([self.projection @ cross[:first], cross[first:]])

    def _solve(self, cross: Array) -> Array:
        solved: Array = solve_triangular(self.factor, cross, lower=True, check_finite=False)
        return solved


def robust_cholesky(matrix: Array) -> Array:
    """Return the lower Cholesky factor of a symmetric matrix, with jitter where it is needed.

    Distances need not be of negative type, so that a covariance computed from them may be
    indefinite by more than
    rounding: jitter grows tenfold from 1e-10 to 1e-2 of the mean variance before this raises.

    Args:
        matrix: (n, n) float64.

    Warns:
        JitterWarning: The diagonal was raised; the message says by how much.

    Raises:
        NumericalError: An element is NaN or infinite.
        NotPositiveDefiniteError: The largest jitter did not help.
    """
    factor = try_cholesky(matrix)
    if factor is not None:
        return factor

    if not np.isfinite(matrix).all():
        raise NumericalError(
            f"a {len(matrix)} x {len(matrix)} covariance has elements that are not finite"
        )

    scale = float(np.diagonal(matrix).mean())
    jitter = 0.0
    for exponent in range(-10, -1):
        jitter = 10.0**exponent * abs(scale)
        factor = try_cholesky(matrix + jitter * np.eye(len(matrix)))
        if factor is not None:
            warnings.warn(
                f"added {jitter:.1e} to the diagonal of a {len(matrix)} x {len(matrix)} "
                f"covariance that was not positive definite (mean variance {scale:.1e})",
                JitterWarning,
                stacklevel=2,
            )
            return factor

    raise NotPositiveDefiniteError(len(matrix), jitter)


def try_cholesky(matrix: Array) -> Array | None:
    """Return the lower Cholesky factor; None if the matrix is not positive definite.

    Matrices with NaN or infinity are not.
    """
    # LAPACK directly: numpy's wrapper costs more than the factorisation of the 20 x 20 matrices of
    # a short study.
    factor, info = lapack.dpotrf(matrix, lower=1, clean=1)
    if info != 0 or not np.isfinite(factor.diagonal().sum()):
        return None

    result: Array = factor
    return result


def log_likelihood(noisy: Array, values: Array) -> float:
    """Return the log marginal likelihood, -inf where the covariance is not positive definite.

    Samplers call this thousands of times: it creates no object and repairs nothing.

    Args:
        noisy: (n, n) float64: B. It is overwritten.
        values: (n,) float64.
    """
    factor, info = lapack.dpotrf(noisy, lower=1, clean=0, overwrite_a=1)
    if info != 0:
        return -np.inf

    half, _ = lapack.dtrtrs(factor, values, lower=1)
    result = -0.5 * half @ half - np.log(factor.diagonal()).sum() - 0.5 * len(values) * LOG_TWO_PI
    return float(result) if np.isfinite(result) else -np.inf


def leave_one_out(factor: Array, weights: Array) -> tuple[Array, Array]:
    """Return each value minus its mean given the others, and the precision of it: (n,), (n,).

    Args:
        factor: (n, n) float64: lower Cholesky factor of B.
        weights: (n,) float64: a.
    """
    inverse, _ = lapack.dpotri(factor, lower=1)
    precisions = inverse.diagonal()
    return weights / precisions, precisions
