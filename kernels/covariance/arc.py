"""Covariances of configurations with conditional parameters: the Arc kernel and baselines.

Swersky, Duvenaud, Snoek, Hutter, Osborne: Raiders of the Lost Architecture (2014); its equations
have no numbers.

| symbol  | meaning                                                                                | shape      |
|---------|----------------------------------------------------------------------------------------|------------|
| x       | codes (`archive.parameters.parameter_space`), NaN where a parameter does not exist     | (n, D)     |
| delta_i | whether parameter i exists in a configuration                                          | bool       |
| group   | parameters that share hyperparameters: one kind, or one parameter each                | (D,)       |
| omega_i | weight of the existence of parameter i, > 0                                            | (G,)       |
| rho_i   | weight of its value relative to its existence, in (0, 1]                               | (G,)       |
| g_i     | embedding of parameter i                                                               | a vector   |
| d_i     | ||g_i(x) - g_i(x')||, the pseudo-metric                                                | (m, n)     |
| r^2     | sum_i d_i^2                                                                            | (m, n)     |
| beta    | inverse squared length scales                                                          | (G,)       |
| theta   | log(alpha, omega …, rho …), log(alpha, beta …) or log(a, b)                            | (p,)       |

    g_i(x) = 0                                                                    where delta_i is false
    g_i(x) = omega_i [sin(pi rho_i x_i / (u_i - l_i)), cos(pi rho_i x_i / (u_i - l_i))]        otherwise

    d_i = 0                                                     neither has the parameter
    d_i = omega_i                                               one has it
    d_i = omega_i sqrt(2) sqrt(1 - cos(pi rho_i t))             both: t = |x_i - x_i'| / (u_i - l_i), in [0, 1]

Two configurations that differ in a choice without an order are at t = 1/2: the paper has no
categorical parameters, and 1/2 is the largest t for which any number of choices fits into an
embedding with all of them equally far apart (vectors of length omega at an angle of pi rho t each,
at most a right angle). The covariances, positive definite functions of a Euclidean distance, are
therefore positive semi-definite for rho <= 1.

Both invariances of the paper follow: the value of a parameter that a configuration does not have
changes no covariance, neither with configurations that lack the parameter too nor with those that
have it.

    arc        alpha Matern52(r), r the pseudo-metric                       "Arc GP"
    padded     alpha Matern52(r), r^2 = sum beta_i (x_i - x_i')^2           "GP": absent values are drawn at random
    linear     a + b <x, x'>                                                "Linear": the same x

r is computed from embeddings by one matrix product: a posterior sampler needs thousands of 60 x 60
matrices, and sines of n D codes are fewer than sines of n^2 D differences.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

from archive.kernels.covariance.base import ALPHA, Floats

Integers = NDArray[np.int64]

OMEGA = (1e-2, 1e1)
"""Range of omega.

Scores are standardised and d_i is at most 2 omega_i: at the lower end a parameter is ignored, at
the upper end configurations that differ in it are uncorrelated."""
RHO = (1e-2, 1.0)
"""Range of rho.

At the lower end only the existence of the parameter matters; above 1 the arc would return towards
its start."""
_BETA = (1e-4, 1e2)
"""Range of beta.

Codes are in [0, 1]: at the lower end a parameter is ignored, at the upper end a step of 0.1 leaves
no correlation."""


class CodeKernel(ABC):
    """A covariance of codes as a function of log-parameters. Immutable.

    Attributes:
        bounds: (p, 2) float64, lower and upper bounds of theta.
    """

    bounds: Floats

    @abstractmethod
    def prepare(self, codes: Floats) -> Floats:
        """Return the kernel's representation of (n, D) codes: (n, q), independent of theta."""

    @abstractmethod
    def value(self, theta: Floats, first: Floats, second: Floats | None = None) -> Floats:
        """Return the covariance of m with n prepared configurations, or the m: (m, n) float64."""

    @abstractmethod
    def prior(self, theta: Floats, prepared: Floats) -> Floats:
        """Return the prior variances: (m,) float64."""


@final
class ArcKernel(CodeKernel):
    """The Arc kernel: configurations of which one has a parameter are omega apart in it.

    Args:
        groups: (D,) group of each parameter, from 0.
        choices: (D,) number of choices of a categorical parameter; 0 for a number.
    """

    def __init__(self, groups: Sequence[int], choices: Sequence[int]) -> None:
        """Set the coordinates: two for a number; for choices a shared one, and one for each."""
        count = max(groups) + 1
        self.bounds = np.log([ALPHA, *[OMEGA] * count, *[RHO] * count])
        self._numbers = np.flatnonzero(np.array(choices) == 0)
        self._choices = np.flatnonzero(choices)
        self._sizes = list(filter(None, choices))
        self._groups: Integers = np.array(groups)

    def prepare(self, codes: Floats) -> Floats:
        """Order the numbers before the choices."""
        return codes[:, [*self._numbers, *self._choices]]

    def value(self, theta: Floats, first: Floats, second: Floats | None = None) -> Floats:
        """See `CodeKernel.value`."""
        rows = self._embed(theta, first)
        columns = rows if second is None else self._embed(theta, second)
        return _matern(_squares(rows, columns), float(np.exp(theta[0])))

    def prior(self, theta: Floats, prepared: Floats) -> Floats:
        """See `CodeKernel.prior`."""
        return np.full(len(prepared), np.exp(theta[0]))

    def _embed(self, theta: Floats, prepared: Floats) -> Floats:
        omega, rho = np.split(np.exp(theta[1:]), 2)
        numbers = prepared[:, : len(self._numbers)]
        groups = self._groups[self._numbers]
        present = ~np.isnan(numbers)
        angle = np.pi * rho[groups] * np.where(present, numbers, 0.0)
        weight = omega[groups] * present
        parts = [weight * np.sin(angle), weight * np.cos(angle)]
        for column, number, size in zip(
            prepared[:, len(self._numbers) :].T, self._choices, self._sizes, strict=True
        ):
            shared, specific = choice_coordinates(float(rho[self._groups[number]]))
            code = np.hstack(
                [np.full((len(column), 1), shared), specific * (column[:, None] == np.arange(size))]
            )
            parts.append(
                np.where(np.isnan(column)[:, None], 0.0, omega[self._groups[number]] * code)
            )

        return np.hstack(parts)


