"""Covariances of configurations by their codes: the Arc kernel, and what the poster compares it with.

Swersky, Duvenaud, Snoek, Hutter, Osborne: Raiders of the Lost Architecture (2014).

| symbol      | meaning                                                                                 | shape  |
|-------------|-----------------------------------------------------------------------------------------|--------|
| x           | codes (`archive.spaces.conditional`), NaN where a parameter does not exist              | (n, D) |
| group       | parameters that share hyperparameters: those of one kind, or each by itself             | (D,)   |
| omega, rho  | of the Arc kernel (`archive.kernels.covariance.arc`), one of each a group                  | (G,)   |
| beta        | inverse squared length scales, one a group                                              | (G,)   |
| theta       | log(alpha, omega …, rho …), log(alpha, beta …) or log(a, b)                             | (p,)   |

    arc        alpha Matern52(r), r the pseudo-metric                       "Arc GP"
    padded     alpha Matern52(r), r^2 = sum beta_i (x_i - x_i')^2           "GP": what does not exist is drawn at random
    linear     a + b <x, x'>                                                "Linear": the same x

r comes from embeddings, by one matrix product: a posterior sampler asks for thousands of 60 x 60 matrices, and sines of
n D codes are fewer than sines of n^2 D differences.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

from archive.agents.surrogates.base import Array
from archive.kernels.covariance.arc import OMEGA, RHO, choice_coordinates
from archive.kernels.covariance.base import ALPHA

Integers = NDArray[np.int64]

# Codes are in [0, 1]: at the lower end a parameter is ignored, at the upper end a step of 0.1 is a stranger.
_BETA = (1e-4, 1e2)


class CodeKernel(ABC):
    """A covariance of codes, as a function of log-parameters; immutable.

    Attributes:
        bounds: (p, 2) float64, the box that theta is sought in.
    """

    bounds: Array

    @abstractmethod
    def prepare(self, codes: Array) -> Array:
        """Return what a kernel keeps of (n, D) codes: (n, q) float64, independent of theta."""

    @abstractmethod
    def value(self, theta: Array, first: Array, second: Array | None = None) -> Array:
        """Return the covariance of m with n prepared configurations, with themselves for None: (m, n) float64."""

    @abstractmethod
    def prior(self, theta: Array, prepared: Array) -> Array:
        """Return the prior variances: (m,) float64."""


@final
class ArcKernel(CodeKernel):
    """The paper's: what exists in one of two configurations only is at the distance omega.

    Args:
        groups: (D,) group of each parameter, from 0.
        choices: (D,) number of choices of a categorical parameter; 0 for a number.
    """

    def __init__(self, groups: Sequence[int], choices: Sequence[int]) -> None:
        """Lay out the coordinates: two a number, a shared one and one each for choices."""
        count = max(groups) + 1
        self.bounds = np.log([ALPHA, *[OMEGA] * count, *[RHO] * count])
        self._numbers = np.flatnonzero(np.array(choices) == 0)
        self._choices = np.flatnonzero(choices)
        self._sizes = [size for size in choices if size]
        self._groups: Integers = np.array(groups)

    def prepare(self, codes: Array) -> Array:
        """Order the numbers before the choices."""
        return codes[:, [*self._numbers, *self._choices]]

    def value(self, theta: Array, first: Array, second: Array | None = None) -> Array:
        """See `CodeKernel.value`."""
        rows = self._embedded(theta, first)
        columns = rows if second is None else self._embedded(theta, second)
        return _matern(_squares(rows, columns), float(np.exp(theta[0])))

    def prior(self, theta: Array, prepared: Array) -> Array:
        """See `CodeKernel.prior`."""
        return np.full(len(prepared), np.exp(theta[0]))

    def _embedded(self, theta: Array, prepared: Array) -> Array:
        omega, rho = np.split(np.exp(theta[1:]), 2)
        numbers, groups = prepared[:, : len(self._numbers)], self._groups[self._numbers]
        there = ~np.isnan(numbers)
        angle = np.pi * rho[groups] * np.where(there, numbers, 0.0)
        weight = omega[groups] * there
        parts = [weight * np.sin(angle), weight * np.cos(angle)]
        for column, at, size in zip(prepared[:, len(self._numbers) :].T, self._choices, self._sizes, strict=True):
            shared, own = choice_coordinates(float(rho[self._groups[at]]))
            code = np.hstack([np.full((len(column), 1), shared), own * (column[:, None] == np.arange(size))])
            parts.append(np.where(np.isnan(column)[:, None], 0.0, omega[self._groups[at]] * code))
        return np.hstack(parts)


@final
class PaddedKernel(CodeKernel):
    """A Matern covariance of vectors of one length; what does not exist has a random value, the same every time.

    Args:
        groups: (D,) group of each parameter, from 0.
        choices: (D,) number of choices of a categorical parameter; 0 for a number.
        seed: Of the random values.
    """

    def __init__(self, groups: Sequence[int], choices: Sequence[int], seed: int) -> None:
        """Keep the arguments."""
        self.bounds = np.log([ALPHA, *[_BETA] * (max(groups) + 1)])
        self._choices, self._seed = tuple(choices), seed
        self._groups: Integers = np.repeat(np.array(groups), np.maximum(choices, 1))

    def prepare(self, codes: Array) -> Array:
        """Fill in, and spread choices over coordinates."""
        return spread_out(codes, self._choices, self._seed)

    def value(self, theta: Array, first: Array, second: Array | None = None) -> Array:
        """See `CodeKernel.value`."""
        scale = np.exp(0.5 * theta[1:])[self._groups]
        rows = scale * first
        return _matern(_squares(rows, rows if second is None else scale * second), float(np.exp(theta[0])))

    def prior(self, theta: Array, prepared: Array) -> Array:
        """See `CodeKernel.prior`."""
        return np.full(len(prepared), np.exp(theta[0]))


@final
class LinearKernel(CodeKernel):
    """Bayesian linear regression; what does not exist has a random value, the same every time.

    Args:
        choices: (D,) number of choices of a categorical parameter; 0 for a number.
        seed: Of the random values.
    """

    def __init__(self, choices: Sequence[int], seed: int) -> None:
        """Keep the arguments."""
        self.bounds = np.log([ALPHA, ALPHA])
        self._choices, self._seed = tuple(choices), seed

    def prepare(self, codes: Array) -> Array:
        """Fill in, and spread choices over coordinates."""
        # Around the middle, so that the constant is what is expected there.
        return spread_out(codes, self._choices, self._seed) - 0.5

    def value(self, theta: Array, first: Array, second: Array | None = None) -> Array:
        """See `CodeKernel.value`."""
        constant, slope = np.exp(theta)
        value: Array = constant + slope * (first @ (first if second is None else second).T)
        return value

    def prior(self, theta: Array, prepared: Array) -> Array:
        """See `CodeKernel.prior`."""
        constant, slope = np.exp(theta)
        variance: Array = constant + slope * np.square(prepared).sum(axis=1)
        return variance


def spread_out(codes: Array, choices: Sequence[int], seed: int) -> Array:
    """Return codes without NaN, a categorical parameter spread over coordinates: (n, q) float64.

    What does not exist is uniform in [0, 1]: "embeds irrelevant dimensions randomly". The draws depend on seed and
    codes alone, so that a configuration is the same point whenever it is asked about.
    """
    filled = codes.copy()
    for row in filled:
        absent = np.isnan(row)
        if absent.any():
            generator = np.random.default_rng([seed, zlib.crc32(row.tobytes())])
            row[absent] = generator.random(absent.sum()) * np.maximum(choices, 1)[absent]
    parts = [
        # sqrt(1/2): two choices are at the distance 1, as far apart as the ends of a number.
        np.sqrt(0.5) * (np.floor(column)[:, None] == np.arange(size)) if size else column[:, None]
        for column, size in zip(filled.T, choices, strict=True)
    ]
    return np.hstack(parts)


def _squares(rows: Array, columns: Array) -> Array:
    squares = np.square(rows).sum(axis=1)[:, None] + np.square(columns).sum(axis=1) - 2.0 * (rows @ columns.T)
    # Rounding leaves equal points 1e-14 apart, squared, which moves the covariance by as much.
    clipped: Array = np.maximum(squares, 0.0, out=squares)
    return clipped


def _matern(squares: Array, alpha: float) -> Array:
    s = np.sqrt(5.0 * squares)
    value: Array = alpha * (1.0 + s + s * s / 3.0) * np.exp(-s)
    return value
