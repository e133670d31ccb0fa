"""A Gaussian process whose prior is what another task's evaluations left: transfer to a new task.

| symbol  | meaning                                                                       | shape  |
|---------|-------------------------------------------------------------------------------|--------|
| f', k   | the other task's scores, a Gaussian process of this covariance                |        |
| m, C    | posterior mean and covariance of f', given the other task's evaluations       | (n,)   |
| r       | scores of this task that are a Gaussian process of covariance k, too          |        |
| rho     | how far this task follows the other one, in (-1, 1)                           | scalar |
| s, b    | unit and origin of this task's scores                                         | scalar |
| y, eta2 | what was observed, standardised; noise variance in units of s^2               | (n,)   |
| z, v    | mean of a network's replicates; its noise variance, eta2 / count (`repeats`)  | (u,)   |

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
nothing else would leave s open, there are `UNIT` evaluations more that found s = 1.
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
from archive.agents.surrogates.gp.replicates import Repeats
from archive.agents.surrogates.outcome_transforms import Scale, Transform
from archive.agents.surrogates.threads import one_thread
from archive.architecture.graph import Architecture
from archive.errors import NumericalError

COUPLINGS = {-0.9: 0.04, -0.5: 0.06, 0.0: 0.15, 0.5: 0.15, 0.8: 0.2, 0.95: 0.25, 0.99: 0.15}
"""Values of rho, and what probability each has before anything is known. Tasks of one archive are often alike."""

NOISES = {1e-4: 0.3, 1e-3: 0.3, 1e-2: 0.25, 1e-1: 0.15}
"""Values of eta2, and their probabilities."""

ORIGIN = 2.0
"""beta: where a study begins among what the other task praised, its scores are high from the first on."""

UNIT = 1.0
"""Evaluations that are taken to have found s = 1."""


class Informant(Protocol):
    """What another task's evaluations say of networks."""

    @property
    def studies(self) -> Sequence[str]:
        """Names of the studies that they are of."""

    def means(self, networks: Sequence[Architecture]) -> Array:
        """Return m of n networks: (n,) float64."""

    def against(self, rows: Sequence[Architecture], networks: Sequence[Architecture]) -> Against:
        """Return what is known of n networks, and between them and the rows."""


@dataclass(frozen=True)
class Against:
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
        found: Array = rho**2 * self.left + (1.0 - rho**2) * self.prior + ORIGIN**2
        return found

    def diagonal(self, rho: float) -> Array:
        """Return the variance of y / s of each network: (n,) float64."""
        found: Array = rho**2 * self.variances + (1.0 - rho**2) * self.variance + ORIGIN**2
        return found


@final
class InformedGP(Surrogate):
    """Learns a task with the help of another one.

    Args:
        informant: What the other task's evaluations say.
        transform: What happens to scores first: a name of `archive.agents.surrogates.outcome_transforms`, or a
        transform.
    """

    def __init__(self, informant: Informant, transform: str | Transform = "log-regret") -> None:
        """Keep the arguments."""
        self.informant, self.transform = informant, outcome_transforms.get(transform)

    def fit(self, architectures: Sequence[Architecture], scores: Array, rng: np.random.Generator) -> FittedInformedGP:
        """See `Surrogate.fit`. Nothing is random."""
        check_scores(architectures, scores)
        scale = self.transform.learn(scores)
        repeats = Repeats.of([one.key for one in architectures], scale.standardise(scores))
        rows = tuple(architectures[at] for at in repeats.first)
        against = self.informant.against(rows, rows)
        with one_thread(len(rows)):
            found = [_coupled(repeats, against, rho, noise) for rho in COUPLINGS for noise in NOISES]
        sound = [one for one in found if one is not None]
        if not sound:
            raise NumericalError("no coupling of the tasks gives these observations a likelihood that is finite")
        best = max(sound, key=lambda one: one.height)
        with one_thread(len(rows)):
            gram = against.covariance(best.rho)
            process = GaussianProcess.condition(gram, best.values, best.noise, best.variances)
        return FittedInformedGP(self.informant, rows, best.rho, best.unit, process, scale, repeats)


