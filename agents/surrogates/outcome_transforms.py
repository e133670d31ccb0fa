"""Outcome transforms: increasing functions of scores, applied before a surrogate is fitted.

| name                    | transform g                                          | inverse                             |
|-------------------------|------------------------------------------------------|-------------------------------------|
| `none`                  | y                                                    | g                                   |
| `standardise`           | y, then mean 0 and standard deviation 1              | g                                   |
| `compress-below-median` | y above the median t, t - x / (1 + x / b) below it,  | g above t, t - u / (1 - u / b)      |
|                         | x = t - y, b = 3 (median excess over t above it)     | below it, u = t - g                 |
| `rank-normal`           | normal quantile of the rank, (rank - 1/2) / n        | linear between known scores and,    |
|                         |                                                      | above them, with the mean slope     |
| `log-regret`            | y above the best score b; b - c log(1 + (b - y) / c) | g above b; b + c - c exp((b-g) / c) |
|                         | below it, c = b - t, t the median                    | below it                            |

After g, all but `none` standardise. A linear transform is undone in the posterior, so that mean,
standard deviation and incumbent are in score units. After a nonlinear one the posterior is of
g(score): acquisitions compare architectures on this scale, where the Gaussian fits.
`Posterior.in_scores` undoes g for reports.

The support of a Gaussian exceeds the range of g: with `compress-below-median` no score maps to more
than b below t, and the inverse of `log-regret` is unbounded below. An inverse therefore never
returns less than the worst score observed.

`compress-below-median` is for networks that fail to train: the differences between bad scores carry
little information about good ones, and as outliers they would dominate the fit. `log-regret`
compresses all scores below the incumbent, the more the further below, so that resolution is highest
near the incumbent; its unit follows the search. Above the incumbent both are the identity, so that
an improvement is in score units. `rank-normal` is for scores without a meaningful scale. On
NAS-Bench-201, after 20 and 50 networks, `compress-below-median` and `log-regret` rank the other
networks better than `standardise` (Spearman's rho 0.02 to 0.04 higher, 8 seeds, Hamming and
Weisfeiler-Lehman distances).

`log-regret` bounds the regrets of trainings that went wrong (`archive.agents.observations`). With one
loss of a million among 30 losses of NAS-Bench-201 (CIFAR-100), the stacked models of `portfolio`
otherwise rank other networks no better than chance (Spearman's rho -0.1; 0.5 with the bound, and
0.8 without that loss; 6 seeds).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtri

from archive.agents.observations import LARGEST, fences
from archive.agents.surrogates.base import Array
from archive.errors import NumericalError, UnknownNameError

SMALLEST = 1e-150
"""Spread below which variances in squared score units underflow; above `LARGEST` they overflow."""


LEAST_FACTOR = 0.01
"""Least factor of the noise variance of a compressed score.