@final
class PaddedKernel(CodeKernel):
    """Matern covariance of vectors of one length.

    An absent parameter has a random value, the same in every call.

    Args:
        groups: (D,) group of each parameter, from 0.
        choices: (D,) number of choices of a categorical parameter; 0 for a number.
        seed: Seed of the random values.
    """

    def __init__(self, groups: Sequence[int], choices: Sequence[int], seed: int) -> None:
        self.bounds = np.log([ALPHA, *[_BETA] * (max(groups) + 1)])
        self._choices = tuple(choices)
        self._seed = seed
        self._groups: Integers = np.repeat(np.array(groups), np.maximum(choices, 1))

    def prepare(self, codes: Floats) -> Floats:
        """Fill in absent values, and give every choice a coordinate."""
        return spread_out(codes, self._choices, self._seed)

    def value(self, theta: Floats, first: Floats, second: Floats | None = None) -> Floats:
        """See `CodeKernel.value`."""
        scale = np.exp(0.5 * theta[1:])[self._groups]
        rows = scale * first
        return _matern(
            _squares(rows, rows if second is None else scale * second), float(np.exp(theta[0]))
        )

    def prior(self, theta: Floats, prepared: Floats) -> Floats:
        """See `CodeKernel.prior`."""
        return np.full(len(prepared), np.exp(theta[0]))


@final
class LinearKernel(CodeKernel):
    """Bayesian linear regression; an absent parameter has a random value, the same in every call.

    Args:
        choices: (D,) number of choices of a categorical parameter; 0 for a number.
        seed: Seed of the random values.
    """

    def __init__(self, choices: Sequence[int], seed: int) -> None:
        self.bounds = np.log([ALPHA, ALPHA])
        self._choices = tuple(choices)
        self._seed = seed

    def prepare(self, codes: Floats) -> Floats:
        """Fill in absent values, and give every choice a coordinate."""
        # Centred, so that the constant is the expectation at the middle of the box.
        return spread_out(codes, self._choices, self._seed) - 0.5

    def value(self, theta: Floats, first: Floats, second: Floats | None = None) -> Floats:
        """See `CodeKernel.value`."""
        constant, slope = np.exp(theta)
        value: Floats = constant + slope * (first @ (first if second is None else second).T)
        return value

    def prior(self, theta: Floats, prepared: Floats) -> Floats:
        """See `CodeKernel.prior`."""
        constant, slope = np.exp(theta)
        variance: Floats = constant + slope * np.square(prepared).sum(axis=1)
        return variance


def choice_coordinates(rho: float) -> tuple[float, float]:
    """Return the coordinate of all choices and the coordinate of one; their squares sum to 1."""
    # sin(pi (1 - rho) / 2) is the cosine of pi rho / 2 and exactly 0 at rho = 1.
    cosine = float(np.sin(0.5 * np.pi * (1.0 - rho)))
    return float(np.sqrt(cosine)), float(np.sqrt(1.0 - cosine))


def spread_out(codes: Floats, choices: Sequence[int], seed: int) -> Floats:
    """Return codes (n, q) float64 without NaN, one coordinate for each categorical choice.

    An absent parameter is uniform in [0, 1]: "embeds irrelevant dimensions randomly". The draws
    depend on seed and codes alone, so that a configuration is the same point in every call.
    """
    filled = codes.copy()
    for row in filled:
        absent = np.isnan(row)
        if absent.any():
            generator = np.random.default_rng([seed, zlib.crc32(row.tobytes())])
            row[absent] = generator.random(absent.sum()) * np.maximum(choices, 1)[absent]

    parts = []
    for column, size in zip(filled.T[:, :, None], choices, strict=True):
        if size:
            # sqrt(1/2): two choices are at distance 1, as are the ends of a number's range.
            column = np.sqrt(0.5) * (np.floor(column) == np.arange(size))

        parts.append(column)

    return np.hstack(parts)


def _squares(rows: Floats, columns: Floats) -> Floats:
    squares = (
        np.square(rows).sum(axis=1)[:, None]
        + np.square(columns).sum(axis=1)
        - 2.0 * (rows @ columns.T)
    )
    # Rounding leaves squared distances of 1e-14 between equal points, and an error of that size in
    # the covariance.
    clipped: Floats = np.maximum(squares, 0.0, out=squares)
    return clipped


def _matern(squares: Floats, alpha: float) -> Floats:
    s = np.sqrt(5.0 * squares)
    value: Floats = alpha * (1.0 + s + s * s / 3.0) * np.exp(-s)
    return value
