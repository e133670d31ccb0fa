"""Slice sampling of hyperparameters from their posterior (Neal, 2003).

    symbol   meaning                                     shape
    x        the parameters, here always logarithms      (d,)
    f        unnormalised log density                    x -> scalar
    lo, hi   bounds outside which f is zero              (d,)
    w        first width of the bracket                  (d,)

One update draws a level below the density at x, brackets the slice above that level along a line
through x by stepping out (Neal's figure 3), and draws from the bracket, shrinking it at every miss
(figure 5). The bracket is cut off at the bounds, which leaves the density within them unchanged.
There is no step size to tune and no gradient to compute, which suits a likelihood that is flat in
some parameters and steep in others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from archive.agents.surrogates.base import Array
from archive.agents.surrogates.gp.likelihood import Bounds, Inference, Likelihood
from archive.errors import NumericalError
from archive.values import require_at_least

LogDensity = Callable[[Array], float]
Method = Literal["coordinates", "directions"]


@dataclass(frozen=True)
class SamplingSchedule:
    """Length of a chain.

    Attributes:
        samples: Samples to return.
        burn_in: Sweeps to discard first.
        thin: Sweeps between returned samples.
    """

    samples: int = 10
    burn_in: int = 20
    thin: int = 3

    def __post_init__(self) -> None:
        """Check the counts."""
        if self.samples < 1 or self.burn_in < 0 or self.thin < 1:
            raise NumericalError(
                f"a schedule needs samples >= 1, burn_in >= 0, thin >= 1, got {self}"
            )


@dataclass(frozen=True)
class SliceSampling(Inference):
    """Samples of the hyperparameters' posterior under a log-uniform prior between bounds.

    The prior is uniform over orders of magnitude. NASBOT (section 4.1) has a "(uniform) prior"
    without naming the parametrisation; uniform in the parameters themselves, nearly all its mass
    would lie near the upper bounds.

    For short histories, where many hyperparameters fit and the acquisition should reflect that
    uncertainty. A fit takes thousands of likelihoods; `MarginalLikelihood` is ten times faster and
    returns one set.

    Attributes:
        schedule: Length of the chain.
        observations: Most architectures to use, drawn at random where there are more: the posterior
            of a dozen parameters hardly narrows beyond this, and a likelihood costs n^3.
    """

    schedule: SamplingSchedule = field(default_factory=SamplingSchedule)
    observations: int = 120

    def __post_init__(self) -> None:
        """Check the number."""
        require_at_least(1, observations=self.observations)

    def thetas(self, likelihood: Likelihood, rng: np.random.Generator) -> Array:
        """See `Inference.thetas`."""
        sampled = likelihood.sample(self.observations, rng)
        return sampled.full(slice_sample(sampled.value, sampled.bounds, self.schedule, rng))


def slice_sample(
    log_density: LogDensity,
    bounds: Bounds,
    schedule: SamplingSchedule,
    rng: np.random.Generator,
    start: Array | None = None,
    method: Method = "coordinates",
) -> Array:
    """Sample a density within bounds.

    Args:
        log_density: f; -inf is allowed anywhere but at the start.
        bounds: Range outside which the density is zero.
        schedule: Length of the chain; a sweep is d updates.
        rng: Source of randomness.
        start: (d,) float64; by default the best of the centre and 20 draws from the prior.
        method: `coordinates` updates every parameter once a sweep, in random order; `directions`
            moves along d random directions a sweep, which mixes better when parameters are strongly
            correlated.

    Returns:
        (samples, d) float64.

    Raises:
        NumericalError: The density is zero, or not a number, at the start.
    """
    x = _start(log_density, bounds, rng) if start is None else np.array(start, dtype=np.float64)
    height = log_density(x)
    if not np.isfinite(height):
        raise NumericalError(f"slice sampling must start at a finite log density, got {height}")

    samples = np.empty((schedule.samples, len(x)))
    for sweep in range(1, schedule.burn_in + schedule.samples * schedule.thin + 1):
        for direction in _directions(bounds, method, rng):
            x, height = _update(log_density, bounds, x, height, direction, rng)

        kept, rest = divmod(sweep - schedule.burn_in, schedule.thin)
        if kept > 0 and rest == 0:
            samples[kept - 1] = x

    return samples


def _start(log_density: LogDensity, bounds: Bounds, rng: np.random.Generator) -> Array:
    # A few draws cost less than the longer burn-in after one bad draw.
    guesses = [bounds.centre, *(bounds.draw(rng) for _ in range(20))]
    return max(guesses, key=log_density)


def _directions(bounds: Bounds, method: Method, rng: np.random.Generator) -> Array:
    """Return the d lines of one sweep, scaled so that t = 1 is the first width of the bracket.

    Shape: (d, d) float64.
    """
    d = len(bounds.lower)
    # A quarter of the range: posteriors of a dozen observations fill a good part of the prior, and
    # stepping out from a width that is too small costs more evaluations than shrinking from one
    # that is too large.
    width = 0.25 * bounds.widths
    if method == "coordinates":
        lines: Array = np.diag(width)[rng.permutation(d)]
        return lines

    normals = rng.standard_normal((d, d))
    lines = width * normals / np.linalg.norm(normals, axis=1, keepdims=True)
    return lines


def _update(
    log_density: LogDensity,
    bounds: Bounds,
    x: Array,
    height: float,
    direction: Array,
    rng: np.random.Generator,
) -> tuple[Array, float]:
    level = height - rng.exponential()
    low, high = bounds.reach(x, direction)
    left, right = _bracket(lambda t: log_density(x + t * direction), level, (low, high), rng)
    while True:
        t = rng.uniform(left, right)
        # Rounding may carry the point past a bound by one unit in the last place.
        candidate = np.clip(x + t * direction, bounds.lower, bounds.upper)
        value = log_density(candidate)
        if value > level:
            return candidate, value

        if t < 0.0:
            left = t
        else:
            right = t

        if right - left < 1e-12:
            # Only a noisy or NaN density has no point near x above a level that is below f(x).
            return x, height


def _bracket(
    along: Callable[[float], float],
    level: float,
    reach: tuple[float, float],
    rng: np.random.Generator,
) -> tuple[float, float]:
    left = -rng.uniform()
    right = left + 1.0
    while left > reach[0] and along(left) > level:
        left -= 1.0

    while right < reach[1] and along(right) > level:
        right += 1.0

    return max(left, reach[0]), min(right, reach[1])
