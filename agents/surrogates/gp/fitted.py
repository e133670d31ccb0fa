"""A fitted Gaussian process on distances: posterior, fantasies, and added observations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy.special import logsumexp

from archive.agents.surrogates.base import Array, Fitted, Posterior, check_scores
from archive.agents.surrogates.gp.exact import GaussianProcess
from archive.agents.surrogates.gp.replicates import Replicates
from archive.agents.surrogates.outcome_transforms import OutcomeTransform, Scale
from archive.agents.surrogates.threads import one_thread
from archive.architecture.graph import Architecture
from archive.architecture.networks import network_keys, take
from archive.errors import NumericalError
from archive.kernels.base import Components
from archive.kernels.covariance.base import BoundCovariance, Covariance

MOST_DISTANCES = 2**25
"""Most distances that are held for a prediction: a quarter of a gigabyte."""


class Pairwise(Protocol):
    """A source of distances: a `Distance`, or a `Gram`, which caches them."""

    def distances(
        self, first: Sequence[Architecture], second: Sequence[Architecture] | None = None
    ) -> Components:
        """See `Distance.distances`."""


@dataclass(frozen=True, eq=False)
class FittedGP(Fitted):
    """A fitted `DistanceGP`. S is the number of hyperparameter sets.

    Attributes:
        pairwise: As given to the surrogate.
        covariance: As given to the surrogate.
        architectures: The rows of the processes: the fitted networks, each once, then added and
            fantasised ones.
        thetas: (S, p + 1) float64, the hyperparameters.
        processes: The Gaussian process of each set, on standardised values.
        scale: Maps scores to standardised values.
        observations: The observations, without fantasies.
        best_fantasy: (S,) float64, the largest standardised fantasy value; -inf without fantasies.
        log_likelihoods: (S,) float64, log marginal likelihood of the standardised observations that
            were fitted.
    """

    pairwise: Pairwise
    covariance: Covariance
    architectures: tuple[Architecture, ...]
    thetas: Array
    processes: tuple[GaussianProcess, ...]
    scale: Scale
    observations: Replicates
    best_fantasy: Array
    log_likelihoods: Array

    @property
    def repaired(self) -> float:
        """The largest relative change of a covariance by repair, over the sets.

        0 without repair.
        """
        return max(process.repaired for process in self.processes)

    @property
    def best(self) -> Array:
        """The incumbent's standardised value, the mean of its evaluations: (S,) float64."""
        observed = [self.observations.merge(process.noise)[0].max() for process in self.processes]
        return np.maximum(observed, self.best_fantasy)

    @property
    def sets(self) -> int:
        """Number of hyperparameter sets: S."""
        return len(self.thetas)

    def loo_log_densities(self) -> Array:
        """Return log p(y_i | the others) of every row, of the mixture of all sets: (u,) float64."""
        summed = logsumexp([process.loo_log_densities() for process in self.processes], axis=0)
        densities: Array = summed - np.log(self.sets)
        return densities

    def left_out(self) -> Posterior:
        """Return the posterior of each observed row with its noise, given the other rows."""
        means = []
        variances = []
        for process in self.processes:
            mean, variance = process.left_out()
            means.append(mean)
            variances.append(variance)

        return Posterior.of_standardised(
            self.scale, np.array(means), np.array(variances), self.best
        )

    def posterior(self, architectures: Sequence[Architecture], *, joint: bool = False) -> Posterior:
        """See `Fitted.posterior`.

        Many networks are predicted in parts, as their distances would fill the memory.
        """
        if not joint:
            return self._marginal(architectures)

        cross = self._cross(architectures)
        inner = self.covariance.bind(self.pairwise.distances(architectures).stack)
        with one_thread(len(self.architectures)):
            return self._joint(cross, inner)

    def noises(self) -> Array:
        """See `Fitted.noises`."""
        return self.scale.spread**2 * np.array([process.noise for process in self.processes])

    def hallucinate(self, architectures: Sequence[Architecture]) -> FittedGP:
        """See `Fitted.hallucinate`. Each hyperparameter set uses its own mean."""
        if len(architectures) == 0:
            return self

        extended = self._extend(architectures, None, np.zeros(len(architectures)))
        added = [process.values[-len(architectures) :].max() for process in extended.processes]
        return replace(extended, best_fantasy=np.maximum(self.best_fantasy, added))

    def observe(
        self, architectures: Sequence[Architecture], scores: Array, variances: Array | None = None
    ) -> FittedGP:
        """Return the surrogate with k more observations; nothing else is fitted again.

        O(k n^2) for each set, where a refit is O(n^3) for each of many likelihoods.

        Args:
            architectures: k networks; a known one becomes another row, which is equally exact.
            scores: (k,) float64, finite.
            variances: (k,) float64, as in `DistanceGP.fit`.
        """
        if len(architectures) == 0:
            return self

        check_scores(architectures, scores)
        values = self.scale.standardise(scores)
        known_variances = check_variances(scores, self.scale, variances)
        keys = network_keys(architectures)
        factors = self.scale.noise_factors(keys, scores)
        observations = self.observations.adding(keys, values, known_variances, factors)
        return replace(
            self._extend(architectures, values, known_variances, factors),
            observations=observations,
        )

    def _cross(self, architectures: Sequence[Architecture]) -> BoundCovariance:
        return self.covariance.bind(
            self.pairwise.distances(self.architectures, architectures).stack
        )

    def _marginal(self, architectures: Sequence[Architecture]) -> Posterior:
        m = len(architectures)
        means = np.empty((len(self.thetas), m))
        variances = np.empty_like(means)
        # There are about as many components as parameters in theta.
        most = max(MOST_DISTANCES // (self.thetas.shape[1] * len(self.architectures)), 1)
        for begin in range(0, m, most):
            part = slice(begin, min(begin + most, m))
            cross = self._cross(architectures[part])
            with one_thread(len(self.architectures)):
                for s, (theta, process) in enumerate(zip(self.thetas, self.processes, strict=True)):
                    prior = np.full(part.stop - begin, self.covariance.variance(theta[:-1]))
                    means[s, part], variances[s, part] = process.predict(
                        cross.value(theta[:-1]), prior
                    )

        return Posterior.of_standardised(self.scale, means, variances, self.best)

    def _joint(self, cross: BoundCovariance, inner: BoundCovariance) -> Posterior:
        all_means = []
        all_covariances = []
        for theta, process in zip(self.thetas, self.processes, strict=True):
            mean, covariance = process.predict_jointly(
                cross.value(theta[:-1]), inner.value(theta[:-1])
            )
            all_means.append(mean)
            all_covariances.append(covariance)

        means = np.array(all_means)
        covariances = np.array(all_covariances)
        variances = np.clip(np.diagonal(covariances, axis1=1, axis2=2), 0.0, None)
        return Posterior.of_standardised(self.scale, means, variances, self.best, covariances)

    def _extend(
        self,
        architectures: Sequence[Architecture],
        values: Array | None,
        known_variances: Array,
        factors: Array | None = None,
    ) -> FittedGP:
        cross = self._cross(architectures)
        inner = self.covariance.bind(self.pairwise.distances(architectures).stack)
        shares = np.ones(len(known_variances)) if factors is None else factors
        processes = []
        for theta, process in zip(self.thetas, self.processes, strict=True):
            noises = shares * process.noise + known_variances
            prior = inner.value(theta[:-1])
            processes.append(process.extend(cross.value(theta[:-1]), prior, values, noises))

        networks = (*self.architectures, *architectures)
        return replace(self, architectures=networks, processes=tuple(processes))


def standardise_observations(
    architectures: Sequence[Architecture],
    scores: Array,
    variances: Array | None,
    transform: OutcomeTransform,
) -> tuple[Scale, Replicates, tuple[Architecture, ...]]:
    """Return the scale, the standardised observations, and the networks of their rows.

    Each network has one row.

    Args:
        architectures: n networks, replicates included.
        scores: (n,) float64.
        variances: (n,) float64, known noise variances of the scores; None where none are known.
        transform: The outcome transform, which is fitted to the scores.

    Raises:
        NumericalError: There are no scores, or scores or variances are not finite.
    """
    check_scores(architectures, scores)
    scale = transform.learn(scores)
    known_variances = check_variances(scores, scale, variances)
    keys = network_keys(architectures)
    observations = Replicates.of(
        keys, scale.standardise(scores), known_variances, scale.noise_factors(keys, scores)
    )
    return scale, observations, tuple(take(architectures, observations.first))


def check_variances(scores: Array, scale: Scale, variances: Array | None) -> Array:
    """Return known variances of n scores in standardised units, (n,) float64; zeros for None.

    After a nonlinear transform g, the standard deviation is half the width of g over the score's
    interval of one standard deviation to each side, as in `Posterior.in_scores`.

    Raises:
        NumericalError: Their number differs from the number of scores, or one is negative or not
            finite.
    """
    if variances is None:
        return np.zeros(len(scores))

    variances = np.asarray(variances, dtype=np.float64)
    if variances.shape != scores.shape:
        raise NumericalError(
            f"{len(scores)} scores need as many variances, got shape {variances.shape}"
        )

    wrong = np.flatnonzero(~(np.isfinite(variances) & (variances >= 0.0)))
    if wrong.size:
        raise NumericalError(
            f"variances must be finite and >= 0, got {variances[wrong[0]]} (observation {wrong[0]})"
        )

    if scale.linear:
        return variances / scale.spread**2

    deviations = np.sqrt(variances)
    squared: Array = np.square(
        0.5 * (scale.standardise(scores + deviations) - scale.standardise(scores - deviations))
    )
    return squared
