"""The surrogate interface: fit to the scores of architectures, predict by a posterior.

Notation:

    symbol   meaning                                                          shape
    S        members of the mixture: hyperparameter samples, or models        scalar
    m        query architectures                                              scalar
    g        increasing outcome transform (`outcome_transforms`)              scores
    mu       posterior mean of g(score), by member                            (S, m)
    v        posterior variance of the noise-free g(score), by member         (S, m)
    C        posterior covariance                                             (S, m, m)
    w        weights of the members, of sum 1                                 (S,)
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

LEAST_STD = 1e-150
"""Least standard deviation in an acquisition: a network without uncertainty has log(EI) =
log(improvement) or about -inf, and a probability of 0 or 1, never 0/0."""


@dataclass(frozen=True)
class Feasibility:
    """Probability that architectures meet a study's constraints.

    Attributes:
        log_probability: (m,) float64, logarithm of the probability of feasibility.
        floor: Lowest expected (transformed) score of a network with a result.
        incumbent: Whether a result meets the constraints.
    """

    log_probability: Array
    floor: float
    incumbent: bool


@dataclass(frozen=True)
class Posterior:
    """A mixture of S Gaussians over the scores of m architectures, or over transformed scores.

    Members are hyperparameter samples, with equal weights, or models, with individual weights. A
    model fitted to transformed scores predicts g(score): acquisitions use that Gaussian directly,
    reports use `in_scores`.

    Attributes:
        means: (S, m) float64, of g(score); in score units where g is linear or there is none.
        variances: (S, m) float64, of the noise-free g(score), never negative.
        best: (S,) float64: g of the incumbent's score, by member.
        covariances: (S, m, m) float64, or None for a posterior of marginals only.
        weights: (S,) float64, of sum 1; None for equal weights.
        scales: S fitted transforms, one for each member; empty where all members predict scores.
        noises: (S,) float64, variance of the noise of an evaluation of g(score); None where
            evaluations are exact.
        feasibility: Probability that the architectures meet the constraints; None without
            constraints.
    """

    means: Array
    variances: Array
    best: Array
    covariances: Array | None = None
    weights: Array | None = None
    scales: tuple[Scale, ...] = ()
    noises: Array | None = None
    feasibility: Feasibility | None = None

    @classmethod
    def of_standardised(
        cls,
        scale: Scale,
        means: Array,
        variances: Array,
        best: Array,
        covariances: Array | None = None,
    ) -> Posterior:
        """Return the posterior of g(score) from standardised values, (g(score) - centre) / spread.

        Args:
            scale: The fitted transform of all members.
            means: (S, m) float64.
            variances: (S, m) float64.
            best: (S,) float64.
            covariances: (S, m, m) float64; None for marginals only.
        """
        centre = scale.centre
        spread = scale.spread
        return cls(
            means=centre + spread * means,
            variances=spread**2 * variances,
            best=centre + spread * best,
            covariances=None if covariances is None else spread**2 * covariances,
            scales=(scale,) * len(means),
        )

    def in_scores(self) -> Posterior:
        """Return the marginals in score units.

        For each member, the mean is the median of the score, g^-1(mu), and the standard deviation
        is half the width of its central 68 % interval, 1/2 (g^-1(mu + s) - g^-1(mu - s)). Where g
        is linear, both are the Gaussian's.
        """
        if all(scale.linear for scale in self.scales):
            return Posterior(self.means, self.variances, self.best, None, self.weights)

        means = self.means.copy()
        variances = self.variances.copy()
        best = self.best.copy()
        for s, scale in enumerate(self.scales):
            if scale.linear:
                continue

            centre = self.means[s]
            std = np.sqrt(self.variances[s])
            means[s], best[s] = scale.restore(centre), scale.restore(self.best[s : s + 1])[0]
            variances[s] = np.square(
                0.5 * (scale.restore(centre + std) - scale.restore(centre - std))
            )

        return Posterior(means, variances, best, None, self.weights)

    def average(self, values: Array) -> Array:
        """Return the weighted mean over the members: (S, ...) to (...) float64."""
        averaged: Array = np.average(values, axis=0, weights=self.weights)
        return averaged

    def log_average(self, logarithms: Array) -> Array:
        """Return the logarithm of the weighted mean over the members, from logarithms.

        Shape: (S, m) to (m,) float64.
        """
        # Agents without a surrogate import this module for its types.
        from scipy.special import logsumexp

        weights = None if self.weights is None else self.weights[:, None]
        total: Array = logsumexp(logarithms, axis=0, b=weights)
        return total if weights is not None else total - np.log(len(logarithms))

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
            drawn = members == member
            draws[drawn] = self.means[member] + normals[drawn] @ square_root(covariances[member]).T

        return draws

    def members(self, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw members with probability equal to their weight: (count,) positions."""
        if self.weights is None:
            return rng.integers(len(self.means), size=count)

        return rng.choice(len(self.means), size=count, p=self.weights)

    def _covariances(self) -> Array:
        if self.covariances is None:
            raise NumericalError(
                "joint samples need a posterior with covariances, got one with marginals only"
            )

        return self.covariances


