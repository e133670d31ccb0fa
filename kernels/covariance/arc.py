"""The Arc kernel on configurations: covariances of hyperparameters that exist only in some of them.

Swersky, Duvenaud, Snoek, Hutter, Osborne: Raiders of the Lost Architecture (2014); its equations have no numbers.

| symbol  | meaning                                                                     | shape      |
|---------|-----------------------------------------------------------------------------|------------|
| delta_i | whether parameter i exists in a configuration                               | bool       |
| omega_i | how much parameter i matters, > 0                                           | (D,)       |
| rho_i   | how much its value matters beside its existence, in (0, 1]                  | (D,)       |
| t       | encoded difference of two configurations in each parameter, see below       | (D, m, n)  |
| g_i     | embedding of parameter i                                                    | a vector   |
| d_i     | ||g_i(x) - g_i(x')||, the pseudo-metric                                     | (m, n)     |
| r^2     | sum_i d_i^2                                                                 | (m, n)     |

    g_i(x) = 0                                                  where delta_i is false
    g_i(x) = omega_i [sin(pi rho_i x_i / (u_i - l_i)), cos(pi rho_i x_i / (u_i - l_i))]      otherwise

    d_i = 0                                                     neither has the parameter:        t = 0
    d_i = omega_i                                               one has it:                       t = ABSENT
    d_i = omega_i sqrt(2) sqrt(1 - cos(pi rho_i t))             both: t = |x_i - x_i'| / (u_i - l_i), in [0, 1]

so that r depends on t, omega and rho alone. Two configurations that differ in a choice without an order are at t = 1/2:
the paper has no categorical parameters, and 1/2 is the largest t for which any number of choices fits into an embedding
with all of them equally far apart (vectors of length omega at an angle of pi rho t each, at most a right angle). The
covariances, positive definite functions of a Euclidean distance, are therefore positive semi-definite for rho <= 1.

Both invariances of the paper follow: what a configuration says of a parameter that it does not have changes no
covariance, neither with configurations that lack it too nor with those that have it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from archive.errors import UsageError
from archive.kernels.base import Components
from archive.kernels.covariance.base import ALPHA, Bound, Covariance, Floats
from archive.kernels.covariance.stationary import Profile, check_profile, correlation
from archive.spaces.conditional import Categorical, Conditional, Configuration

ABSENT = 2.0
OTHER_CHOICE = 0.5
# Scores are standardised and d_i is at most 2 omega_i: at the lower end a parameter is ignored, at the upper end
# configurations that differ in it are strangers.
OMEGA = (1e-2, 1e1)
# At the lower end only whether the parameter exists matters; above 1 the arc would come back to where it began.
RHO = (1e-2, 1.0)


class Differences:
    """The encoded differences t of configurations, in the place of a distance: what `ArcCovariance` takes.

    Args:
        space: The parameters.
    """

    def __init__(self, space: Conditional) -> None:
        """Keep the parameters."""
        self.space = space
        self._categorical = np.array([isinstance(parameter, Categorical) for parameter in space.parameters])

    @property
    def components(self) -> tuple[str, ...]:
        """Return the names of the parameters: one component each."""
        return self.space.names

    def distances(self, first: Sequence[Configuration], second: Sequence[Configuration] | None = None) -> Components:
        """Return the differences of all pairs, as components without a normalised form.

        Args:
            first: m configurations.
            second: n configurations; None stands for `first`.

        Returns:
            Components of shape (D, m, n): each entry in [0, 1], or `ABSENT`.

        Raises:
            UsageError: A value is missing or out of range.
        """
        rows = self.space.encode(first)
        columns = rows if second is None else self.space.encode(second)
        stack = differences(rows, columns, self._categorical)
        return Components.of_stack(stack, len(stack))


def differences(first: Floats, second: Floats, categorical: NDArray[np.bool_]) -> Floats:
    """Return t for the codes of two sets of configurations (`Conditional.encode`).

    Args:
        first: (m, D), NaN where a parameter does not exist.
        second: (n, D).
        categorical: (D,), which parameters are choices without an order.

    Returns:
        (D, m, n) float64.
    """
    x, y = first.T[:, :, None], second.T[:, None, :]
    # Where either lacks the parameter the difference is NaN.
    stack: Floats = np.abs(x - y)
    stack[categorical] = np.where(stack[categorical] > 0, OTHER_CHOICE, stack[categorical])
    lacking = np.isnan(x).astype(np.int8) + np.isnan(y)
    stack[lacking == 1] = ABSENT
    stack[lacking == 2] = 0.0
    return stack


def pseudo_metric(stack: Floats, omega: Floats, rho: Floats) -> Floats:
    """Return r: (m, n) float64, a pseudo-metric of configurations.

    Symmetric, keeps the triangle inequality, and is 0 for configurations that share what exists in them.
    O(D) a pair.

    Args:
        stack: (D, m, n) of t.
        omega: (D,).
        rho: (D,).
    """
    absent = stack == ABSENT
    parts = np.where(absent, 1.0, chord(np.pi * rho[:, None, None] * np.where(absent, 0.0, stack)))
    distances: Floats = np.sqrt(np.tensordot(np.square(omega), parts, axes=1))
    return distances


def chord(angle: Floats) -> Floats:
    """Return the squared distance of two points of the unit circle, 2 (1 - cos), without its loss of digits near 0."""
    half = np.sin(0.5 * angle)
    return 4.0 * half * half


def embedding(space: Conditional, configurations: Sequence[Configuration], omega: Floats, rho: Floats) -> Floats:
    """Return g, whose Euclidean distances are the pseudo-metric.

    A real parameter has two coordinates, the paper's up to a rotation: x_i - l_i stands for x_i, which no distance
    notices. A categorical one has a coordinate that all choices share and one for each choice.

    Args:
        space: The parameters.
        configurations: n of them.
        omega: (D,).
        rho: (D,).

    Returns:
        (n, coordinates) float64.
    """
    codes = space.encode(configurations)
    parts = [
        _choice(code, len(parameter.choices), r) if isinstance(parameter, Categorical) else _arc(code, r)
        for parameter, code, r in zip(space.parameters, codes.T, rho, strict=True)
    ]
    return np.hstack([w * np.where(np.isnan(part), 0.0, part) for w, part in zip(omega, parts, strict=True)])


def _arc(code: Floats, rho: float) -> Floats:
    angle = np.pi * rho * code
    return np.stack([np.sin(angle), np.cos(angle)], axis=1)


def _choice(code: Floats, choices: int, rho: float) -> Floats:
    shared, own = choice_coordinates(rho)
    chosen = np.where(code[:, None] == np.arange(choices), own, 0.0)
    return np.where(np.isnan(code)[:, None], np.nan, np.hstack([np.full((len(code), 1), shared), chosen]))


def choice_coordinates(rho: float) -> tuple[float, float]:
    """Return the coordinate that all choices share and the one that is a choice's own; their squares add up to 1."""
    # sin(pi (1 - rho) / 2) is the cosine of pi rho / 2 and exactly 0 at rho = 1.
    cosine = float(np.sin(0.5 * np.pi * (1.0 - rho)))
    return float(np.sqrt(cosine)), float(np.sqrt(1.0 - cosine))


