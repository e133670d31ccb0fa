"""Covariances of distances: exp(-sum_i beta_i d_i^p), their sums, and gradients.

| symbol | meaning                                                           | shape              |
|--------|-------------------------------------------------------------------|--------------------|
| d      | components of a distance, stacked (`Components.stack`)            | (c, m, n)          |
| theta  | logarithms of the parameters, flat: theta = log(alpha, beta_1, …) | (parameters,)      |
| K      | covariance                                                        | (m, n)             |
| dK     | dK / dtheta, one layer per parameter                              | (parameters, m, n) |

NASBOT's covariance, eq. (4), is alpha exp(-sum_i beta_i d_i) + alpha' exp(-sum_i beta'_i d'_i^2)
over the unnormalised and the normalised OTMANN distances. It is not known to be positive
semi-definite: see `archive.kernels.covariance.spectrum`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import final

import numpy as np
from numpy.typing import NDArray

from archive.errors import UsageError

Floats = NDArray[np.float64]

ALPHA = (1e-2, 1e1)
"""Bounds of alpha, for standardised scores."""

BETA = (1e-3, 1e2)
"""Bounds of beta, in units of 1 / (median of d^p).

At the lower bound a component has no influence; at the upper one all networks are uncorrelated."""


class Covariance(ABC):
    """A covariance as a function of distances and of a flat vector of log-parameters. Immutable."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Names of the parameters, in the order of theta."""

    @abstractmethod
    def bounds(self, stack: Floats) -> Floats:
        """Return the bounds of theta.

        Args:
            stack: (c, m, n) distances of the observations, which set the scale of the betas; a
                component without a positive distance has scale 1.

        Returns:
            (parameters, 2) float64, lower and upper bounds.
        """

    @abstractmethod
    def variance(self, theta: Floats) -> float:
        """Return the covariance at distance 0: the prior variance of every network."""

    @abstractmethod
    def bind(self, stack: Floats) -> BoundCovariance:
        """Return the covariance of one block, for many values of theta.

        Args:
            stack: (c, m, n) distances; the caller must not change them afterwards.

        Raises:
            UsageError: The stack has too few components.
        """

    def value(self, stack: Floats, theta: Floats) -> Floats:
        """Return K for (c, m, n) distances and (parameters,) log-parameters: (m, n) float64.

        Raises:
            UsageError: theta has another length, or the stack too few components.
        """
        return self.bind(stack).value(theta)

    def value_and_gradient(self, stack: Floats, theta: Floats) -> tuple[Floats, Floats]:
        """Return K and dK: (m, n) and (parameters, m, n) float64; arguments as in `value`.

        `BoundCovariance.value_and_layers` keeps one layer in memory at a time, for large blocks.
        """
        value, layers = self.bind(stack).value_and_layers(theta)
        return value, np.stack(list(layers))

    def __add__(self, other: Covariance) -> Sum:
        """Return the sum; its theta is the concatenation of both thetas."""
        return Sum((self, other))

    def _check(self, theta: Floats) -> Floats:
        checked = np.asarray(theta, dtype=np.float64)
        if checked.shape != (len(self.names),):
            raise UsageError(
                f"theta must hold {len(self.names)} parameters, got shape {checked.shape}"
            )

        return checked


class BoundCovariance(ABC):
    """A covariance bound to one block of distances: the part independent of theta is computed once.

    Immutable.
    """

    @abstractmethod
    def value(self, theta: Floats) -> Floats:
        """Return K at (parameters,) log-parameters: (m, n) float64, a new array."""

    @abstractmethod
    def value_and_layers(self, theta: Floats) -> tuple[Floats, Iterator[Floats]]:
        """Return K, and dK as a lazy iterator of one (m, n) layer for each parameter.

        A layer may be K itself; the caller must change neither before the iterator is exhausted.
        """


