"""Regression of scores at one rung on scores at the rung below.

| symbol  | meaning                                                                                    | shape  |
|---------|--------------------------------------------------------------------------------------------|--------|
| x       | scores at the lower rung: of all n networks there, and of the p promoted ones              | (n,)   |
| y       | scores of these p at the upper rung; pairs with an outlier are left out                    | (p,)   |
| c, s    | mean and standard deviation of the n scores x without outliers, the unit of z              | scalar |
| z, w    | (x - c) / s of a network; (y - c) / s                                                      | scalar |
| a, b    | intercept and slope                                                                        | scalar |
| sigma2  | variance of the noise                                                                      | scalar |
| t       | how far z lies below the lowest z of the p networks, at least 0                            | scalar |

    w = a + b z + noise,    noise ~ N(0, sigma2),    b >= 0
    a ~ N(0, sigma2 / INTERCEPT),  b ~ N(SLOPE, sigma2 / PRECISION),  sigma2 ~ inverse gamma(SHAPE, SHAPE SPREAD)

Only the best networks of a rung are promoted. The choice depends on x alone, and the regression is
conditioned on x, so that a and b are not biased. The mean gain y - x of the promoted networks is
biased: they were lucky at the lower rung, or have less left to gain. (Rubin, Inference and missing
data, 1976: missingness that depends on observed values is ignorable. With a chain of rungs the
pattern is monotone, and the likelihood factors into one regression a step: Little and Rubin,
Statistical analysis with missing data, 2002, section 7.4.)

The posterior is the conjugate one (normal inverse gamma), its prediction a Student t of which mean
and variance are returned. Networks that are never promoted are below the ones that the line is
fitted to, where its slope may differ: the standard deviation TURN t s is added there. The constants
were chosen on NAS-Bench-101 and NAS-Bench-201 (`docs/benchmarks.md`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from archive.agents.observations import fences, usual

Floats = NDArray[np.float64]

SLOPE = 0.5
PRECISION = 1.0
"""Prior mean of the slope, and pseudo-pairs of its precision: worse networks catch up."""

INTERCEPT = 0.01
"""Pseudo-pairs of the precision of the intercept: one pair decides it."""

SHAPE = 1.5
SPREAD = 0.1
"""Shape of the prior of the noise variance, and its scale in squared standard deviations of the
lower rung."""

TURN = 0.3
"""Standard deviation of the change of the slope below the promoted networks."""


class Prediction(NamedTuple):
    """Mean and variance of a score at the upper rung."""

    mean: float
    variance: float


@dataclass(frozen=True)
class RungRegression:
    """A fitted regression from one rung to the next; immutable.

    Attributes:
        centre: c.
        spread: s, positive.
        slope: b, at least 0.
        intercept: a.
        covariance: (2, 2) float64: posterior covariance of (a, b) in units of sigma2.
        noise: E[sigma2].
        lowest: The lowest z of the promoted networks.
    """

    centre: float
    spread: float
    intercept: float
    slope: float
    covariance: Floats
    noise: float
    lowest: float

    @classmethod
    def fit(cls, lower: Floats, early: Floats, late: Floats) -> RungRegression:
        """Fit the regression.

        Args:
            lower: (n,) float64: x of all networks at the lower rung, finite, at least one.
            early: (p,) float64: x of the networks with a result at both rungs, finite, at least
                one.
            late: (p,) float64: y of these, finite.
        """
        # A failed training must not change the unit of the prior or the slope of the line.
        pairs = (early >= fences(lower)) & usual(late)
        if pairs.any():
            early = early[pairs]
            late = late[pairs]

        lower = lower[usual(lower)]
        centre = float(lower.mean())
        spread = _spread(lower, late)
        z = (early - centre) / spread
        w = (late - centre) / spread
        free = np.column_stack([np.ones_like(z), z])
        fitted = _posterior(free, w, np.array([0.0, SLOPE]), np.array([INTERCEPT, PRECISION]))
        if fitted.mean[1] < 0.0:
            # Under the constraint b >= 0 the density is greatest at b = 0.
            flat = _posterior(free[:, :1], w, np.zeros(1), np.array([INTERCEPT]))
            covariance = np.diag([flat.covariance[0, 0], 0.0])
            fitted = _Posterior(np.array([flat.mean[0], 0.0]), covariance, flat.noise)

        intercept = float(fitted.mean[0])
        slope = float(fitted.mean[1])
        return cls(
            centre, spread, intercept, slope, fitted.covariance, fitted.noise, float(z.min())
        )

    def predict(self, score: float, variance: float = 0.0) -> Prediction:
        """Predict the score of a network at the upper rung.

        Args:
            score: Its score at the lower rung.
            variance: Variance of this score, where it is a prediction itself.
        """
        z = (score - self.centre) / self.spread
        at = np.array([1.0, z])
        own = (
            self.noise * (1.0 + float(at @ self.covariance @ at))
            + (TURN * max(self.lowest - z, 0.0)) ** 2
        )
        mean = self.centre + self.spread * (self.intercept + self.slope * z)
        return Prediction(mean, self.spread**2 * own + self.slope**2 * variance)


class _Posterior(NamedTuple):
    mean: Floats
    covariance: Floats
    noise: float


def _posterior(inputs: Floats, values: Floats, mean: Floats, precision: Floats) -> _Posterior:
    """Return the conjugate posterior of the coefficients, and the variance of the Student t."""
    matrix = np.diag(precision) + inputs.T @ inputs
    posterior = np.linalg.solve(matrix, precision * mean + inputs.T @ values)
    gaps = values - inputs @ posterior
    moved = posterior - mean
    scale = SHAPE * SPREAD + 0.5 * (float(gaps @ gaps) + float(precision @ moved**2))
    # Of a Student t with 2 a degrees of freedom and scale b / a the variance is b / (a - 1).
    covariance: Floats = np.linalg.inv(matrix).astype(np.float64)
    return _Posterior(
        posterior.astype(np.float64), covariance, scale / (SHAPE + 0.5 * len(values) - 1.0)
    )


def _spread(lower: Floats, late: Floats) -> float:
    """Return the standard deviation of the lower rung; of equal scores, that of the upper rung, or
    the gain, or 1.
    """
    for spread, scores in (
        (lower.std(), lower),
        (late.std(), late),
        (abs(late.mean() - lower.mean()), late),
    ):
        if spread > 1e-9 * max(1e-300, float(np.abs(scores).max())):
            return float(spread)

    return 1.0
