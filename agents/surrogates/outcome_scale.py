"""The scale of an outcome transform: an increasing function of scores, then mean 0 and standard
deviation 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from archive.agents.outliers import LARGEST
from archive.agents.surrogates.base import Array
from archive.errors import NumericalError

SMALLEST = 1e-150
"""Spread below which variances in squared score units underflow; above `LARGEST` they overflow."""


LEAST_FACTOR = 0.01
"""Least factor of the noise variance of a compressed score, whose noise is then a tenth of that of
an uncompressed one. Without noise, two evaluations of similar bad networks would contradict each
other."""


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
        noise_of_scores: Whether noise has one variance in score units, and that of g(score) follows
            its slope; else it has one variance in units of g.
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
        """Return the noise variance of n evaluations, in units of that where g has the slope 1;
        None for 1.

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