class Exponential(Covariance):
    """alpha * exp(-sum_i beta_i d_i^p) over some of the components.

    Args:
        components: Positions in the stack; one beta for each.
        power: p, in (0, 2].
        label: Suffix of the parameters' names, which distinguishes the terms of a sum.

    Raises:
        UsageError: An argument is out of range.
    """

    def __init__(self, components: Sequence[int], power: float = 1.0, label: str = "") -> None:
        self.components = tuple(components)
        self.power = float(power)
        self.label = label
        if not self.components or min(self.components) < 0:
            raise UsageError(
                f"components must be one or more positions >= 0, got {self.components}"
            )

        if not 0 < self.power <= 2:
            raise UsageError(f"power must be in (0, 2], got {power}")

    @property
    def names(self) -> tuple[str, ...]:
        """Return `alpha` and a `beta` for each component."""
        return (
            f"alpha{self.label}",
            *(f"beta{self.label}[{component}]" for component in range(len(self.components))),
        )

    def bounds(self, stack: Floats) -> Floats:
        """Scale the betas to the median distances."""
        bounds = [np.log(ALPHA)]
        for powers in self._powers(stack):
            positive = powers[powers > 0]
            scale = np.median(positive) if positive.size else 1.0
            bounds.append(np.log(np.array(BETA) / scale))

        return np.array(bounds)

    def variance(self, theta: Floats) -> float:
        """Return alpha."""
        return float(np.exp(self._check(theta)[0]))

    def bind(self, stack: Floats) -> BoundCovariance:
        """Raise the distances to the power p."""
        return _BoundExponential(self, self._powers(stack))

    def _powers(self, stack: Floats) -> Floats:
        if max(self.components) >= len(stack):
            raise UsageError(
                f"the covariance needs component {max(self.components)}, got a "
                f"stack of {len(stack)}"
            )

        first = self.components[0]
        size = len(self.components)
        contiguous = self.components == tuple(range(first, first + size))
        # A slice is a view: the distances of thousands of networks take gigabytes.
        selected = stack[first : first + size] if contiguous else stack[list(self.components)]
        if self.power == 1:
            return selected

        return selected * selected if self.power == 2 else selected**self.power


class _BoundExponential(BoundCovariance):
    def __init__(self, covariance: Exponential, powers: Floats) -> None:
        self.covariance = covariance
        self.powers = powers

    def value(self, theta: Floats) -> Floats:
        log_alpha, *log_betas = self.covariance._check(theta)
        value: Floats = np.exp(log_alpha - np.tensordot(np.exp(log_betas), self.powers, axes=1))
        return value

    def value_and_layers(self, theta: Floats) -> tuple[Floats, Iterator[Floats]]:
        value = self.value(theta)
        betas = np.exp(self.covariance._check(theta)[1:])
        falls = (-beta * power * value for beta, power in zip(betas, self.powers, strict=True))
        return value, chain([value], falls)


class Sum(Covariance):
    """Sum of covariances of one stack; theta is the concatenation of theirs.

    Args:
        terms: The summands.

    Raises:
        UsageError: `terms` is empty.
    """

    def __init__(self, terms: Sequence[Covariance]) -> None:
        self.terms = tuple(terms)
        if not self.terms:
            raise UsageError("terms must be one or more covariances, got none")

        self._ends = np.cumsum([len(term.names) for term in self.terms])[:-1]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the terms' names; equal names are distinguished by the number of their term."""
        names: list[str] = []
        numbered: list[str] = []
        for number, term in enumerate(self.terms):
            names += term.names
            numbered += [f"{number}.{name}" for name in term.names]

        return tuple(names if len(set(names)) == len(names) else numbered)

    def bounds(self, stack: Floats) -> Floats:
        """Return the terms' bounds."""
        return np.concatenate([term.bounds(stack) for term in self.terms])

    def variance(self, theta: Floats) -> float:
        """Return the sum of the terms' variances."""
        total = 0.0
        for term, part in zip(self.terms, self._split(theta), strict=True):
            total += term.variance(part)

        return total

    def bind(self, stack: Floats) -> BoundCovariance:
        """Bind each term."""
        return _BoundSum(self, stack)

    def _split(self, theta: Floats) -> list[Floats]:
        return np.split(self._check(theta), self._ends)


