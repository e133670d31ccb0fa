"""Bounds of log-parameters: the range in which hyperparameters are fitted or sampled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from archive.agents.surrogates.base import Array
from archive.errors import NumericalError


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
