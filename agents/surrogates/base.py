"""What a surrogate is: it learns scores of architectures and answers with a posterior.

Notation:

    symbol   meaning                                             shape
    S        members of the mixture: hyperparameter samples      scalar
    m        architectures asked about                           scalar
    g        increasing transform of the scores (`transforms`)   scores
    mu       posterior mean of each member, of g(score)          (S, m)
    v        posterior variance of the noise-free g(score)       (S, m)
    C        posterior covariance                                (S, m, m)
    w        shares of the members, of sum 1                     (S,)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from archive.architecture.graph import Architecture
from archive.errors import NumericalError

if TYPE_CHECKING:
    from archive.agents.surrogates.outcome_transforms import Scale

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Posterior:
    """A mixture of S Gaussians over the scores of m architectures, or over what a transform makes of the scores.

    S is the number of hyperparameter samples, which count alike, or of models, which need not. Where a model learns
    transformed scores, its Gaussian is one of g(score): an acquisition takes it as it is, people read `in_scores`.

    Attributes:
        means: (S, m) float64, of g(score); in score units where g is linear or there is none.
        variances: (S, m) float64, of the noise-free g(score), never negative.
        best: (S,) float64: what each member takes g of the incumbent's score to be.
        covariances: (S, m, m) float64, or None where only marginals were asked for.
        weights: (S,) float64, the shares of the members, of sum 1; None where all count alike.
        scales: S of them, with g of each member; empty where all are Gaussians of the scores.
    """

    means: Array
    variances: Array
    best: Array
    covariances: Array | None = None
    weights: Array | None = None
    scales: tuple[Scale, ...] = ()

    def in_scores(self) -> Posterior:
        """Return the marginals in score units.

        Of each member, the mean is the median of the score, g^-1(mu), and the standard deviation half the width of its
        central 68 %, 1/2 (g^-1(mu + s) - g^-1(mu - s)): both are those of the Gaussian where g is linear.
        """
        if all(scale.linear for scale in self.scales):
            return Posterior(self.means, self.variances, self.best, None, self.weights)
        means, variances, best = self.means.copy(), self.variances.copy(), self.best.copy()
        for s, scale in enumerate(self.scales):
            if scale.linear:
                continue
            centre, std = self.means[s], np.sqrt(self.variances[s])
            means[s], best[s] = scale.restore(centre), scale.restore(self.best[s : s + 1])[0]
            variances[s] = np.square(0.5 * (scale.restore(centre + std) - scale.restore(centre - std)))
        return Posterior(means, variances, best, None, self.weights)

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
        """Return what is believed of the scores of m networks; with covariances if `joint`.

        After a transform that is not linear it is what is believed of the transformed scores, and names the transform.
        """

    @abstractmethod
    def hallucinate(self, architectures: Sequence[Architecture]) -> Fitted:
        """Return the surrogate that would be, had these networks scored exactly as expected.

        For proposals without a result yet: the mean stays, the uncertainty around them shrinks, and an acquisition
        looks elsewhere (the kriging believer of Ginsbourger et al., 2011).
        """

    def task_correlations(self) -> Mapping[str, float]:
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