class _BoundSum(BoundCovariance):
    def __init__(self, whole: Sum, stack: Floats) -> None:
        self.whole = whole
        self.terms = tuple(term.bind(stack) for term in whole.terms)

    def value(self, theta: Floats) -> Floats:
        parts = zip(self.terms, self.whole._split(theta), strict=True)
        total: Floats = np.sum([term.value(part) for term, part in parts], axis=0)
        return total

    def value_and_layers(self, theta: Floats) -> tuple[Floats, Iterator[Floats]]:
        parts = zip(self.terms, self.whole._split(theta), strict=True)
        values, layers = zip(*(term.value_and_layers(part) for term, part in parts), strict=True)
        return np.sum(values, axis=0), chain.from_iterable(layers)


def exponential(components: int, power: float = 1.0, label: str = "") -> Exponential:
    """Return alpha exp(-sum_i beta_i d_i^p) over the first components.

    At p = 1 it is eq. (25) of tree-Wasserstein.

    Args:
        components: Number of components; each has its own beta (automatic relevance determination).
        power: p, in (0, 2].
        label: Suffix of the parameters' names.
    """
    return Exponential(range(components), power, label)


def nasbot_covariance(nu: int = 4) -> Sum:
    """Return eq. (4) of NASBOT for the stack of an OTMANN distance.

    Args:
        nu: Number of nu_str of the stack: the first `nu` components are unnormalised (p = 1), the
            next `nu` normalised (p = 2). With 4 there are 10 parameters; the noise variance is the
            surrogate's.
    """
    return Sum((Exponential(range(nu), 1.0), Exponential(range(nu, 2 * nu), 2.0, "_normalised")))


LOG_WEIGHT_BOUND = 4.0
"""Largest absolute value of log w.

The prior of log w has a quarter of the bound as its standard deviation: most weights are between
1/e and e."""


class CommonScale(Covariance):
    """A covariance with theta = log(alpha, beta, w_1, …, w_c).

    beta is common to all components, and each has a weight relative to it, with a prior centred
    at 1. The few observations at the beginning of a search determine the common scale, and a weight
    departs from 1 where observations require it. Separate priors of c betas are either so wide that
    twenty observations are overfitted, or so narrow that a component without influence keeps its
    weight.

    Args:
        components: c.
    """

    def __init__(self, components: int) -> None:
        self.components = components

    @property
    def names(self) -> tuple[str, ...]:
        """Return `alpha`, `beta` and a `weight` for each component."""
        return ("alpha", "beta", *(f"weight[{component}]" for component in range(self.components)))

    def bounds(self, stack: Floats) -> Floats:
        """Scale beta to the median of all positive distances."""
        positive = stack[stack > 0]
        scale = np.median(positive) if positive.size else 1.0
        weights = np.tile([-LOG_WEIGHT_BOUND, LOG_WEIGHT_BOUND], (self.components, 1))
        return np.vstack([np.log(ALPHA), np.log(np.array(BETA) / scale), weights])

    def variance(self, theta: Floats) -> float:
        """Return alpha."""
        return float(np.exp(self._check(theta)[0]))


@final
class CommonScaleARD(CommonScale):
    """alpha exp(-beta / c * sum_i w_i d_i)."""

    def bind(self, stack: Floats) -> BoundCovariance:
        """Bind the exponential of c betas."""
        return _BoundCommonScale(self, exponential(self.components).bind(stack))

    def plain_theta(self, theta: Floats) -> Floats:
        """Return theta of the plain exponential: log(alpha, beta w_1 / c, …, beta w_c / c)."""
        log_alpha, log_beta, *log_weights = self._check(theta)
        log_betas = log_beta - np.log(self.components) + np.array(log_weights)
        return np.concatenate([[log_alpha], log_betas])


class _BoundCommonScale(BoundCovariance):
    def __init__(self, covariance: CommonScaleARD, plain: BoundCovariance) -> None:
        self.covariance = covariance
        self.plain = plain

    def value(self, theta: Floats) -> Floats:
        return self.plain.value(self.covariance.plain_theta(theta))

    def value_and_layers(self, theta: Floats) -> tuple[Floats, Iterator[Floats]]:
        plain_theta = self.covariance.plain_theta(theta)
        value, layers = self.plain.value_and_layers(plain_theta)
        next(layers)
        # The layers are computed twice: keeping up to thirty of them would take too much memory.
        common = np.zeros_like(value)
        for layer in layers:
            common += layer

        _, again = self.plain.value_and_layers(plain_theta)
        next(again)
        return value, chain([value, common], again)
