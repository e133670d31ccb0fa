"""What a surrogate is: it learns scores of architectures and answers with a posterior.

Notation:

    symbol   meaning                                             shape
    S        members of the mixture: hyperparameter samples      scalar
    m        architectures asked about                           scalar
    mu       posterior mean of each member                       (S, m)
    v        posterior variance of the noise-free score          (S, m)
    C        posterior covariance                                (S, m, m)
    w        shares of the members, of sum 1                     (S,)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from archive.errors import NumericalError
from archive.graph import Architecture

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Posterior:
    """A mixture of S Gaussians over the scores of m architectures.

    S is the number of hyperparameter samples, which count alike, or of models, which need not.

    Attributes:
        means: (S, m) float64, in score units.
        variances: (S, m) float64, of the noise-free score, never negative.
        covariances: (S, m, m) float64, or None where only marginals were asked for.
        best: (S,) float64: what each member takes the incumbent's score to be.
    """

    means: Array
    variances: Array
    best: Array
    covariances: Array | None = None
    weights: Array | None = None

    def average(self, values: Array) -> Array:
        """Return the mean over the members of what each says: (S, ...) to (...) float64."""
        averaged: Array = np.average(values, axis=0, weights=self.weights)
        return averaged

    @property
    def mean(self) -> Array:
        """Mean of the mixture: (m,) float64."""
        return self.average(self.means)

    @property
    def variance(self) -> Array:
        """Variance of the mixture, by the law of total variance: (m,) float64."""
        return self.average(self.variances) + self.average(np.square(self.means - self.mean))

    @property
    def covariance(self) -> Array:
        """Covariance of the mixture: (m, m) float64.

        Raises:
            NumericalError: The posterior was made without covariances.
        """
        within = self.average(self._covariances())
        between = self.means - self.mean
        shares = np.full(len(between), 1.0 / len(between)) if self.weights is None else self.weights
        return within + (between.T * shares) @ between

    @property
    def std(self) -> Array:
        """Standard deviation of the mixture: (m,) float64."""
        return np.sqrt(self.variance)

    def sample(self, count: int, rng: np.random.Generator) -> Array:
        """Draw the m scores jointly, `count` times: (count, m) float64.

        Raises:
            NumericalError: The posterior was made without covariances.
        """
        covariances = self._covariances()
        members = self.members(count, rng)
        normals = rng.standard_normal((count, self.means.shape[1]))
        draws = np.empty_like(normals)
        for member in np.unique(members):
            chosen = members == member
            draws[chosen] = self.means[member] + normals[chosen] @ _square_root(covariances[member]).T
        return draws

    def members(self, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw members, each by its share: (count,) positions."""
        if self.weights is None:
            return rng.integers(len(self.means), size=count)
        return rng.choice(len(self.means), size=count, p=self.weights)

    def _covariances(self) -> Array:
        if self.covariances is None:
            raise NumericalError("joint samples need a posterior with covariances, this one has marginals only")
        return self.covariances


class Surrogate(ABC):
    """How to learn scores; immutable, so that one may serve many histories."""

    @abstractmethod
    def fit(self, architectures: Sequence[Architecture], scores: Array, rng: np.random.Generator) -> Fitted:
        """Learn from observations.

        Args:
            architectures: n networks, at least one; a network may stand there several times.
            scores: (n,) float64, finite, larger is better.
            rng: Source of randomness.

        Raises:
            NumericalError: The scores are not finite, or there are none.
        """


class Fitted(ABC):
    """A surrogate that has seen its observations; immutable."""

    @abstractmethod
    def posterior(self, architectures: Sequence[Architecture], *, joint: bool = False) -> Posterior:
        """Return what is believed of the scores of m networks; with covariances if `joint`."""

    @abstractmethod
    def hallucinate(self, architectures: Sequence[Architecture]) -> Fitted:
        """Return the surrogate that would be, had these networks scored exactly as expected.

        For proposals without a result yet: the mean stays, the uncertainty around them shrinks, and an acquisition
        looks elsewhere (the kriging believer of Ginsbourger et al., 2011).
        """

    def couplings(self) -> Mapping[str, float]:
        """Return how far the task is taken to follow each study of another task that helps, in [-1, 1], by study."""
        return {}


def check_scores(architectures: Sequence[Architecture], scores: Array) -> None:
    """Refuse observations that nothing can be learnt from.

    Raises:
        NumericalError: There are none, as many scores as architectures are missing, or one is not finite.
    """
    if len(architectures) == 0:
        raise NumericalError("a surrogate needs at least one observation, got none")
    if scores.shape != (len(architectures),):
        raise NumericalError(f"{len(architectures)} architectures need as many scores, got shape {scores.shape}")
    if not np.isfinite(scores).all():
        at = int(np.flatnonzero(~np.isfinite(scores))[0])
        raise NumericalError(f"scores must be finite, got {scores[at]} (observation {at})")


def _square_root(covariance: Array) -> Array:
    # Posterior covariances are semi-definite, often singular (repeats, certain points): eigenvalues clipped at zero
    # give an exact root where Cholesky would need jitter.
    values, vectors = np.linalg.eigh(covariance)
    root: Array = vectors * np.sqrt(np.clip(values, 0.0, None))
    return root