class ArcCovariance(Covariance):
    """alpha * f(r): the Arc kernel, a covariance of configurations by their encoded differences.

    theta = log(alpha, omega_1 … omega_D, rho_1 … rho_D). O(D) a pair, for the gradient too. Positive semi-definite for
    all theta within `bounds`.

    Args:
        names: Names of the parameters, as many as the stack has components (`Differences.components`).
        profile: `"matern52"`, the paper's Matern covariance, `"matern32"` or `"rbf"`.

    Raises:
        UsageError: An argument is out of range.
    """

    def __init__(self, names: Sequence[str], profile: Profile = "matern52") -> None:
        """Check the arguments."""
        self.parameters, self.profile = tuple(names), check_profile(profile)
        if not self.parameters:
            raise UsageError("names must be one or more parameters, got none")

    @property
    def names(self) -> tuple[str, ...]:
        """Return `alpha`, an `omega` for each parameter, then a `rho` for each."""
        return ("alpha", *(f"{symbol}[{name}]" for symbol in ("omega", "rho") for name in self.parameters))

    def bounds(self, stack: Floats) -> Floats:
        """Return the box; it does not depend on the observations, as t has no unit."""
        d = len(self.parameters)
        box: Floats = np.log([ALPHA, *[OMEGA] * d, *[RHO] * d])
        return box

    def variance(self, theta: Floats) -> float:
        """Return alpha."""
        return float(np.exp(self._check(theta)[0]))

    def bind(self, stack: Floats) -> Bound:
        """Tell apart what one configuration lacks and what both have."""
        if len(stack) != len(self.parameters):
            raise UsageError(f"the covariance needs {len(self.parameters)} components, got a stack of {len(stack)}")
        return _BoundArc(self, stack)


class _BoundArc(Bound):
    def __init__(self, covariance: ArcCovariance, stack: Floats) -> None:
        self.covariance = covariance
        self.absent = stack == ABSENT
        self.turns = np.pi * np.where(self.absent, 0.0, stack)

    def value(self, theta: Floats) -> Floats:
        alpha, omega, rho = self._natural(theta)
        value: Floats = alpha * correlation(self.covariance.profile, self._squared(omega, rho))[0]
        return value

    def value_and_layers(self, theta: Floats) -> tuple[Floats, Iterator[Floats]]:
        alpha, omega, rho = self._natural(theta)
        f, slope = correlation(self.covariance.profile, self._squared(omega, rho))
        value, slope = alpha * f, alpha * slope
        each = range(len(omega))
        # d(r^2) / dlog omega = 2 d_i^2, and d(r^2) / dlog rho = 2 omega^2 (pi rho t) sin(pi rho t).
        stretched = (2.0 * slope * self._part(at, omega[at], rho[at]) for at in each)
        turned = (2.0 * slope * omega[at] ** 2 * self._bend(rho[at] * self.turns[at]) for at in each)
        return value, chain([value], stretched, turned)

    def _squared(self, omega: Floats, rho: Floats) -> Floats:
        # Parameter by parameter: the temporaries stay in the cache.
        squared = np.zeros(self.turns.shape[1:])
        for at, (w, r) in enumerate(zip(omega, rho, strict=True)):
            squared += self._part(at, w, r)
        return squared

    def _part(self, at: int, omega: float, rho: float) -> Floats:
        part: Floats = omega**2 * (self.absent[at] + chord(rho * self.turns[at]))
        return part

    @staticmethod
    def _bend(angle: Floats) -> Floats:
        bend: Floats = angle * np.sin(angle)
        return bend

    def _natural(self, theta: Floats) -> tuple[float, Floats, Floats]:
        natural: Floats = np.exp(self.covariance._check(theta))
        omega, rho = np.split(natural[1:], 2)
        return float(natural[0]), omega, rho
