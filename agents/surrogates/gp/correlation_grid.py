"""Likelihoods of a target task's scores on a grid of correlations with a source task and of noise
levels.

The symbols and the formula are those of `coregionalised`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

from archive.agents.surrogates.base import Array
from archive.agents.surrogates.gp.exact import try_cholesky
from archive.agents.surrogates.gp.replicates import Replicates
from archive.agents.surrogates.gp.source_posterior import SourcePosterior
from archive.agents.surrogates.threads import one_thread
from archive.errors import NumericalError

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
        points = [
            _grid_point(replicates, source, rho, noise) for rho in CORRELATIONS for noise in NOISES
        ]

    finite = [point for point in points if point is not None]
    if not finite:
        raise NumericalError(
            "the observations have no finite likelihood at any correlation of the tasks"
        )

    return finite


def _grid_point(
    replicates: Replicates, source: SourcePosterior, rho: float, noise: float
) -> GridPoint | None:
    """Return the most probable output scale at one correlation and noise;

    None for an indefinite covariance.
    """
    observed, variances = replicates.merged(noise)
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
