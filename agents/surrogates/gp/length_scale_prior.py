"""A prior over length scales that several components of a distance share."""

from __future__ import annotations

from typing import final

import numpy as np

from archive.agents.surrogates.base import Array
from archive.kernels.covariance.base import Bound, Covariance


@final
class DimensionScaledPrior(Covariance):
    """A covariance whose prior expects the same prior likeness of two networks however many components there are.

    Every beta is sought around the median distance of its own component. Were a dozen components expected to matter
    as much as one does alone, two networks would be strangers by the sum of them.

    Args:
        covariance: What it is else.
        components: How many share.
    """

    def __init__(self, covariance: Covariance, components: int) -> None:
        """Keep the arguments."""
        self.covariance, self.components = covariance, components

    @property
    def names(self) -> tuple[str, ...]:
        """Return the covariance's."""
        return self.covariance.names

    def bounds(self, stack: Array) -> Array:
        """Move the bounds of every beta."""
        betas = np.array(["beta" in name for name in self.names])
        moved: Array = self.covariance.bounds(stack) - np.log(self.components) * betas[:, None]
        return moved

    def variance(self, theta: Array) -> float:
        """Return the covariance's."""
        return self.covariance.variance(theta)

    def bind(self, stack: Array) -> Bound:
        """Return the covariance's."""
        return self.covariance.bind(stack)
