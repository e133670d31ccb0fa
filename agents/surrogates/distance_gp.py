"""A Gaussian process over architectures, its covariance made of distances, averaged over hyperparameter samples.

Notation:

    symbol   meaning                                                    shape
    d        distance components of the pairs                           (c, m, n)
    theta    log-parameters of the covariance, then log eta2            (p + 1,)
    S        hyperparameter samples                                     scalar
    y        scores, standardised to mean 0 and standard deviation 1    (n,)

The prior of theta is uniform in a box of logarithms: the covariance's bounds, which follow the median of the observed
distances (unnormalised OTMANN runs into millions, normalised stays below 1), and `NOISE` for the noise variance in
units of the scores' variance. NASBOT (section 4.1) samples theta from its posterior; so does this.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from archive.agents.surrogates.base import Array, Fitted, Posterior, Surrogate, check_scores
from archive.agents.surrogates.gp import GaussianProcess, log_likelihood
from archive.agents.surrogates.hyperposterior import Box, Schedule, slice_sample
from archive.graph import Architecture
from archive.kernels.base import Components
from archive.kernels.covariance import Covariance


class Pairwise(Protocol):
    """What gives distances: a `Distance`, or better a `Gram`, which remembers them."""

    def distances(self, first: Sequence[Architecture], second: Sequence[Architecture] | None = None) -> Components:
        """See `Distance.distances`."""


_log = logging.getLogger(__name__)

# Training twice with other seeds moves a score by 3 % to 100 % of the spread between architectures.
NOISE = (1e-3, 1.0)
# The posterior of a dozen parameters hardly narrows beyond this many observations, and each costs n^3.
OBSERVATIONS_FOR_THETA = 120


@dataclass(frozen=True)
class Scale:
    """How scores and standardised values convert.

    Attributes:
        centre: Mean of the scores.
        spread: Their standard deviation; 1 where all are equal, a single one included.
    """

    centre: float
    spread: float

    @classmethod
    def of(cls, scores: Array) -> Scale:
        """Return the scale of n scores, (n,) float64."""
        spread = float(scores.std())
        # Rounding leaves equal scores a spread of some units in the last place.
        equal = spread <= 1e-12 * float(np.abs(scores).max())
        return cls(float(scores.mean()), 1.0 if equal else spread)

    def standardise(self, scores: Array) -> Array:
        """Return scores in units of the spread, from the centre: (n,) float64."""
        return (scores - self.centre) / self.spread


class DistanceGP(Surrogate):
    """An exact Gaussian process on distances.

    Args:
        pairwise: Gives the distances. It is asked for the same pairs again and again: a `Gram` answers from memory.
        covariance: A function of the components.
        schedule: How the hyperparameters are sampled.
    """

    def __init__(self, pairwise: Pairwise, covariance: Covariance, schedule: Schedule | None = None) -> None:
        """Keep the arguments."""
        self.pairwise, self.covariance, self.schedule = pairwise, covariance, schedule or Schedule()

    def fit(self, architectures: Sequence[Architecture], scores: Array, rng: np.random.Generator) -> FittedGP:
        """See `Surrogate.fit`."""
        check_scores(architectures, scores)
        scale = Scale.of(scores)
        values = scale.standardise(scores)
        stack = self.pairwise.distances(architectures).stack
        thetas = self._sample_thetas(stack, values, rng)
        processes = tuple(
            GaussianProcess.condition_repaired(
                self.covariance.value(stack, theta[:-1]), values, float(np.exp(theta[-1]))
            )
            for theta in thetas
        )
        best = np.full(len(thetas), values.max())
        fitted = FittedGP(self.pairwise, self.covariance, tuple(architectures), thetas, processes, scale, best)
        _log.info("%d observations; covariances repaired by up to %.1e", len(values), fitted.repaired)
        return fitted

    def _sample_thetas(self, stack: Array, values: Array, rng: np.random.Generator) -> Array:
        if len(values) > OBSERVATIONS_FOR_THETA:
            chosen = np.sort(rng.choice(len(values), OBSERVATIONS_FOR_THETA, replace=False))
            stack, values = stack[:, chosen[:, None], chosen], values[chosen]
        diagonal = np.diag_indices(len(values))

        def log_density(theta: Array) -> float:
            noisy = self.covariance.value(stack, theta[:-1])
            noisy[diagonal] += np.exp(theta[-1])
            return log_likelihood(noisy, values)

        return slice_sample(log_density, self.box(stack), self.schedule, rng)

    def box(self, stack: Array) -> Box:
        """Return the prior of theta: the covariance's bounds for these distances, then `NOISE`."""
        bounds = np.vstack([self.covariance.bounds(stack), np.log(NOISE)])
        return Box(bounds[:, 0], bounds[:, 1])