class Surrogate(ABC):
    """A model that can be fitted to scores; immutable, so that histories may share it."""

    @abstractmethod
    def fit(
        self,
        architectures: Sequence[Architecture],
        scores: Array,
        rng: np.random.Generator,
        variances: Array | None = None,
    ) -> Fitted:
        """Fit the model to observations.

        Args:
            architectures: n networks, at least one; replicates of a network are allowed.
            scores: (n,) float64, finite, larger is better.
            rng: Source of randomness.
            variances: (n,) float64, known variances of the single scores in squared score units,
                added to the common noise variance; None for 0. A model without a likelihood ignores
                them.

        Raises:
            NumericalError: The scores are not finite, or there are none.
        """


class Fitted(ABC):
    """A fitted surrogate; immutable."""

    @abstractmethod
    def posterior(self, architectures: Sequence[Architecture], *, joint: bool = False) -> Posterior:
        """Return the posterior of the scores of m networks, with covariances if `joint`.

        After a nonlinear outcome transform it is the posterior of the transformed scores;
        `Posterior.scales` holds the transform.
        """

    @abstractmethod
    def hallucinate(self, architectures: Sequence[Architecture]) -> Fitted:
        """Return the surrogate conditioned on fantasy scores, equal to the posterior means.

        Used for pending proposals: the posterior mean stays the same and the variance around them
        shrinks, so that an acquisition is maximised elsewhere (kriging believer: Ginsbourger et
        al., 2011).
        """

    def noises(self) -> Array | None:
        """Return the noise variance of an evaluation of g(score), (S,) float64.

        None where the model has no noise.
        """
        return None

    def task_correlations(self) -> Mapping[str, float]:
        """Return the task's correlation rho with each source study, in [-1, 1]."""
        return {}


def check_scores(architectures: Sequence[Architecture], scores: Array) -> None:
    """Validate the arguments of a fit.

    Raises:
        NumericalError: There are no scores, their number differs from the number of architectures,
            or one is not finite.
    """
    if len(architectures) == 0:
        raise NumericalError("a surrogate needs at least one observation, got none")

    if scores.shape != (len(architectures),):
        raise NumericalError(
            f"{len(architectures)} architectures need as many scores, got shape {scores.shape}"
        )

    if not np.isfinite(scores).all():
        index = int(np.flatnonzero(~np.isfinite(scores))[0])
        raise NumericalError(f"scores must be finite, got {scores[index]} (observation {index})")


def square_root(covariance: Array) -> Array:
    """Return a root R of a covariance, R R^T: (m, m) float64."""
    # Posterior covariances are semi-definite and often singular (replicates, points without
    # uncertainty). Eigenvalues clipped at zero give an exact root where Cholesky would need jitter.
    values, vectors = np.linalg.eigh(covariance)
    root: Array = vectors * np.sqrt(np.clip(values, 0.0, None))
    return root
