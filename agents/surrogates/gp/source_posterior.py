"""Posterior of a source task's scores, which is the prior of a target task's scores; symbols as in
`coregionalised`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from archive.agents.surrogates.base import Array
from archive.architecture.graph import Architecture

OFFSET_STD = 2.0
"""beta, prior standard deviation of the offset.

Wide: a warm-started study begins with networks that are good on the source task, which shifts its
standardised scores."""


class SourceModel(Protocol):
    """A model fitted to the evaluations of a source task, with which a target task is
    correlated.
    """

    @property
    def studies(self) -> Sequence[str]:
        """Names of the source studies."""

    @property
    def sign(self) -> int:
        """-1 where the source scores are modelled with their signs changed, else 1."""

    def means(self, networks: Sequence[Architecture]) -> Array:
        """Return m of n networks: (n,) float64."""

    def posterior(
        self, rows: Sequence[Architecture], networks: Sequence[Architecture]
    ) -> SourcePosterior:
        """Return prior and posterior of n networks, and their covariances with the rows."""


@dataclass(frozen=True)
class SourcePosterior:
    """Prior and posterior of the source task's scores of n networks, with covariances to r rows.

    Attributes:
        means: (n,) float64: m.
        prior: (r, n) float64: k.
        covariances: (r, n) float64: C.
        variance: Prior variance of a network, the same for all.
        variances: (n,) float64: posterior variances, the diagonal of C.
    """

    means: Array
    prior: Array
    covariances: Array
    variance: float
    variances: Array

    def covariance(self, rho: float) -> Array:
        """Return the covariance of y / s: (r, n) float64."""
        covariance: Array = rho**2 * self.covariances + (1.0 - rho**2) * self.prior + OFFSET_STD**2
        return covariance

    def diagonal(self, rho: float) -> Array:
        """Return the variance of y / s of each network: (n,) float64."""
        variances: Array = rho**2 * self.variances + (1.0 - rho**2) * self.variance + OFFSET_STD**2
        return variances
