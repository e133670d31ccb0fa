"""The log marginal likelihood of hyperparameters, and the interface of methods that fit them.

Notation:

    symbol   meaning                                                               shape
    theta    log-parameters of the covariance, then log eta2                       (p + 1,)
    x        the free ones among them: without log eta2 where it is fixed          (d,)
    K, B     covariance of the rows; K + diag(t), t their noise (`replicates`)     (u, u)
    z, a     values of the rows; B^-1 z                                            (u,)
    r        log-likelihood term of the replicates (`replicates`)                  scalar

    L        = -1/2 z^T a - 1/2 log|B| - u/2 log 2 pi + r          eq. (27) of tree-Wasserstein
    dL/dx_j  = 1/2 sum_ik (a a^T - B^-1)_ik (dK/dx_j)_ik           eq. (28); dK/dx of eqs. (29-31), times lambda
                                                                   for a logarithm

Each derivative dK/dx_j is computed, used and dropped before the next, so that memory holds a few
(u, u) matrices for any p.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from archive.agents.surrogates.base import Array
from archive.agents.surrogates.gp.exact import LOG_TWO_PI, log_likelihood, try_cholesky
from archive.agents.surrogates.gp.replicates import Integers, Replicates
from archive.errors import NumericalError, UsageError
from archive.kernels.covariance.base import BoundCovariance, Covariance


@dataclass(frozen=True)
class Bounds:
    """A uniform prior between bounds; on logarithms, a log-uniform prior of the parameters.

    Attributes:
        lower: (d,) float64.
        upper: (d,) float64, each above its lower bound.
    """

    lower: Array
    upper: Array

    def __post_init__(self) -> None:
        """Check the bounds."""
        if self.lower.shape != self.upper.shape or not (self.lower < self.upper).all():
            raise NumericalError(
                f"bounds must be ascending pairs, got {self.lower} and {self.upper}"
            )

    @property
    def centre(self) -> Array:
        """Centre of the ranges: (d,) float64."""
        return 0.5 * (self.lower + self.upper)

    @property
    def widths(self) -> Array:
        """Widths of the ranges: (d,) float64."""
        return self.upper - self.lower

    def draw(self, rng: np.random.Generator) -> Array:
        """Draw from the prior: (d,) float64."""
        return rng.uniform(self.lower, self.upper)

    def reach(self, x: Array, direction: Array) -> tuple[float, float]:
        """Return the smallest and the largest t for which x + t direction is within the bounds."""
        moving = direction != 0.0
        first = (self.lower - x)[moving] / direction[moving]
        second = (self.upper - x)[moving] / direction[moving]
        return float(np.minimum(first, second).max()), float(np.maximum(first, second).min())


class Likelihood:
    """The log marginal likelihood as a function of the free hyperparameters; immutable.

    Args:
        covariance: Covariance as a function of distances.
        stack: (c, u, u) float64, distances of the rows.
        replicates: Evaluations of the rows.
        noise: Bounds of eta2; equal bounds fix it.
    """

    def __init__(
        self,
        covariance: Covariance,
        stack: Array,
        replicates: Replicates,
        noise: tuple[float, float],
    ) -> None:
        self.covariance = covariance
        self.stack = stack
        self.replicates = replicates
        self.noise = noise

    @property
    def rows(self) -> int:
        """Number of rows, u."""
        return len(self.replicates.keys)

    @property
    def learns_noise(self) -> bool:
        """Whether log eta2 is free; it is then the last parameter."""
        return self.noise[0] < self.noise[1]

    @cached_property
    def bounds(self) -> Bounds:
        """Bounds of x: of the covariance for these distances, then of a free noise."""
        bounds = self.covariance.bounds(self.stack)
        if self.learns_noise:
            bounds = np.vstack([bounds, np.log(self.noise)])

        return Bounds(bounds[:, 0], bounds[:, 1])

    @cached_property
    def _bound(self) -> BoundCovariance:
        return self.covariance.bind(self.stack)

    def full(self, x: Array) -> Array:
        """Return theta: (..., d) to (..., p + 1) float64."""
        if self.learns_noise:
            return x

        fixed = np.full((*x.shape[:-1], 1), np.log(self.noise[0]))
        return np.concatenate([x, fixed], axis=-1)

    def value(self, x: Array) -> float:
        """Return L, -inf where the covariance is not positive definite."""
        theta = self.full(x)
        noise = float(np.exp(theta[-1]))
        values, variances = self.replicates.merge(noise)
        noisy = self._bound.value(theta[:-1])
        noisy[np.diag_indices(len(noisy))] += variances
        return log_likelihood(noisy, values) + self.replicates.remainder(noise)

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        """Return L and dL/dx, (d,) float64; -inf and zeros if not positive definite."""
        theta = self.full(x)
        noise = float(np.exp(theta[-1]))
        values, variances = self.replicates.merge(noise)
        gram, layers = self._bound.value_and_layers(theta[:-1])
        noisy = gram.copy()
        noisy[np.diag_indices(len(noisy))] += variances
        factor = try_cholesky(noisy)
        if factor is None:
            return -np.inf, np.zeros_like(x)

        weights, _ = lapack.dpotrs(factor, values, lower=1)
        determinant = float(np.log(factor.diagonal()).sum())
        inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
        diagonal = inverse.diagonal().copy()
        value = -0.5 * float(values @ weights) - determinant - 0.5 * len(values) * LOG_TWO_PI
        slopes = _contract(weights, inverse, diagonal, layers)
        if self.learns_noise:
            slopes.append(noise * self.replicates.noise_slope(noise, weights, diagonal))

        return value + self.replicates.remainder(noise), np.array(slopes)

    def subset(self, rows: Integers) -> Likelihood:
        """Return the likelihood of some rows, with all their replicates."""
        stack = self.stack[:, rows[:, None], rows]
        return Likelihood(self.covariance, stack, self.replicates.subset(rows), self.noise)

    def sample(self, most: int, rng: np.random.Generator) -> Likelihood:
        """Return the likelihood of at most `most` rows, drawn at random."""
        return self if self.rows <= most else self.subset(some_of(self.rows, most, rng))


def some_of(count: int, most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return at most `most` of `count` rows, drawn at random, ascending."""
    return np.arange(count) if count <= most else np.sort(rng.choice(count, most, replace=False))


