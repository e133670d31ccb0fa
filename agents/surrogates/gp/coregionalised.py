"""A Gaussian process whose prior is what another task's evaluations left: transfer to a new task.

| symbol  | meaning                                                                       | shape  |
|---------|-------------------------------------------------------------------------------|--------|
| f', k   | the other task's scores, a Gaussian process of this covariance                |        |
| m, C    | posterior mean and covariance of f', given the other task's evaluations       | (n,)   |
| r       | scores of this task that are a Gaussian process of covariance k, too          |        |
| rho     | how far this task follows the other one, in (-1, 1)                           | scalar |
| s, b    | output_scale and origin of this task's scores                                         | scalar |
| y, eta2 | what was observed, standardised; noise variance in units of s^2               | (n,)   |
| z, v    | mean of a network's replicates; its noise variance, eta2 / count (`replicates`)  | (u,)   |

    y = s (rho f' + sqrt(1 - rho^2) r + b + noise),    b ~ N(0, beta^2)

    y / s - rho m  ~  N(0, B),    B = rho^2 C + (1 - rho^2) k + beta^2 + eta2 I

That is the Gaussian process of two coupled tasks with the covariance rho_tt' k (intrinsic coregionalisation: Bonilla,
Chai, Williams: Multi-task Gaussian process prediction, 2007), where what the other task has to say of k is taken as
settled. The other task's evaluations are conditioned on once, and a new one costs O(n^3) in those of this task alone.

rho and eta2 are the most probable of a grid; rho may be negative, as the reverse of a task tells as much as the task.
For each, s is the most probable in closed form. The n evaluations are of u networks, and those of one network, its
replicates, differ by noise alone. With L L^T = rho^2 C + (1 - rho^2) k + beta^2 + diag(v), q = L^-1 rho m, r = L^-1 z
and t = 1 / s, the logarithm of the likelihood is

    -1/2 |t r - q|^2 - t^2 W / 2 + n log t - sum log L_ii + D - u/2 log 2 pi
    W = sum_i (y_i - z_g)^2 / eta2,    D = sum_rows 1/2 log 2 pi v - n/2 log 2 pi eta2

W and D are the likelihood of the replicates given their mean; without them any noise would explain replicates that
disagree. The derivative by t is zero where t^2 (|r|^2 + W) - t r^T q - n = 0. As evaluations of the same networks and
nothing else would leave s open, there are `SCALE_EVALUATIONS` evaluations more that found s = 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, final

import numpy as np
from scipy.linalg import solve_triangular

from archive.agents.surrogates import outcome_transforms
from archive.agents.surrogates.base import Array, Fitted, Posterior, Surrogate, check_scores
from archive.agents.surrogates.gp.exact import GaussianProcess, try_cholesky
from archive.agents.surrogates.gp.replicates import Replicates
from archive.agents.surrogates.outcome_transforms import OutcomeTransform, Scale
from archive.agents.surrogates.threads import one_thread
from archive.architecture.graph import Architecture
from archive.errors import NumericalError

CORRELATIONS = {-0.9: 0.04, -0.5: 0.06, 0.0: 0.15, 0.5: 0.15, 0.8: 0.2, 0.95: 0.25, 0.99: 0.15}
"""Values of rho, and what probability each has before anything is known. Tasks of one archive are often alike."""

NOISES = {1e-4: 0.3, 1e-3: 0.3, 1e-2: 0.25, 1e-1: 0.15}
"""Values of eta2, and their probabilities."""

OFFSET_STD = 2.0
"""beta: where a study begins among what the other task praised, its scores are high from the first on."""

SCALE_EVALUATIONS = 1.0
"""Evaluations that are taken to have found s = 1."""


class SourceModel(Protocol):
    """What another task's evaluations say of networks."""

    @property
    def studies(self) -> Sequence[str]:
        """Names of the studies that they are of."""

    def means(self, networks: Sequence[Architecture]) -> Array:
        """Return m of n networks: (n,) float64."""

    def posterior(self, rows: Sequence[Architecture], networks: Sequence[Architecture]) -> SourcePosterior:
        """Return what is known of n networks, and between them and the rows."""


@dataclass(frozen=True)
class SourcePosterior:
    """What another task's evaluations say of n networks, and between them and r rows.

    Attributes:
        means: (n,) float64: m.
        prior: (r, n) float64: k.
        left: (r, n) float64: C.
        variance: k of a network with itself, which is the same for all.
        variances: (n,) float64: C of a network with itself.
    """

    means: Array
    prior: Array
    left: Array
    variance: float
    variances: Array

    def covariance(self, rho: float) -> Array:
        """Return the covariance of y / s: (r, n) float64."""
        found: Array = rho**2 * self.left + (1.0 - rho**2) * self.prior + OFFSET_STD**2
        return found

    def diagonal(self, rho: float) -> Array:
        """Return the variance of y / s of each network: (n,) float64."""
        found: Array = rho**2 * self.variances + (1.0 - rho**2) * self.variance + OFFSET_STD**2
        return found