class _Coupled(NamedTuple):
    height: float
    rho: float
    noise: float
    unit: float
    values: Array
    variances: Array


def _coupled(repeats: Repeats, against: Against, rho: float, noise: float) -> _Coupled | None:
    """Return the most probable unit at one coupling and noise, and how probable all that is."""
    observed, variances = repeats.merged(noise)
    noisy, expected = against.covariance(rho), rho * against.means
    noisy[np.diag_indices(len(noisy))] += variances
    factor = try_cholesky(noisy)
    if factor is None:
        return None
    r = solve_triangular(factor, observed, lower=True, check_finite=False)
    q = solve_triangular(factor, expected, lower=True, check_finite=False)
    # Every replicate was observed in the unit, not every network only.
    n = len(repeats.rows)
    square, product = float(r @ r) + repeats.scatter(noise) + UNIT, float(r @ q)
    t = (product + np.sqrt(product**2 + 4.0 * square * (n + UNIT))) / (2.0 * square)
    height = (
        -0.5 * (t * t * square - 2.0 * t * product + float(q @ q))
        + (n + UNIT) * np.log(t)
        - float(np.log(factor.diagonal()).sum())
        + repeats.log_volume(noise)
        + np.log(COUPLINGS[rho])
        + np.log(NOISES[noise])
    )
    return _Coupled(float(height), rho, noise, 1.0 / t, t * observed - expected, variances)


@final
@dataclass(frozen=True, eq=False)
class FittedInformedGP(Fitted):
    """What `InformedGP` has learnt.

    Attributes:
        informant: As given to the surrogate.
        architectures: The rows of the process: the networks observed, each once, then those believed.
        rho: The coupling.
        unit: s.
        process: Of y / s - rho m.
        scale: From scores to standardised values.
        observations: What was observed, without what is believed.
        believed: The largest standardised value believed of a pending network; -inf without any.
    """

    informant: Informant
    architectures: tuple[Architecture, ...]
    rho: float
    unit: float
    process: GaussianProcess
    scale: Scale
    observations: Repeats
    believed: float = -np.inf

    sets = 1

    @property
    def best(self) -> float:
        """The incumbent's standardised value, the mean of its evaluations."""
        return max(float(self.observations.merged(self.process.noise)[0].max()), self.believed)

    def posterior(self, architectures: Sequence[Architecture], *, joint: bool = False) -> Posterior:
        """See `Fitted.posterior`."""
        against = self.informant.against(self.architectures, architectures)
        cross, covariance = against.covariance(self.rho), None
        with one_thread(len(self.architectures)):
            if joint:
                prior = self.informant.against(architectures, architectures).covariance(self.rho)
                added, covariance = self.process.predict_jointly(cross, prior)
                variance = np.clip(covariance.diagonal(), 0.0, None)
            else:
                added, variance = self.process.predict(cross, against.diagonal(self.rho))
        means = self.rho * against.means + added
        centre, spread = self.scale.centre, self.scale.spread
        squared = (spread * self.unit) ** 2
        return Posterior(
            means=(centre + spread * self.unit * means)[None],
            variances=(squared * variance)[None],
            best=np.array([centre + spread * self.best]),
            covariances=None if covariance is None else squared * covariance[None],
            scales=(self.scale,),
        )

    def hallucinate(self, architectures: Sequence[Architecture]) -> FittedInformedGP:
        """See `Fitted.hallucinate`."""
        if len(architectures) == 0:
            return self
        cross = self.informant.against(self.architectures, architectures).covariance(self.rho)
        prior = self.informant.against(architectures, architectures).covariance(self.rho)
        process = self.process.extend(cross, prior)
        expected = self.rho * self.informant.means(architectures) + process.values[-len(architectures) :]
        return replace(
            self,
            architectures=(*self.architectures, *architectures),
            process=process,
            believed=max(self.believed, self.unit * float(expected.max())),
        )

    def densities(self) -> Array:
        """Return log p(y_i | the others) of every row: (u,) float64."""
        found: Array = self.process.left_out() - np.log(self.unit)
        return found
