"""Coregionalised Gaussian process: transfer from a source task, which is conditioned on once.

| symbol  | meaning                                                                       | shape  |
|---------|-------------------------------------------------------------------------------|--------|
| f', k   | scores of the source task, a Gaussian process of this covariance              |        |
| m, C    | posterior mean and covariance of f', given the source task's evaluations      | (n,)   |
| r       | task-specific part of the scores, an independent process of covariance k      |        |
| rho     | correlation of the two tasks, in (-1, 1)                                      | scalar |
| s, b    | output scale and offset of the target task's scores                           | scalar |
| y, eta2 | observed scores, standardised; noise variance in units of s^2                 | (n,)   |
| z, v    | mean of a network's replicates; its noise variance, eta2 / count (`replicates`) | (u,) |

    y = s (rho f' + sqrt(1 - rho^2) r + b + noise),    b ~ N(0, beta^2)

    y / s - rho m  ~  N(0, B),    B = rho^2 C + (1 - rho^2) k + beta^2 + eta2 I

This is the intrinsic coregionalisation model of two tasks, with covariance rho_tt' k (Bonilla,
Chai, Williams: Multi-task Gaussian process prediction, 2007), where k is fitted to the source task
alone. The source task's evaluations are conditioned on once, so that a fit costs O(n^3) in the
target task's evaluations only.

rho and eta2 are the most probable values of a grid; rho may be negative, as a reversed task is as
informative as the task. For each pair, s is the most probable value in closed form. The n
evaluations are of u networks; evaluations of one network, its replicates, differ by noise alone.
With L L^T = rho^2 C + (1 - rho^2) k + beta^2 + diag(v), q = L^-1 rho m, r = L^-1 z and t = 1 / s,
the log likelihood is

    -1/2 |t r - q|^2 - t^2 W / 2 + n log t - sum log L_ii + D - u/2 log 2 pi
    W = sum_i (y_i - z_g)^2 / eta2,    D = sum_rows 1/2 log 2 pi v - n/2 log 2 pi eta2

W and D are the likelihood of the replicates given their mean; without them every noise level would
explain replicates that disagree. The derivative by t is zero where t^2 (|r|^2 + W) - t r^T q - n =
0. Evaluations that repeat the source leave s undetermined, so the prior adds `SCALE_EVALUATIONS`
pseudo-evaluations with s = 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple, Protocol, final

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

from archive.agents.surrogates import outcome_transforms
from archive.agents.surrogates.base import Array, Fitted, Posterior, Surrogate
from archive.agents.surrogates.gp.exact import GaussianProcess, try_cholesky
from archive.agents.surrogates.gp.fitted import standardise_observations
from archive.agents.surrogates.gp.replicates import Replicates
from archive.agents.surrogates.outcome_transforms import OutcomeTransform, Scale
from archive.agents.surrogates.threads import one_thread
from archive.architecture.graph import Architecture
from archive.errors import NumericalError

OFFSET_STD = 2.0
"""beta, prior standard deviation of the offset.

