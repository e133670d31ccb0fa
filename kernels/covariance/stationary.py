"""Stationary covariances: Matern and squared exponential, over a Euclidean sum of distance components.

Rasmussen and Williams: Gaussian Processes for Machine Learning (2006), section 4.2.1.

| symbol | meaning                                              | shape   |
|--------|------------------------------------------------------|---------|
| d      | components of a distance, stacked                    | (c, m, n) |
| r^2    | sum_i beta_i d_i^2                                   | (m, n)  |
| f      | profile: the correlation at r, f(0) = 1              | (m, n)  |
| f'     | df / d(r^2), finite at r = 0 for each profile below  | (m, n)  |

    rbf         f = exp(-r^2 / 2)
    matern32    f = (1 + sqrt(3) r) exp(-sqrt(3) r)
    matern52    f = (1 + sqrt(5) r + 5 r^2 / 3) exp(-sqrt(5) r)

All three are positive definite functions of a Euclidean distance in any dimension. So K is positive semi-definite
wherever every d_i is one: for embeddings with the L2 norm (Arc), and for the square root of an L1 distance, but not for
OTMANN, Wasserstein or Gromov-Wasserstein distances (see `archive.kernels.covariance.spectrum`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Literal, get_args

import numpy as np

from archive.errors import UsageError
from archive.kernels.covariance.base import ALPHA, BETA, Bound, Covariance, Floats

Profile = Literal["rbf", "matern32", "matern52"]


class Stationary(Covariance):
    """alpha * f(r) with r^2 = sum_i beta_i d_i^2 over some of the components.

    Choose `matern52` where scores change roughly with the architecture, as the authors of the Arc kernel did with a
    Matern covariance; `rbf` assumes a score that is infinitely smooth. It is `Exponential` with power 2 and half the
    betas.

    Args:
        components: Positions in the stack; one beta for each.
        profile: `"matern52"`, `"matern32"` or `"rbf"`.
        label: Added to the names of the parameters, to tell two terms apart.

    Raises:
        UsageError: An argument is out of range.
    """

    def __init__(self, components: Sequence[int], profile: Profile = "matern52", label: str = "") -> None:
        """Check the arguments."""
        self.components, self.profile, self.label = tuple(components), check_profile(profile), label
        if not self.components or min(self.components) < 0:
            raise UsageError(f"components must be one or more positions >= 0, got {self.components}")

    @property
    def names(self) -> tuple[str, ...]:
        """Return `alpha` and a `beta` for each component."""
        return (f"alpha{self.label}", *(f"beta{self.label}[{at}]" for at in range(len(self.components))))

    def bounds(self, stack: Floats) -> Floats:
        """Scale the betas to the median squared distances."""
        squares = self._squares(stack)
        scales = [np.median(square[square > 0]) if (square > 0).any() else 1.0 for square in squares]
        return np.array([np.log(ALPHA), *(np.log(np.array(BETA) / scale) for scale in scales)])

    def variance(self, theta: Floats) -> float:
        """Return alpha."""
        return float(np.exp(self._check(theta)[0]))

    def bind(self, stack: Floats) -> Bound:
        """Square the distances."""
        return _BoundStationary(self, self._squares(stack))

    def _squares(self, stack: Floats) -> Floats:
        if max(self.components) >= len(stack):
            raise UsageError(f"the covariance needs component {max(self.components)}, got a stack of {len(stack)}")
        squares: Floats = np.square(stack[list(self.components)])
        return squares


class _BoundStationary(Bound):
    def __init__(self, covariance: Stationary, squares: Floats) -> None:
        self.covariance, self.squares = covariance, squares

    def value(self, theta: Floats) -> Floats:
        log_alpha, *log_betas = self.covariance._check(theta)
        squared = np.tensordot(np.exp(log_betas), self.squares, axes=1)
        value: Floats = np.exp(log_alpha) * correlation(self.covariance.profile, squared)[0]
        return value

    def value_and_layers(self, theta: Floats) -> tuple[Floats, Iterator[Floats]]:
        alpha, *betas = np.exp(self.covariance._check(theta))
        f, slope = correlation(self.covariance.profile, np.tensordot(betas, self.squares, axes=1))
        value, slope = alpha * f, alpha * slope
        # dK / dlog beta_i = alpha f' beta_i d_i^2.
        return value, chain([value], (beta * square * slope for beta, square in zip(betas, self.squares, strict=True)))


def check_profile(profile: Profile) -> Profile:
    """Return a profile that exists.

    Raises:
        UsageError: It does not.
    """
    if profile not in get_args(Profile):
        raise UsageError(f"profile must be one of {', '.join(get_args(Profile))}, got {profile!r}")
    return profile


def correlation(profile: Profile, squared: Floats) -> tuple[Floats, Floats]:
    """Return f and f' at squared distances.

    Args:
        profile: Which f.
        squared: r^2, of any shape, >= 0.

    Returns:
        Two arrays of that shape.
    """
    return _PROFILES[profile](squared)


def _rbf(squared: Floats) -> tuple[Floats, Floats]:
    f = np.exp(-0.5 * squared)
    return f, -0.5 * f


def _matern32(squared: Floats) -> tuple[Floats, Floats]:
    s = np.sqrt(3.0 * squared)
    decay = np.exp(-s)
    # df/dr = -3 r exp(-s), and dr / d(r^2) = 1 / (2 r): r cancels.
    return (1.0 + s) * decay, -1.5 * decay


def _matern52(squared: Floats) -> tuple[Floats, Floats]:
    s = np.sqrt(5.0 * squared)
    decay = np.exp(-s)
    return (1.0 + s + s * s / 3.0) * decay, -5.0 / 6.0 * (1.0 + s) * decay


_PROFILES: dict[Profile, Callable[[Floats], tuple[Floats, Floats]]] = {
    "rbf": _rbf,
    "matern32": _matern32,
    "matern52": _matern52,
}
