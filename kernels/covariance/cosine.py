"""The covariance of a linear model on unit vectors, from their Euclidean distance.

| symbol  | meaning                                         | shape     |
|---------|-------------------------------------------------|-----------|
| d       | Euclidean distance of two unit vectors u and v  | (m, n)    |
| theta   | log(alpha)                                      | (1,)      |

u.v = 1 - |u - v|^2 / 2.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from archive.errors import UsageError
from archive.kernels.covariance.base import ALPHA, Bound, Covariance, Floats


class Cosine(Covariance):
    """alpha * (1 - d^2 / 2) of one component: alpha times the cosine, where d is the distance of unit vectors.

    Positive semi-definite for such a d (Weisfeiler-Lehman's normalised features), for no other. A linear model: scores
    are sums of what the features contribute, nothing is local. Add an `Exponential` where that is too stiff.

    Args:
        component: Position in the stack.
        label: Added to the name of the parameter, to tell two terms apart.

    Raises:
        UsageError: The component is negative.
    """

    def __init__(self, component: int = 0, label: str = "") -> None:
        """Check the argument."""
        if component < 0:
            raise UsageError(f"component must be >= 0, got {component}")
        self.component, self.label = component, label

    @property
    def names(self) -> tuple[str, ...]:
        """Return `alpha`."""
        return (f"alpha{self.label}",)

    def bounds(self, stack: Floats) -> Floats:
        """Cosines have no scale."""
        return np.log([ALPHA])

    def variance(self, theta: Floats) -> float:
        """Return alpha."""
        return float(np.exp(self._check(theta)[0]))

    def bind(self, stack: Floats) -> Bound:
        """Take the cosines."""
        if self.component >= len(stack):
            raise UsageError(f"the covariance needs component {self.component}, got a stack of {len(stack)}")
        return _BoundCosine(self, 1.0 - 0.5 * stack[self.component] ** 2)


class _BoundCosine(Bound):
    def __init__(self, covariance: Cosine, cosines: Floats) -> None:
        self.covariance, self.cosines = covariance, cosines

    def value(self, theta: Floats) -> Floats:
        return self.covariance.variance(theta) * self.cosines

    def value_and_layers(self, theta: Floats) -> tuple[Floats, Iterator[Floats]]:
        value = self.value(theta)
        return value, iter([value])