Its noise is then a tenth of the noise of an uncompressed score. Without noise, two evaluations of
similar bad networks would contradict each other."""


class MonotoneMap(ABC):
    """The function g of an outcome transform: increasing, with an inverse. Immutable."""

    @abstractmethod
    def __call__(self, scores: Array) -> Array:
        """Return g of scores, of any shape."""

    @abstractmethod
    def inverse(self, transformed: Array) -> Array:
        """Map values of g back to scores, of any shape: finite and nondecreasing.

        `inverse(g(y))` is y for every y at or above the worst score observed, and the worst score
        for lower ones.
        """


@dataclass(frozen=True)
class Scale:
    """A fitted outcome transform: standardised values are (g(y) - centre) / spread.

    Attributes:
        centre: Mean of the transformed scores.
        spread: Their standard deviation; 1 where all scores are equal.
        monotone_map: g; None for the identity.
        noise_of_scores: Whether noise has one variance in score units, so that the noise of
            g(score) follows the slope of g; else it has one variance in units of g.
    """

    centre: float
    spread: float
    monotone_map: MonotoneMap | None = None
    noise_of_scores: bool = False

    @classmethod
    def of(
        cls, scores: Array, monotone_map: MonotoneMap | None = None, noise_of_scores: bool = False
    ) -> Scale:
        """Fit the scale to n scores, (n,) float64.

        Raises:
            NumericalError: A score is so large that variances would overflow.
        """
        largest = float(np.abs(scores).max())
        if largest > LARGEST:
            raise NumericalError(f"scores must be within {LARGEST:g} of 0, got {largest:g}")

        transformed = scores if monotone_map is None else monotone_map(scores)
        spread = float(transformed.std())
        # Rounding gives equal scores a spread of some units in the last place.
        equal = spread <= max(1e-12 * float(np.abs(transformed).max()), SMALLEST)
        return cls(
            float(transformed.mean()), 1.0 if equal else spread, monotone_map, noise_of_scores
        )

    @property
    def linear(self) -> bool:
        """Whether posteriors are of scores rather than of g(score)."""
        return self.monotone_map is None

    def standardise(self, scores: Array) -> Array:
        """Return scores in units of the spread, from the centre: (n,) float64."""
        transformed = scores if self.monotone_map is None else self.monotone_map(scores)
        return (transformed - self.centre) / self.spread

    def log_slopes(self, scores: Array) -> Array:
        """Return the logarithm of the derivative of `standardise` at n scores: (n,) float64.

        The density of a standardised value times the slope is the density of the score, comparable
        across transforms.
        """
        # g has kinks, and between observed scores `rank-normal` is linear: a central difference
        # gives the local slope. An outlier must not widen it.
        lower, upper = np.quantile(scores, [0.25, 0.75]).tolist()
        step = 1e-4 * ((upper - lower) or float(scores.std()) or 1.0)
        rises = self.standardise(scores + step) - self.standardise(scores - step)
        return np.log(np.maximum(rises / (2.0 * step), np.finfo(np.float64).tiny))

    def noise_factors(self, keys: Sequence[str], scores: Array) -> Array | None:
        """Return the noise variance of n evaluations, in units of its value at slope 1.

        None stands for 1.

        By the delta method it is the square of the slope, here at the mean score of each network.

        Args:
            keys: The key of the network of each evaluation.
            scores: (n,) float64.
        """
        if not self.noise_of_scores or self.monotone_map is None:
            return None

        rows = np.unique(np.asarray(keys), return_inverse=True)[1]
        means = np.bincount(rows, scores) / np.bincount(rows)
        factors = np.square(np.exp(self.log_slopes(means)) * self.spread)
        return np.maximum(factors, LEAST_FACTOR)[rows]

    def restore(self, transformed: Array) -> Array:
        """Map values of g back to scores, of any shape; see `MonotoneMap.inverse`."""
        return transformed if self.monotone_map is None else self.monotone_map.inverse(transformed)


class OutcomeTransform(ABC):
    """An outcome transform: fits a `Scale` to the scores of a history."""

    name: ClassVar[str]

    @abstractmethod
    def learn(self, scores: Array) -> Scale:
        """Fit the scale to n finite scores, (n,) float64; scores added later do not change it."""


class Unchanged(OutcomeTransform):
    """The identity, for scores that the caller has standardised."""

    name = "none"

    def learn(self, scores: Array) -> Scale:
        """See `OutcomeTransform.learn`."""
        Scale.of(scores)
        return Scale(0.0, 1.0)


class Standardise(OutcomeTransform):
    """Mean 0 and standard deviation 1."""

    name = "standardise"

    def learn(self, scores: Array) -> Scale:
        """See `OutcomeTransform.learn`."""
        return Scale.of(scores)


class RankNormal(OutcomeTransform):
    """Normal quantiles of the ranks, linear between observed scores and beyond them."""

    name = "rank-normal"

    def learn(self, scores: Array) -> Scale:
        """See `OutcomeTransform.learn`."""
        Scale.of(scores)
        distinct, repeats = np.unique(scores, return_counts=True)
        last = np.cumsum(repeats)
        # Ties get the mean of their ranks, counted from 1.
        ranks = 0.5 * (last + (last - repeats) + 1)
        quantiles = ndtri((ranks - 0.5) / len(scores))
        return Scale.of(scores, _Quantiles(distinct, quantiles))


class CompressBelowMedian(OutcomeTransform):
    """The identity above the median; compression towards a lower bound below it.

    Args:
        noise_of_scores: See `Scale`.
    """

    name = "compress-below-median"

    def __init__(self, noise_of_scores: bool = False) -> None:
        self.noise_of_scores = noise_of_scores

    def learn(self, scores: Array) -> Scale:
        """See `OutcomeTransform.learn`."""
        # The score of a failed training must not determine the least depth.
        plain = Scale.of(np.maximum(scores, fences(scores)))
        median = float(np.median(scores))
        above = scores[scores > median] - median
        depth = 3.0 * float(np.median(above)) if above.size else plain.spread
        # A depth negligible beside the spread would make all scores below the median equal.
        compression = _Compression(median, max(depth, 1e-6 * plain.spread), float(scores.min()))
        return Scale.of(scores, compression, self.noise_of_scores)


class LogRegret(OutcomeTransform):
    """The logarithm of the regret, in units of the median regret.

    Args:
        best: b; None for the greatest score that it is fitted to.
    """

    name = "log-regret"

    def __init__(self, best: float | None = None) -> None:
        self.best = best

    def learn(self, scores: Array) -> Scale:
        """See `OutcomeTransform.learn`."""
        fence = float(fences(scores))
        best = float(scores.max()) if self.best is None else self.best
        plain = Scale.of(np.maximum(scores, fence))
        # Where half of the scores equal or exceed the best, the median regret is at most 0; the
        # spread replaces it.
        regret = best - float(np.median(scores))
        unit = regret if regret > 1e-6 * plain.spread else plain.spread
        # Where the usual results violate a constraint, the best score may be an outlier
        # itself. No regret below it is then usual.
        usual = best - fence if best > fence else math.inf
        return Scale.of(scores, LogRegretMap(best, unit, float(scores.min()), usual))


@dataclass(frozen=True)
class LogRegretMap(MonotoneMap):
    """g of `log-regret`: continuously differentiable.

    Attributes:
        best: b.
        unit: c, positive.
        worst: The worst score observed.
        usual: Largest regret u of a score that is no outlier (`archive.agents.observations`), positive.
            A regret x beyond u counts as u (2 - u / x), less than 2 u.
    """

    best: float
    unit: float
    worst: float
    usual: float = math.inf

    def __call__(self, scores: Array) -> Array:
        """See `MonotoneMap.__call__`."""
        short = np.maximum(self.best - scores, 0.0)
        if short.size and short.max() > self.usual:
            short = np.minimum(short, self.usual) * (
                2.0 - self.usual / np.maximum(short, self.usual)
            )

        return np.maximum(scores, self.best) - self.unit * np.log1p(short / self.unit)

    def inverse(self, transformed: Array) -> Array:
        """See `MonotoneMap.inverse`."""
        # The worst score is less than exp(50) units below the best; larger exponents may overflow.
        short = self.unit * np.expm1(np.clip((self.best - transformed) / self.unit, 0.0, 50.0))
        if math.isfinite(self.usual):
            share = np.clip(2.0 - short / self.usual, np.finfo(np.float64).epsneg, 1.0)
            short = np.minimum(short, self.usual) / share

        return np.maximum(np.maximum(transformed, self.best) - short, self.worst)


@dataclass(frozen=True, eq=False)
class _Quantiles(MonotoneMap):
    observed: Array
    quantiles: Array

    def __call__(self, scores: Array) -> Array:
        low = float(self.observed[0])
        high = float(self.observed[-1])
        beyond = np.minimum(scores - low, 0.0) + np.maximum(scores - high, 0.0)
        transformed: Array = np.interp(scores, self.observed, self.quantiles) + self._slope * beyond
        return transformed

    def inverse(self, transformed: Array) -> Array:
        above = np.maximum(transformed - self.quantiles[-1], 0.0)
        scores: Array = np.interp(transformed, self.quantiles, self.observed) + above / self._slope
        return scores

    @property
    def _slope(self) -> float:
        low = float(self.observed[0])
        high = float(self.observed[-1])
        return float((self.quantiles[-1] - self.quantiles[0]) / (high - low)) if high > low else 1.0


@dataclass(frozen=True)
class _Compression(MonotoneMap):
    median: float
    depth: float
    worst: float

    def __call__(self, scores: Array) -> Array:
        short = np.maximum(self.median - scores, 0.0)
        return np.maximum(scores, self.median) - short / (1.0 + short / self.depth)

    def inverse(self, transformed: Array) -> Array:
        short = np.maximum(self.median - transformed, 0.0)
        # Fraction of the depth; the whole depth is the image of no finite score.
        used = np.minimum(short / self.depth, 1.0 - np.finfo(np.float64).epsneg)
        return np.maximum(
            np.maximum(transformed, self.median) - used * self.depth / (1.0 - used), self.worst
        )


_transforms: dict[str, type[OutcomeTransform]] = {
    kind.name: kind for kind in (Unchanged, Standardise, RankNormal, CompressBelowMedian, LogRegret)
}


def names() -> tuple[str, ...]:
    """Return the names of all transforms."""
    return tuple(sorted(_transforms))


def get(name: str | OutcomeTransform) -> OutcomeTransform:
    """Return a transform by name; a transform is returned unchanged.

    Raises:
        UnknownNameError: There is no such transform.
    """
    if isinstance(name, OutcomeTransform):
        return name

    if name not in _transforms:
        raise UnknownNameError("transform", name, _transforms)

    return _transforms[name]()