Wide: a warm-started study begins with networks that are good on the source task, which shifts its
standardised scores."""


class SourceModel(Protocol):
    """A model fitted to the evaluations of a source task."""

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


CORRELATIONS = {-0.9: 0.04, -0.5: 0.06, 0.0: 0.15, 0.5: 0.15, 0.8: 0.2, 0.95: 0.25, 0.99: 0.15}
"""Grid of rho with prior probabilities. Tasks of one archive are often similar."""

NOISES = {1e-4: 0.3, 1e-3: 0.3, 1e-2: 0.25, 1e-1: 0.15}
"""Grid of eta2 with prior probabilities."""

SCALE_EVALUATIONS = 1.0
"""Pseudo-evaluations with s = 1, the prior of the output scale."""


class GridPoint(NamedTuple):
    """One correlation and noise, with the most probable output scale.

    Attributes:
        log_posterior: Log likelihood, with the priors of rho, eta2 and s.
        rho: The correlation.
        noise: eta2.
        output_scale: s.
        values: (u,) float64: z / s - rho m.
        variances: (u,) float64: v.
    """

    log_posterior: float
    rho: float
    noise: float
    output_scale: float
    values: Array
    variances: Array


def grid(replicates: Replicates, source: SourcePosterior) -> list[GridPoint]:
    """Return the points of finite likelihood.

    Raises:
        NumericalError: No point has a finite likelihood.
    """
    with one_thread(len(source.means)):
        grid_values = product(CORRELATIONS, NOISES)
        points = [_grid_point(replicates, source, rho, noise) for rho, noise in grid_values]

    finite = [point for point in points if point is not None]
    if not finite:
        raise NumericalError(
            "the observations have no finite likelihood at any correlation of the tasks"
        )

    return finite


def _grid_point(
    replicates: Replicates, source: SourcePosterior, rho: float, noise: float
) -> GridPoint | None:
    """Return the most probable output scale at one correlation and noise.

    None for an indefinite covariance.
    """
    observed, variances = replicates.merge(noise)
    noisy = source.covariance(rho)
    expected = rho * source.means
    noisy[np.diag_indices(len(noisy))] += variances
    factor = try_cholesky(noisy)
    if factor is None:
        return None

    r = solve_triangular(factor, observed, lower=True, check_finite=False)
    q = solve_triangular(factor, expected, lower=True, check_finite=False)
    # The Jacobian n log t counts every evaluation, not only every network.
    n = len(replicates.rows)
    square = float(r @ r) + replicates.scatter(noise) + SCALE_EVALUATIONS
    product = float(r @ q)
    t = (product + np.sqrt(product**2 + 4.0 * square * (n + SCALE_EVALUATIONS))) / (2.0 * square)
    log_posterior = (
        -0.5 * (t * t * square - 2.0 * t * product + float(q @ q))
        + (n + SCALE_EVALUATIONS) * np.log(t)
        - float(np.log(factor.diagonal()).sum())
        + replicates.log_volume(noise)
        + np.log(CORRELATIONS[rho])
        + np.log(NOISES[noise])
    )
    return GridPoint(float(log_posterior), rho, noise, 1.0 / t, t * observed - expected, variances)


class LogLikelihoods(NamedTuple):
    """Log likelihoods of scores y under the prior of the grid, up to one constant.

    Attributes:
        correlated: log p(y | rho != 0).
        uncorrelated: log p(y | rho = 0).
        reversed: log p(y, rho < 0 | rho != 0); -inf where no negative rho has a finite likelihood.
    """

    correlated: float
    uncorrelated: float
    reversed: float

    @classmethod
    def of(cls, points: Sequence[GridPoint]) -> LogLikelihoods:
        """Return the log likelihoods from the points of a grid.

        Raises:
            NumericalError: All points have a correlation, or none has one.
        """
        signs, posteriors = np.array(
            [(np.sign(point.rho), point.log_posterior) for point in points]
        ).T
        if not 0 < np.count_nonzero(signs) < len(signs):
            raise NumericalError(
                "the observations have no finite likelihood with or without a correlation"
            )

        none = CORRELATIONS[0.0]
        return cls(
            correlated=logsumexp(posteriors, b=signs != 0.0) - math.log(1.0 - none),
            uncorrelated=logsumexp(posteriors, b=signs == 0.0) - math.log(none),
            reversed=logsumexp(posteriors, b=signs < 0.0) - math.log(1.0 - none),
        )


@final
class CoregionalisedGP(Surrogate):
    """A Gaussian process of a target task that is correlated with one source task.

    Args:
        source_model: Model of the source task.
        transform: Outcome transform: a name of `archive.agents.surrogates.outcome_transforms`, or
            an object.
    """

    def __init__(
        self, source_model: SourceModel, transform: str | OutcomeTransform = "log-regret"
    ) -> None:
        self.source_model = source_model
        self.transform = outcome_transforms.get(transform)

    def fit(
        self,
        architectures: Sequence[Architecture],
        scores: Array,
        rng: np.random.Generator,
        variances: Array | None = None,
    ) -> FittedCoregionalisedGP:
        """See `Surrogate.fit`. The fit is deterministic; known variances enter as if s were 1."""
        scale, replicates, rows = standardise_observations(
            architectures, scores, variances, self.transform
        )
        source = self.source_model.posterior(rows, rows)
        best = max(grid(replicates, source), key=lambda point: point.log_posterior)
        with one_thread(len(rows)):
            gram = source.covariance(best.rho)
            process = GaussianProcess.condition(gram, best.values, best.noise, best.variances)

        return FittedCoregionalisedGP(
            self.source_model, rows, best.rho, best.output_scale, process, scale, replicates
        )

    def log_likelihoods(
        self, architectures: Sequence[Architecture], scores: Array, variances: Array | None = None
    ) -> LogLikelihoods:
        """Return the log likelihoods of the scores given the sign of rho.

        Args:
            architectures: n evaluated networks.
            scores: (n,) float64, their scores on the target task.
            variances: (n,) float64, known variances of the scores; None for none.

        Raises:
            NumericalError: No correlation, or no other value of rho, has a finite likelihood.
        """
        _, replicates, rows = standardise_observations(
            architectures, scores, variances, self.transform
        )
        return LogLikelihoods.of(grid(replicates, self.source_model.posterior(rows, rows)))


@final
@dataclass(frozen=True, eq=False)
class FittedCoregionalisedGP(Fitted):
    """A fitted `CoregionalisedGP`.

    Attributes:
        source_model: As given to the surrogate.
        architectures: The rows of the process: the observed networks, each once, then the
            fantasised ones.
        rho: The estimated correlation of the tasks.
        output_scale: s.
        process: Gaussian process of y / s - rho m.
        scale: Maps scores to standardised values.
        observations: The observations, without fantasies.
        best_fantasy: The largest standardised fantasy value; -inf without fantasies.
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
    def task_correlation(self) -> float:
        """Estimated correlation of the two tasks: rho, or -rho of a model of negated scores."""
        return self.source_model.sign * self.rho

    @property
    def best(self) -> float:
        """The incumbent's standardised value, the mean of its evaluations."""
        return max(float(self.observations.merge(self.process.noise)[0].max()), self.best_fantasy)

    def posterior(self, architectures: Sequence[Architecture], *, joint: bool = False) -> Posterior:
        """See `Fitted.posterior`."""
        source = self.source_model.posterior(self.architectures, architectures)
        cross = source.covariance(self.rho)
        covariance = None
        with one_thread(len(self.architectures)):
            if joint:
                prior = self.source_model.posterior(architectures, architectures).covariance(
                    self.rho
                )
                added, covariance = self.process.predict_jointly(cross, prior)
                variance = np.clip(covariance.diagonal(), 0.0, None)
            else:
                added, variance = self.process.predict(cross, source.diagonal(self.rho))

        means = self.rho * source.means + added
        centre = self.scale.centre
        spread = self.scale.spread
        squared = (spread * self.output_scale) ** 2
        return Posterior(
            means=(centre + spread * self.output_scale * means)[None],
            variances=(squared * variance)[None],
            best=np.array([centre + spread * self.best]),
            covariances=None if covariance is None else squared * covariance[None],
            scales=(self.scale,),
        )

    def noises(self) -> Array:
        """See `Fitted.noises`."""
        return np.array([(self.scale.spread * self.output_scale) ** 2 * self.process.noise])

    def hallucinate(self, architectures: Sequence[Architecture]) -> FittedCoregionalisedGP:
        """See `Fitted.hallucinate`."""
        if len(architectures) == 0:
            return self

        cross = self.source_model.posterior(self.architectures, architectures).covariance(self.rho)
        prior = self.source_model.posterior(architectures, architectures).covariance(self.rho)
        process = self.process.extend(cross, prior)
        expected = (
            self.rho * self.source_model.means(architectures)
            + process.values[-len(architectures) :]
        )
        return replace(
            self,
            architectures=(*self.architectures, *architectures),
            process=process,
            best_fantasy=max(self.best_fantasy, self.output_scale * float(expected.max())),
        )

    def loo_log_densities(self) -> Array:
        """Return log p(y_i | the others) of every row: (u,) float64."""
        densities: Array = self.process.loo_log_densities() - np.log(self.output_scale)
        return densities
