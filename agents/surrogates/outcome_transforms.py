"""Outcome transforms: increasing functions of scores, applied before a Gaussian process sees them.

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

After g, all but `none` standardise. A linear transform is undone in the posterior, so that mean, standard deviation
and incumbent are in score units. After another the posterior is one of g(score): acquisitions compare architectures
there, where they are alike to a Gaussian. `Posterior.in_scores` undoes g for people.

A Gaussian reaches where g maps no score to, or only scores worse than any: of `compress-below-median` nothing is more
than b below t, and an exponential has no end. So an inverse never returns less than the worst score observed: a
posterior that reaches below it says "as bad as the worst".

`compress-below-median` is for networks that fail to train: how bad the bad ones are says little about the good ones,
and as outliers they drown them. `log-regret` does the same to all that is not best, the more the further it is from the
best: the scale of what is left to gain decides, and that scale follows the search. Above the best both leave scores as
they are, so that an improvement is one in score units. `rank-normal` is for scores without a meaningful scale. On
NAS-Bench-201, after 20 and 50 networks, either ranks the others better than `standardise` does (Spearman's rho 0.02 to
0.04 higher, 8 seeds, Hamming and Weisfeiler-Lehman distances).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtri

from archive.agents.surrogates.base import Array
from archive.errors import NumericalError, UnknownNameError

# Beyond these, variances in squared score units overflow, or vanish.
LARGEST = 1e150
SMALLEST = 1e-150


class MonotoneMap(ABC):
    """g, increasing; immutable."""

    @abstractmethod
    def __call__(self, scores: Array) -> Array:
        """Return g of scores, of any shape."""

    @abstractmethod
    def inverse(self, transformed: Array) -> Array:
        """Return the scores of values of g, of any shape: finite, never decreasing in the values.

        `inverse(g(y))` is y for all y from the worst score observed upwards, and the worst score for those below it.
        """


@dataclass(frozen=True)
class Scale:
    """How scores and standardised values convert: (g(y) - centre) / spread.

    Attributes:
        centre: Mean of the transformed scores.
        spread: Their standard deviation; 1 where all are equal, a single one included.
        warp: g, increasing; None for the identity.
    """

    centre: float
    spread: float
    monotone_map: MonotoneMap | None = None

    @classmethod
    def of(cls, scores: Array, monotone_map: MonotoneMap | None = None) -> Scale:
        """Return the scale of n scores, (n,) float64.

        Raises:
            NumericalError: A score is so large that variances would overflow.
        """
        largest = float(np.abs(scores).max())
        if largest > LARGEST:
            raise NumericalError(f"scores must be within {LARGEST:g} of 0, got {largest:g}")
        transformed = scores if monotone_map is None else monotone_map(scores)
        spread = float(transformed.std())
        # Rounding leaves equal scores a spread of some units in the last place.
        equal = spread <= max(1e-12 * float(np.abs(transformed).max()), SMALLEST)
        return cls(float(transformed.mean()), 1.0 if equal else spread, monotone_map)

    @property
    def linear(self) -> bool:
        """Whether the posterior is one of scores."""
        return self.monotone_map is None

    def standardise(self, scores: Array) -> Array:
        """Return scores in units of the spread, from the centre: (n,) float64."""
        transformed = scores if self.monotone_map is None else self.monotone_map(scores)
        return (transformed - self.centre) / self.spread

    def log_slopes(self, scores: Array) -> Array:
        """Return the logarithm of the derivative of `standardise` at n scores: (n,) float64.

        Densities of standardised values times the slopes are densities of scores, which compare across scales.
        """
        # Warps have kinks and, between known scores, steps of their own: a central difference sees what is near.
        step = 1e-4 * (float(scores.std()) or 1.0)
        rises = self.standardise(scores + step) - self.standardise(scores - step)
        return np.log(np.maximum(rises / (2.0 * step), np.finfo(np.float64).tiny))

    def restore(self, transformed: Array) -> Array:
        """Return the scores of values of g, of any shape; the inverse of `warp`, see `MonotoneMap.inverse`."""
        return transformed if self.monotone_map is None else self.monotone_map.inverse(transformed)


class OutcomeTransform(ABC):
    """How to choose a scale from the scores of a history."""

    name: ClassVar[str]

    @abstractmethod
    def learn(self, scores: Array) -> Scale:
        """Return the scale for n finite scores, (n,) float64; it stays as it is when scores are added."""


class Unchanged(OutcomeTransform):
    """Scores that the caller has standardised."""

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
    """Normal quantiles of the ranks; between known scores linear, beyond them with the mean slope."""

    name = "rank-normal"

    def learn(self, scores: Array) -> Scale:
        """See `OutcomeTransform.learn`."""
        Scale.of(scores)
        known, repeats = np.unique(scores, return_counts=True)
        last = np.cumsum(repeats)
        # Equal scores share the mean of their ranks, counted from 1.
        ranks = 0.5 * (last + (last - repeats) + 1)
        quantiles = ndtri((ranks - 0.5) / len(scores))
        return Scale.of(scores, _Quantiles(known, quantiles))


class CompressBelowMedian(OutcomeTransform):
    """Scores above the median as they are, below it drawn closer the lower they are."""

    name = "compress-below-median"

    def learn(self, scores: Array) -> Scale:
        """See `OutcomeTransform.learn`."""
        plain, median = Scale.of(scores), float(np.median(scores))
        above = scores[scores > median] - median
        depth = 3.0 * float(np.median(above)) if above.size else plain.spread
        # A depth that is nothing beside the spread would make equal what is below the median.
        return Scale.of(scores, _Compression(median, max(depth, 1e-6 * plain.spread), float(scores.min())))


class LogRegret(OutcomeTransform):
    """The logarithm of what a score falls short of the best, in units of what the median falls short."""

    name = "log-regret"

    def learn(self, scores: Array) -> Scale:
        """See `OutcomeTransform.learn`."""
        plain, best = Scale.of(scores), float(scores.max())
        # Where more than half of the scores are the best, the median says nothing; their spread is 1 if all are.
        short = best - float(np.median(scores))
        unit = short if short > 1e-6 * plain.spread else plain.spread
        return Scale.of(scores, LogRegretMap(best, unit, float(scores.min())))


@dataclass(frozen=True)
class LogRegretMap(MonotoneMap):
    """g of `log-regret`: continuous, with a continuous slope.

    Attributes:
        best: b.
        unit: c, positive.
        worst: The worst score observed.
    """

    best: float
    unit: float
    worst: float

    def __call__(self, scores: Array) -> Array:
        """See `MonotoneMap.__call__`."""
        short = np.maximum(self.best - scores, 0.0)
        return np.maximum(scores, self.best) - self.unit * np.log1p(short / self.unit)

    def inverse(self, transformed: Array) -> Array:
        """See `MonotoneMap.inverse`."""
        # The worst score is less than exp(50) units below the best, and the exponential of more may overflow.
        short = np.clip((self.best - transformed) / self.unit, 0.0, 50.0)
        return np.maximum(np.maximum(transformed, self.best) - self.unit * np.expm1(short), self.worst)


@dataclass(frozen=True, eq=False)
class _Quantiles(MonotoneMap):
    known: Array
    quantiles: Array

    def __call__(self, scores: Array) -> Array:
        low, high = float(self.known[0]), float(self.known[-1])
        beyond = np.minimum(scores - low, 0.0) + np.maximum(scores - high, 0.0)
        transformed: Array = np.interp(scores, self.known, self.quantiles) + self._slope * beyond
        return transformed

    def inverse(self, transformed: Array) -> Array:
        above = np.maximum(transformed - self.quantiles[-1], 0.0)
        scores: Array = np.interp(transformed, self.quantiles, self.known) + above / self._slope
        return scores

    @property
    def _slope(self) -> float:
        low, high = float(self.known[0]), float(self.known[-1])
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
        # The share of the depth that is used up; of all of it there is no score.
        used = np.minimum(short / self.depth, 1.0 - np.finfo(np.float64).epsneg)
        return np.maximum(np.maximum(transformed, self.median) - used * self.depth / (1.0 - used), self.worst)


_transforms: dict[str, type[OutcomeTransform]] = {
    kind.name: kind for kind in (Unchanged, Standardise, RankNormal, CompressBelowMedian, LogRegret)
}


def get(name: str | OutcomeTransform) -> OutcomeTransform:
    """Return the transform of a name; a transform is returned as it is.

    Raises:
        UnknownNameError: There is no such transform.
    """
    if isinstance(name, OutcomeTransform):
        return name
    if name not in _transforms:
        raise UnknownNameError("transform", name, _transforms)
    return _transforms[name]()