class Inference(ABC):
    """A method of fitting hyperparameters; immutable."""

    @abstractmethod
    def thetas(self, likelihood: Likelihood, rng: np.random.Generator) -> Array:
        """Return one or more values of theta, to average over with equal weights.

        Args:
            likelihood: Likelihood of the observations.
            rng: Source of randomness.

        Returns:
            (S, p + 1) float64.

        Raises:
            NumericalError: No hyperparameters with a finite likelihood were found.
        """


@dataclass(frozen=True, eq=False)
class FixedHyperparameters(Inference):
    """Given hyperparameters, for example from an earlier fit; nothing is fitted.

    Attributes:
        values: (S, p + 1) or (p + 1,) float64, logarithms.
    """

    values: Array

    def thetas(self, likelihood: Likelihood, rng: np.random.Generator) -> Array:
        """See `Inference.thetas`."""
        thetas = np.atleast_2d(np.asarray(self.values, dtype=np.float64))
        size = len(likelihood.covariance.names) + 1
        if thetas.ndim != 2 or thetas.shape[1] != size or not len(thetas):
            raise UsageError(
                f"theta must hold {size} parameters, got shape {np.shape(self.values)}"
            )

        return thetas


def _contract(
    weights: Array, inverse: Array, diagonal: Array, layers: Iterator[Array]
) -> list[float]:
    # LAPACK returns the lower half of the inverse in Fortran order: its transpose is contiguous.
    # Every layer is symmetric, so that twice one half, minus the diagonal, has the same inner
    # product as the whole.
    matrix = np.outer(weights, weights)
    matrix -= inverse.T
    matrix -= inverse.T
    matrix[np.diag_indices(len(matrix))] += diagonal
    return [0.5 * float(np.vdot(matrix, layer)) for layer in layers]
