"""An exact Gaussian process over architectures with a covariance of their distances.

Notation:

    symbol   meaning                                                      shape
    n, u     observations; distinct architectures among them              scalars
    d        distance components of the pairs                             (c, u, u)
    theta    log-parameters of the covariance, then log eta2              (p + 1,)
    S        hyperparameter sets that the posterior averages over         scalar
    y        transformed scores, mean 0 and standard deviation 1          (n,)

theta has bounds: the covariance's, which follow the median of the observed distances (unnormalised
OTMANN runs into millions, normalised stays below 1), and the bounds of the noise. `SliceSampling`
averages over its posterior as NASBOT does (section 4.1), `MarginalLikelihood` maximises it as
tree-Wasserstein does (appendix G).

The noise variance of an evaluation is eta2, the same for all, plus its known variance, where one is
given. Scores are standardised, so that eta2 is a fraction of their variance unless said otherwise.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from archive.agents.surrogates import outcome_transforms
from archive.agents.surrogates.base import Array, Surrogate
from archive.agents.surrogates.gp.exact import GaussianProcess
from archive.agents.surrogates.gp.fitted import FittedGP, Pairwise, standardise_observations
from archive.agents.surrogates.gp.likelihood import Bounds, Inference, Likelihood
from archive.agents.surrogates.gp.replicates import Replicates
from archive.agents.surrogates.gp.slice_sampling import SliceSampling
from archive.agents.surrogates.outcome_transforms import OutcomeTransform
from archive.agents.surrogates.threads import one_thread
from archive.architecture.graph import Architecture
from archive.errors import UsageError
from archive.kernels.covariance.base import Covariance


@dataclass(frozen=True)
class LearnedNoise:
    """Noise that is fitted with the other hyperparameters.

    The default: another training seed moves a score by 3 % to 100 % of the spread between
    architectures.

    Attributes:
        lower: Lower bound of eta2, as a fraction of the scores' variance.
        upper: Upper bound.
    """

    lower: float = 1e-3
    upper: float = 1.0

    def __post_init__(self) -> None:
        """Check the bounds."""
        if not 0.0 < self.lower < self.upper < float("inf"):
            raise UsageError(f"noise needs 0 < lower < upper, got {self.lower} and {self.upper}")

    def bounds(self, spread: float) -> tuple[float, float]:
        """Return the bounds of eta2 for scores of this standard deviation."""
        return self.lower, self.upper


@dataclass(frozen=True)
class FixedNoise:
    """Noise of a given variance.

    It must be positive: replicates that disagree, and networks at distance 0, would make the
    covariance singular. For a table without noise use 1e-6.

    Attributes:
        variance: eta2.
        relative: Whether `variance` is a fraction of the scores' variance; otherwise in squared
            score units.
    """

    variance: float
    relative: bool = True

    def __post_init__(self) -> None:
        """Check the variance."""
        if not 0.0 < self.variance < float("inf"):
            raise UsageError(f"the variance of a fixed noise must be > 0, got {self.variance}")

    def bounds(self, spread: float) -> tuple[float, float]:
        """Return eta2 twice, for scores of this standard deviation."""
        variance = self.variance if self.relative else self.variance / spread**2
        return variance, variance


Noise = LearnedNoise | FixedNoise


_log = logging.getLogger(__name__)


class DistanceGP(Surrogate):
    """An exact Gaussian process on distances.

    Replicates, evaluations of equal `key`, are merged into one row: the result is the same, at less
    cost. All observations are conditioned on exactly, in O(u^3) time and 8 u^2 bytes for each of
    the S sets (twice that where the covariance was repaired) beside the distances. An `Inference`
    may fit hyperparameters to a subset, see there.

    Args:
        pairwise: Source of the distances. The same pairs are requested repeatedly: a `Gram` caches
            them.
        covariance: A function of the components.
        inference: Method of fitting hyperparameters, `SliceSampling()` by default.
        noise: Prior of the noise, `LearnedNoise()` by default.
        transform: Outcome transform: a name of `archive.agents.surrogates.outcome_transforms`, or
            an object.

    Raises:
        UnknownNameError: There is no such transform.
    """

    def __init__(
        self,
        pairwise: Pairwise,
        covariance: Covariance,
        inference: Inference | None = None,
        *,
        noise: Noise | None = None,
        transform: str | OutcomeTransform = "standardise",
    ) -> None:
        self.pairwise = pairwise
        self.covariance = covariance
        self.inference = inference or SliceSampling()
        self.noise = noise or LearnedNoise()
        self.transform = outcome_transforms.get(transform)

    def fit(
        self,
        architectures: Sequence[Architecture],
        scores: Array,
        rng: np.random.Generator,
        variances: Array | None = None,
    ) -> FittedGP:
        """See `Surrogate.fit`.

        Args:
            architectures: n networks, replicates included.
            scores: (n,) float64.
            rng: Source of randomness.
            variances: (n,) float64, known noise variances of the single evaluations in squared
                score units, added to eta2; None where none are known.

        Raises:
            NumericalError: There are no scores, or scores or variances are not finite.
        """
        scale, replicates, rows = standardise_observations(
            architectures, scores, variances, self.transform
        )
        stack = self.pairwise.distances(rows).stack
        likelihood = Likelihood(self.covariance, stack, replicates, self.noise.bounds(scale.spread))
        with one_thread():
            thetas = self.inference.thetas(likelihood, rng)

        with one_thread(len(rows)):
            processes = tuple(self._condition(stack, replicates, theta) for theta in thetas)

        remainders = [replicates.remainder(float(np.exp(theta[-1]))) for theta in thetas]
        fitted = FittedGP(
            pairwise=self.pairwise,
            covariance=self.covariance,
            architectures=rows,
            thetas=thetas,
            processes=processes,
            scale=scale,
            observations=replicates,
            best_fantasy=np.full(len(thetas), -np.inf),
            log_likelihoods=np.array([process.log_likelihood for process in processes])
            + remainders,
        )
        _log.info(
            "%d observations; covariances repaired by up to %.1e", len(scores), fitted.repaired
        )
        return fitted

    def bounds(self, stack: Array) -> Bounds:
        """Return the bounds of theta for (c, u, u) distances and standardised scores."""
        return Likelihood(
            self.covariance, stack, Replicates.of((), np.empty(0)), self.noise.bounds(1.0)
        ).bounds

    def _condition(self, stack: Array, replicates: Replicates, theta: Array) -> GaussianProcess:
        noise = float(np.exp(theta[-1]))
        values, variances = replicates.merge(noise)
        return GaussianProcess.condition_repaired(
            self.covariance.value(stack, theta[:-1]), values, noise, variances
        )
