r"""Forecast of losses: a scaling law with uncertain coefficients, and a model of what it misses.

| symbol | meaning                                                                    | shape  |
|--------|----------------------------------------------------------------------------|--------|
| y      | log L of the runs                                                          | (n,)   |
| l_s    | log L by a law that is fitted to a bootstrap sample of the runs            | (m,)   |
| g      | what a design loses against the law (`residuals`)                          | (m,)   |
| z      | errors of a forecast of the larger runs from the smaller ones, in its      | (k,)   |
|        | standard deviations                                                        |        |

    log L(x, N, D) = l_s(N, D) + g(x, N, D) + noise

Intervals must hold beyond the runs. The model is therefore fitted to the half of the runs with the
fewest operations first, and predicts the others: the quantiles of their z, where they exceed those
of a normal distribution, stretch the lower and the upper part of the interval. This is conformal
prediction with a split by scale (Vovk et al., Algorithmic Learning in a Random World, 2005).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import norm

from archive.agents.scaling import laws, residuals
from archive.agents.scaling.laws import LawForm, ScalingLaw
from archive.agents.scaling.residuals import ResidualModel, ScaledRuns
from archive.agents.surrogates.base import Array
from archive.spaces.base import Space

DRAWS = 400
BOOTSTRAPS = 20
COVERAGE = 0.9
"""Share of the trainings whose loss is inside of their interval."""
LEAST_CALIBRATED = 16
"""Fewest runs that are split for the calibration."""
UNCALIBRATED = 1.5
"""Factor of the intervals with fewer runs."""


@dataclass(frozen=True, eq=False)
class LossForecast:
    """Forecast of m trainings.

    Attributes:
        median: (m,) float64, loss.
        low: (m,) lower ends of the intervals of `COVERAGE`.
        high: (m,) upper ends.
    """

    median: Array
    low: Array
    high: Array


@dataclass(frozen=True, eq=False)
class ScalingModel:
    """A fitted model of losses.

    Attributes:
        law: The law of all runs.
        bootstraps: Laws of bootstrap samples.
        residual: Model of g; None with too few designs: g is then normal.
        spread: Standard deviation of log L of a training beside the law and the model of g.
        stretch: Factors of the lower and of the upper part of an interval.
    """

    law: ScalingLaw
    bootstraps: tuple[ScalingLaw, ...]
    residual: ResidualModel | None
    spread: float
    stretch: tuple[float, float] = (1.0, 1.0)

    def forecast(self, designs: ScaledRuns) -> LossForecast:
        """Return the losses of single trainings."""
        centre, std = self.moments(designs)
        width = float(norm.ppf(0.5 + 0.5 * COVERAGE)) * std
        low, high = self.stretch
        return LossForecast(
            np.exp(centre), np.exp(centre - low * width), np.exp(centre + high * width)
        )

    def moments(self, designs: ScaledRuns) -> tuple[Array, Array]:
        """Return mean and standard deviation of log L of single trainings: (m,), (m,)."""
        centre = self.law.log_loss(designs.params, designs.tokens)
        variance = self._laws(designs).var(axis=0) + self.spread**2
        if self.residual is not None:
            means, stds = self.residual.predict(designs)
            centre = centre + means
            variance = variance + np.square(stds)

        return centre, np.sqrt(variance)

    def sample(self, designs: ScaledRuns, rng: np.random.Generator, count: int = DRAWS) -> Array:
        """Draw log L of designs jointly, without the noise of a training: (count, m) float64."""
        drawn = self._laws(designs)[rng.integers(len(self.bootstraps), size=count)]
        if self.residual is not None:
            return drawn + self.residual.sample(designs, count, rng)

        # A design that was not compared with others may be anywhere beside the law.
        columns = {network.key: column for column, network in enumerate(designs.networks)}
        shifts = self.spread * rng.standard_normal((count, len(designs)))
        shared = [columns[network.key] for network in designs.networks]
        shifted: Array = drawn + shifts[:, shared]
        return shifted

    def _laws(self, designs: ScaledRuns) -> Array:
        logs = [law.log_loss(designs.params, designs.tokens) for law in self.bootstraps]
        return np.array(logs)


def fit(
    space: Space,
    runs: ScaledRuns,
    form: LawForm,
    rng: np.random.Generator,
    *,
    calibrate: bool = True,
) -> ScalingModel:
    """Return the model of runs.

    Args:
        space: Space of the designs.
        runs: At least one run.
        form: The scaling law.
        rng: Source of the bootstrap samples.
        calibrate: Whether to stretch the intervals by a forecast within the runs.

    Raises:
        UsageError: A number of a run is not greater than 0.
    """
    law = laws.fit_with_prior(form, runs.params, runs.tokens, runs.losses)
    bootstraps = []
    for _ in range(BOOTSTRAPS):
        sampled = runs.take(rng.integers(len(runs), size=len(runs)))
        bootstraps.append(
            laws.fit_with_prior(
                form, sampled.params, sampled.tokens, sampled.losses, start=law.theta
            )
        )

    errors = np.log(runs.losses) - law.log_loss(runs.params, runs.tokens)
    residual = residuals.learn(space, runs, errors)
    spread = float(errors.std()) if residual is None else residual.noise
    model = ScalingModel(law, tuple(bootstraps), residual, spread)
    if not calibrate:
        return model

    return replace(model, stretch=_stretch(space, runs, form, rng))


def _stretch(
    space: Space, runs: ScaledRuns, form: LawForm, rng: np.random.Generator
) -> tuple[float, float]:
    """Return by which factors the larger half of the runs leaves the intervals of the smaller."""
    if len(runs) < LEAST_CALIBRATED:
        return UNCALIBRATED, UNCALIBRATED

    order = np.argsort(runs.params * runs.tokens, kind="stable")
    half = len(order) // 2
    larger = runs.take(order[half:])
    model = fit(space, runs.take(order[:half]), form, rng, calibrate=False)
    centre, std = model.moments(larger)
    errors = (np.log(larger.losses) - centre) / std
    share = 0.5 + 0.5 * COVERAGE
    usual = float(norm.ppf(share))
    low = -float(np.quantile(errors, 1.0 - share)) / usual
    high = float(np.quantile(errors, share)) / usual
    return max(1.0, low), max(1.0, high)