@dataclass(frozen=True, eq=False)
class FittedGP(Fitted):
    """What `DistanceGP` has learnt.

    Attributes:
        pairwise: As given to the surrogate.
        covariance: As given to the surrogate.
        architectures: The n networks conditioned on, believed ones included.
        thetas: (S, p + 1) float64, the hyperparameter samples.
        processes: The Gaussian process of each sample, on standardised values.
        scale: From scores to standardised values.
        best: (S,) float64, the incumbent's standardised value.
    """

    pairwise: Pairwise
    covariance: Covariance
    architectures: tuple[Architecture, ...]
    thetas: Array
    processes: tuple[GaussianProcess, ...]
    scale: Scale
    best: Array

    @property
    def repaired(self) -> float:
        """The largest relative change that made a covariance sound, over the samples; 0 where all were sound."""
        return max(process.repaired for process in self.processes)

    def posterior(self, architectures: Sequence[Architecture], *, joint: bool = False) -> Posterior:
        """See `Fitted.posterior`."""
        cross = self.pairwise.distances(self.architectures, architectures).stack
        inner = self.pairwise.distances(architectures).stack if joint else None
        means = np.empty((len(self.thetas), len(architectures)))
        variances = np.empty_like(means)
        covariances = None if inner is None else np.empty((*means.shape, len(architectures)))
        for s, (theta, process) in enumerate(zip(self.thetas, self.processes, strict=True)):
            c = self.covariance.value(cross, theta[:-1])
            if covariances is None or inner is None:
                prior = np.full(len(architectures), self.covariance.variance(theta[:-1]))
                means[s], variances[s] = process.predict(c, prior)
            else:
                means[s], covariances[s] = process.predict_jointly(c, self.covariance.value(inner, theta[:-1]))
                variances[s] = np.clip(np.diagonal(covariances[s]), 0.0, None)
        return self._in_score_units(means, variances, covariances)

    def hallucinate(self, architectures: Sequence[Architecture]) -> FittedGP:
        """See `Fitted.hallucinate`. Each hyperparameter sample believes in its own mean."""
        return self._extend(architectures, None)

    def observe(self, architectures: Sequence[Architecture], scores: Array) -> FittedGP:
        """Return the surrogate with k more observations, the hyperparameters and the scale as they were.

        O(k n^2) for each sample, where fitting anew is O(n^3) for each of thousands of likelihoods.

        Args:
            architectures: k networks.
            scores: (k,) float64, finite.
        """
        if len(architectures) == 0:
            return self
        check_scores(architectures, scores)
        return self._extend(architectures, self.scale.standardise(scores))

    def _extend(self, architectures: Sequence[Architecture], values: Array | None) -> FittedGP:
        if len(architectures) == 0:
            return self
        cross = self.pairwise.distances(self.architectures, architectures).stack
        inner = self.pairwise.distances(architectures).stack
        processes = tuple(
            process.extend(self.covariance.value(cross, theta[:-1]), self.covariance.value(inner, theta[:-1]), values)
            for theta, process in zip(self.thetas, self.processes, strict=True)
        )
        added = np.array([process.values[-len(architectures) :].max() for process in processes])
        return replace(
            self,
            architectures=(*self.architectures, *architectures),
            processes=processes,
            best=np.maximum(self.best, added),
        )

    def _in_score_units(self, means: Array, variances: Array, covariances: Array | None) -> Posterior:
        centre, spread = self.scale.centre, self.scale.spread
        return Posterior(
            means=centre + spread * means,
            variances=spread**2 * variances,
            best=centre + spread * self.best,
            covariances=None if covariances is None else spread**2 * covariances,
        )
