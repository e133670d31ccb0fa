"""exp(-sum_i beta_i d_i^p) whose power p is learnt with the other parameters.

| symbol  | meaning                                                 | shape      |
|---------|---------------------------------------------------------|------------|
| d       | components of a distance                                | (c, m, n)  |
| theta   | log(alpha, beta_1, …, beta_c, p)                        | (c + 2,)   |
| dK/d log p | -K sum_i beta_i d_i^p p log d_i, 0 where d_i = 0     | (m, n)     |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from archive.errors import UsageError
from archive.kernels.covariance.base import ALPHA, BETA, Bound, Covariance, Floats

# Below 1/2 a covariance is flat but for a spike at 0; above 2 it is none for any distance but a constant one.
POWER = (0.5, 2.0)


class PowerExponential(Covariance):
    """alpha * exp(-sum_i beta_i d_i^p) over some of the components, p between 1/2 and 2.

    Takes c powers of the block for each theta, which is slow; use it to find p, then `Exponential`.

    Args:
        components: Positions in the stack; one beta for each.
        label: Added to the names of the parameters, to tell two terms apart.

    Raises:
        UsageError: There is no component, or a negative one.
    """

    def __init__(self, components: Sequence[int], label: str = "") -> None:
        """Check the arguments."""
        self.components, self.label = tuple(components), label
        if not self.components or min(self.components) < 0:
            raise UsageError(f"components must be one or more positions >= 0, got {self.components}")

    @property
    def names(self) -> tuple[str, ...]:
        """Return `alpha`, a `beta` for each component, and `power`."""
        betas = (f"beta{self.label}[{at}]" for at in range(len(self.components)))
        return (f"alpha{self.label}", *betas, f"power{self.label}")

    def bounds(self, stack: Floats) -> Floats:
        """Scale the betas to the median distances, wide enough for every p."""
        betas = []
        for distances in self._chosen(stack):
            median = float(np.median(distances[distances > 0])) if (distances > 0).any() else 1.0
            scales = np.array(POWER) * np.log(median)
            betas.append([np.log(BETA[0]) - scales.max(), np.log(BETA[1]) - scales.min()])
        return np.array([np.log(ALPHA), *betas, np.log(POWER)])

    def variance(self, theta: Floats) -> float:
        """Return alpha."""
        return float(np.exp(self._check(theta)[0]))

    def bind(self, stack: Floats) -> Bound:
        """Choose the components."""
        return _BoundPower(self, self._chosen(stack))

    def _chosen(self, stack: Floats) -> Floats:
        if max(self.components) >= len(stack):
            raise UsageError(f"the covariance needs component {max(self.components)}, got a stack of {len(stack)}")
        return stack[list(self.components)]


class _BoundPower(Bound):
    def __init__(self, covariance: PowerExponential, distances: Floats) -> None:
        self.covariance, self.distances = covariance, distances

    def value(self, theta: Floats) -> Floats:
        log_alpha, *log_betas, log_power = self.covariance._check(theta)
        exponent = np.zeros(self.distances.shape[1:])
        for log_beta, distance in zip(log_betas, self.distances, strict=True):
            exponent += np.exp(log_beta) * distance ** np.exp(log_power)
        value: Floats = np.exp(log_alpha - exponent)
        return value

    def value_and_layers(self, theta: Floats) -> tuple[Floats, Iterator[Floats]]:
        _, *log_betas, log_power = self.covariance._check(theta)
        value, power = self.value(theta), np.exp(log_power)
        pairs = list(zip(np.exp(log_betas), self.distances, strict=True))
        falls = (-beta * distance**power * value for beta, distance in pairs)
        return value, chain([value], falls, self._bend(value, pairs, power))

    def _bend(self, value: Floats, pairs: list[tuple[float, Floats]], power: float) -> Iterator[Floats]:
        slope = np.zeros_like(value)
        for beta, distance in pairs:
            # d^p log d tends to 0 with d.
            positive = np.where(distance > 0, distance, 1.0)
            slope += beta * distance**power * np.log(positive)
        yield -power * slope * value
