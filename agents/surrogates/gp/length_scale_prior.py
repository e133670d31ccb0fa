"""Dimension-scaled prior of length scales, for distances of several components."""

from __future__ import annotations

from typing import final

import numpy as np

from archive.agents.surrogates.base import Array
from archive.kernels.covariance.base import BoundCovariance, Covariance


@final
class DimensionScaledPrior(Covariance):
    """A covariance whose prior correlation of a typical pair does not depend on the number of
    components.

    The bounds of every beta follow the median distance of its component. This wrapper divides them
    by the number of components; without it a dozen components would make any two networks nearly
    uncorrelated (cf. dimension-scaled length-scale priors, Hvarfner et al., 2024).

    Args:
        covariance: The covariance whose bounds are scaled.
        components: Number of components.
    """

    def __init__(self, covariance: Covariance, components: int) -> None:
        """Keep the arguments."""
        self.covariance = covariance
        self.components = components

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the wrapped covariance."""
        return self.covariance.names

    def bounds(self, stack: Array) -> Array:
        """Return the bounds, those of every beta divided by the number of components."""
        betas = np.array(["beta" in name for name in self.names])
        moved: Array = self.covariance.bounds(stack) - np.log(self.components) * betas[:, None]
        return moved

    def variance(self, theta: Array) -> float:
        """Return the variance of the wrapped covariance."""
        return self.covariance.variance(theta)

    def bind(self, stack: Array) -> BoundCovariance:
        """Return the bound form of the wrapped covariance."""
        return self.covariance.bind(stack)
