"""Maximum a posteriori hyperparameters: multi-start L-BFGS-B with analytic gradients.

See tree-Wasserstein, appendix G.

Notation:

    symbol   meaning                                                     shape
    x        free log-parameters, within bounds                          (d,)
    L        log marginal likelihood (`likelihood`)                      scalar
    c, h     centre and half widths of the bounds                        (d,)
    k        standard deviations of the prior in units of h: `prior`,    (d,)
             and `noise_prior` for the noise

The objective is L(x) - 1/2 sum_j ((x_j - c_j) / (k_j h_j))^2, the log posterior under a log-normal
prior. With a dozen observations the maximum of L alone often lies on the bounds, at no noise or at
noise only; the weak prior decides such cases and is soon outweighed (after 200 networks it changes
nothing). The paper uses gradient descent; L-BFGS-B needs a tenth of the steps.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from archive.agents.surrogates.base import Array
from archive.agents.surrogates.gp.likelihood import Bounds, Inference, Likelihood
from archive.errors import NumericalError, UsageError
from archive.values import require_at_least

_log = logging.getLogger(__name__)

_WALL = 1e12
"""Objective for a covariance that is not positive definite: finite, as the line search requires,
and worse than any other."""
_SAME = 1e-2
"""Difference of the log posteriors below which two optima count as the same."""


@dataclass(frozen=True)
class MarginalLikelihood(Inference):
    """One hyperparameter set, the maximum a posteriori.

    All starts are optimised on a random subset of `subset_size` architectures; the best two
    distinct optima are then refined on all of them. An optimum of 150 architectures is a few steps
    from the optimum of 500, and a step costs n^3.

    Attributes:
        starts: Number of starts, the first from the centre of the bounds.
        prior: Standard deviation of the log-normal prior in half widths of the bounds; None for no
            prior.
        noise_prior: The same for the noise variance; None for the same as `prior`.
        observations: Most architectures to use, drawn at random where there are more.
        subset_size: Architectures that the starts are optimised on.
    """

    starts: int = 5
    prior: float | None = 0.5
    noise_prior: float | None = None
    observations: int = 1000
    subset_size: int = 150

    def __post_init__(self) -> None:
        """Check the numbers."""
        require_at_least(
            1, starts=self.starts, observations=self.observations, subset_size=self.subset_size
        )
        for name, value in (("prior", self.prior), ("noise_prior", self.noise_prior)):
            if value is not None and not value > 0.0:
                raise UsageError(f"{name} must be > 0 or None, got {value}")

    def thetas(self, likelihood: Likelihood, rng: np.random.Generator) -> Array:
        """See `Inference.thetas`."""
        whole = likelihood.sample(self.observations, rng)
        subset = whole.sample(self.subset_size, rng)
        optima = [self._climb(subset, x) for x in self._starts(subset, rng)]
        if subset is not whole:
            optima = [self._climb(whole, optimum.x) for optimum in _best_two(optima)]

        best = max(optima, key=lambda optimum: optimum.log_posterior)
        _log.info("%d rows, likelihood %.2f, %s", whole.rows, best.log_posterior, best.message)
        return whole.full(best.x)[None]

    def _starts(self, likelihood: Likelihood, rng: np.random.Generator) -> list[Array]:
        bounds = likelihood.bounds
        candidates = [bounds.centre]
        candidates += [self._draw(likelihood, rng) for _ in range(20 * self.starts)]
        starts: list[Array] = []
        for candidate in candidates:
            # A likelihood costs a fraction of a climb; with indefinite distances it may be -inf at
            # small betas.
            if len(starts) < self.starts and np.isfinite(likelihood.value(candidate)):
                starts.append(candidate)

        if not starts:
            raise NumericalError(
                "the observations have no finite likelihood at any hyperparameters tried"
            )

        return starts

    def _draw(self, likelihood: Likelihood, rng: np.random.Generator) -> Array:
        bounds = likelihood.bounds
        stds = self._stds(likelihood.bounds, likelihood.learns_noise)
        if stds is None:
            return bounds.draw(rng)

        return np.clip(rng.normal(bounds.centre, stds), bounds.lower, bounds.upper)

    def _climb(self, likelihood: Likelihood, start: Array) -> _Optimum:
        bounds = likelihood.bounds

        def negative_log_posterior(x: Array) -> tuple[float, Array]:
            value, gradient = likelihood.value_and_gradient(x)
            if not np.isfinite(value):
                return _WALL, np.zeros_like(x)

            penalty, slope = self._penalty(bounds, x, likelihood.learns_noise)
            return penalty - value, slope - gradient

        x = np.clip(start, bounds.lower, bounds.upper)
        # A hundredth of a unit of log likelihood makes no difference to predictions.
        options = {"maxiter": 100, "ftol": 1e-7, "gtol": 1e-3}
        box = np.stack([bounds.lower, bounds.upper], axis=1)
        result = minimize(
            negative_log_posterior, x, jac=True, method="L-BFGS-B", bounds=box, options=options
        )
        return _Optimum(
            -float(result.fun), np.asarray(result.x, dtype=np.float64), str(result.message)
        )

    def _penalty(self, bounds: Bounds, x: Array, learns_noise: bool = True) -> tuple[float, Array]:
        stds = self._stds(bounds, learns_noise)
        if stds is None:
            return 0.0, np.zeros_like(x)

        z = (x - bounds.centre) / stds
        return 0.5 * float(z @ z), z / stds

    def _stds(self, bounds: Bounds, learns_noise: bool) -> Array | None:
        """Return k h, (d,) float64; None without a prior."""
        if self.prior is None:
            return None

        stds: Array = 0.5 * self.prior * bounds.widths
        if learns_noise and self.noise_prior is not None:
            stds[-1] = 0.5 * self.noise_prior * bounds.widths[-1]

        return stds


class _Optimum(NamedTuple):
    log_posterior: float
    x: Array
    message: str


def _best_two(optima: list[_Optimum]) -> list[_Optimum]:
    ordered = sorted(optima, key=lambda optimum: -optimum.log_posterior)
    for optimum in ordered[1:]:
        if ordered[0].log_posterior - optimum.log_posterior > _SAME:
            return [ordered[0], optimum]

    return ordered[:1]
