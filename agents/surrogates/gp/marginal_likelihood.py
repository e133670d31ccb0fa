"""Hyperparameters that maximise the marginal likelihood: many starts, analytic gradients (tree-Wasserstein, app. G).

Notation:

    symbol   meaning                                                     shape
    x        free log-parameters, in a box                               (d,)
    L        log marginal likelihood (`likelihood`)                      scalar
    c, h     centre and half widths of the box                           (d,)
    k        `prior`, the prior's standard deviation in units of h       scalar

Maximised is L(x) - 1/2 sum_j ((x_j - c_j) / (k h_j))^2: the maximum a posteriori of a log-normal prior. Of a dozen
observations L alone is often largest on a wall of the box, at no noise, or at nothing but noise; a weak prior decides
such cases and is soon outweighed (after 200 networks it moves nothing). The paper climbs by gradient descent; L-BFGS-B
does the same in a tenth of the steps.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from archive.agents.surrogates.base import Array
from archive.agents.surrogates.gp.bounds import Box
from archive.agents.surrogates.gp.likelihood import Inference, Likelihood
from archive.errors import NumericalError, UsageError

_log = logging.getLogger(__name__)

# What a line search is told where the covariance is not positive definite: worse than anything, still a number.
_WALL = 1e12
# Log likelihoods this close are one optimum.
_SAME = 1e-2


@dataclass(frozen=True)
class MarginalLikelihood(Inference):
    """One set of hyperparameters, the most likely one.

    All starts climb on a random `scout` of the architectures; the best two different optima are then climbed to the
    top on all of them. An optimum of 150 architectures is a few steps from that of 500, and a step costs n^3.

    Attributes:
        starts: Climbs, the first from the centre of the box.
        prior: Standard deviation of the log-normal prior in half widths of the box; None for none.
        observations: Architectures to look at, drawn at random where there are more.
        scout: Architectures that the starts look at.
    """

    starts: int = 5
    prior: float | None = 0.5
    observations: int = 1000
    scout: int = 150

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name in ("starts", "observations", "scout"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be >= 1, got {getattr(self, name)}")
        if self.prior is not None and not self.prior > 0.0:
            raise UsageError(f"prior must be > 0 or None, got {self.prior}")

    def thetas(self, likelihood: Likelihood, rng: np.random.Generator) -> Array:
        """See `Inference.thetas`."""
        whole = likelihood.sample(self.observations, rng)
        scout = whole.sample(self.scout, rng)
        tops = [self._climb(scout, x) for x in self._starts(scout, rng)]
        if scout is not whole:
            tops = [self._climb(whole, top.x) for top in _best_two(tops)]
        best = max(tops, key=lambda top: top.height)
        _log.info("%d rows, likelihood %.2f, %s", whole.rows, best.height, best.message)
        return whole.full(best.x)[None]

    def _starts(self, likelihood: Likelihood, rng: np.random.Generator) -> list[Array]:
        box = likelihood.box
        drawn = (self._draw(box, rng) for _ in range(20 * self.starts))
        # A likelihood costs a fraction of a climb; indefinite distances have none at small betas.
        sound = (x for x in (box.centre, *drawn) if np.isfinite(likelihood.value(x)))
        found = [x for x, _ in zip(sound, range(self.starts), strict=False)]
        if not found:
            raise NumericalError("no hyperparameters give these observations a likelihood that is finite")
        return found

    def _draw(self, box: Box, rng: np.random.Generator) -> Array:
        if self.prior is None:
            return box.draw(rng)
        return np.clip(rng.normal(box.centre, 0.5 * self.prior * box.widths), box.lower, box.upper)

    def _climb(self, likelihood: Likelihood, start: Array) -> _Top:
        box = likelihood.box

        def depth(x: Array) -> tuple[float, Array]:
            value, gradient = likelihood.value_and_gradient(x)
            if not np.isfinite(value):
                return _WALL, np.zeros_like(x)
            penalty, slope = self._penalty(box, x)
            return penalty - value, slope - gradient

        x = np.clip(start, box.lower, box.upper)
        # A hundredth of a unit of log likelihood changes no prediction.
        options = {"maxiter": 100, "ftol": 1e-7, "gtol": 1e-3}
        found = minimize(
            depth, x, jac=True, method="L-BFGS-B", bounds=np.stack([box.lower, box.upper], axis=1), options=options
        )
        return _Top(-float(found.fun), np.asarray(found.x, dtype=np.float64), str(found.message))

    def _penalty(self, box: Box, x: Array) -> tuple[float, Array]:
        if self.prior is None:
            return 0.0, np.zeros_like(x)
        z = 2.0 * (x - box.centre) / (self.prior * box.widths)
        return 0.5 * float(z @ z), 2.0 * z / (self.prior * box.widths)


class _Top(NamedTuple):
    height: float
    x: Array
    message: str


def _best_two(tops: list[_Top]) -> list[_Top]:
    ordered = sorted(tops, key=lambda top: -top.height)
    others = [top for top in ordered[1:] if ordered[0].height - top.height > _SAME]
    return [ordered[0], *others[:1]]