@final
class CoregionalisedGP(Surrogate):
    """Learns a task with the help of another one.

    Args:
        source_model: What the other task's evaluations say.
        transform: What happens to scores first: a name of `archive.agents.surrogates.outcome_transforms`, or a
        transform.
    """

    def __init__(self, source_model: SourceModel, transform: str | OutcomeTransform = "log-regret") -> None:
        """Keep the arguments."""
        self.source_model, self.transform = source_model, outcome_transforms.get(transform)

    def fit(
        self, architectures: Sequence[Architecture], scores: Array, rng: np.random.Generator
    ) -> FittedCoregionalisedGP:
        """See `Surrogate.fit`. Nothing is random."""
        check_scores(architectures, scores)
        scale = self.transform.learn(scores)
        replicates = Replicates.of([one.key for one in architectures], scale.standardise(scores))
        rows = tuple(architectures[at] for at in replicates.first)
        source = self.source_model.posterior(rows, rows)
        with one_thread(len(rows)):
            found = [_grid_point(replicates, source, rho, noise) for rho in CORRELATIONS for noise in NOISES]
        sound = [one for one in found if one is not None]
        if not sound:
            raise NumericalError("no coupling of the tasks gives these observations a likelihood that is finite")
        best = max(sound, key=lambda one: one.log_posterior)
        with one_thread(len(rows)):
            gram = source.covariance(best.rho)
            process = GaussianProcess.condition(gram, best.values, best.noise, best.variances)
        return FittedCoregionalisedGP(self.source_model, rows, best.rho, best.output_scale, process, scale, replicates)


class _GridPoint(NamedTuple):
    log_posterior: float
    rho: float
    noise: float
    output_scale: float
    values: Array
    variances: Array


def _grid_point(replicates: Replicates, source: SourcePosterior, rho: float, noise: float) -> _GridPoint | None:
    """Return the most probable output_scale at one coupling and noise, and how probable all that is."""
    observed, variances = replicates.merged(noise)
    noisy, expected = source.covariance(rho), rho * source.means
    noisy[np.diag_indices(len(noisy))] += variances
    factor = try_cholesky(noisy)
    if factor is None:
        return None
    r = solve_triangular(factor, observed, lower=True, check_finite=False)
    q = solve_triangular(factor, expected, lower=True, check_finite=False)
    # Every replicate was observed in the output_scale, not every network only.
    n = len(replicates.rows)
    square, product = float(r @ r) + replicates.scatter(noise) + SCALE_EVALUATIONS, float(r @ q)
    t = (product + np.sqrt(product**2 + 4.0 * square * (n + SCALE_EVALUATIONS))) / (2.0 * square)
    log_posterior = (
        -0.5 * (t * t * square - 2.0 * t * product + float(q @ q))
        + (n + SCALE_EVALUATIONS) * np.log(t)
        - float(np.log(factor.diagonal()).sum())
        + replicates.log_volume(noise)
        + np.log(CORRELATIONS[rho])
        + np.log(NOISES[noise])
    )
    return _GridPoint(float(log_posterior), rho, noise, 1.0 / t, t * observed - expected, variances)


@final
@dataclass(frozen=True, eq=False)
class FittedCoregionalisedGP(Fitted):
    """What `CoregionalisedGP` has learnt.

    Attributes:
        source_model: As given to the surrogate.
        architectures: The rows of the process: the networks observed, each once, then those believed.
        rho: The coupling.
        output_scale: s.
        process: Of y / s - rho m.
        scale: From scores to standardised values.
        observations: What was observed, without what is believed.
        best_fantasy: The largest standardised value believed of a pending network; -inf without any.
    """

    source_model: SourceModel
    architectures: tuple[Architecture, ...]
    rho: float
    output_scale: float
    process: GaussianProcess
    scale: Scale
    observations: Replicates
    best_fantasy: float = -np.inf

    sets = 1

    @property
    def best(self) -> float:
        """The incumbent's standardised value, the mean of its evaluations."""
        return max(float(self.observations.merged(self.process.noise)[0].max()), self.best_fantasy)

    def posterior(self, architectures: Sequence[Architecture], *, joint: bool = False) -> Posterior:
        """See `Fitted.posterior`."""
        source = self.source_model.posterior(self.architectures, architectures)
        cross, covariance = source.covariance(self.rho), None
        with one_thread(len(self.architectures)):
            if joint:
                prior = self.source_model.posterior(architectures, architectures).covariance(self.rho)
                added, covariance = self.process.predict_jointly(cross, prior)
                variance = np.clip(covariance.diagonal(), 0.0, None)
            else:
                added, variance = self.process.predict(cross, source.diagonal(self.rho))
        means = self.rho * source.means + added
        centre, spread = self.scale.centre, self.scale.spread
        squared = (spread * self.output_scale) ** 2
        return Posterior(
            means=(centre + spread * self.output_scale * means)[None],
            variances=(squared * variance)[None],
            best=np.array([centre + spread * self.best]),
            covariances=None if covariance is None else squared * covariance[None],
            scales=(self.scale,),
        )

    def hallucinate(self, architectures: Sequence[Architecture]) -> FittedCoregionalisedGP:
        """See `Fitted.hallucinate`."""
        if len(architectures) == 0:
            return self
        cross = self.source_model.posterior(self.architectures, architectures).covariance(self.rho)
        prior = self.source_model.posterior(architectures, architectures).covariance(self.rho)
        process = self.process.extend(cross, prior)
        expected = self.rho * self.source_model.means(architectures) + process.values[-len(architectures) :]
        return replace(
            self,
            architectures=(*self.architectures, *architectures),
            process=process,
            best_fantasy=max(self.best_fantasy, self.output_scale * float(expected.max())),
        )

    def loo_log_densities(self) -> Array:
        """Return log p(y_i | the others) of every row: (u,) float64."""
        found: Array = self.process.loo_log_densities() - np.log(self.output_scale)
        return found
