"""Nugget: a deviation of each network that its neighbours do not share, and its replicates do.

| symbol | meaning                                                                   | shape  |
|--------|---------------------------------------------------------------------------|--------|
| k      | covariance of the distances                                               | (m, n) |
| I      | 1 where both networks are the same, 0 elsewhere                           | (m, n) |
| delta2 | variance of the deviation, as a fraction of the scores' variance          | scalar |

    K = k + delta2 I

Noise differs from evaluation to evaluation of a network, its deviation stays. Without a nugget, the
noise variance stands for both: the mean of many replicates then has too little weight where networks
differ from their neighbours, and single scores have too much weight where they do not.

Single evaluations cannot tell noise from deviations: only its prior would decide how large a nugget
is. A nugget is therefore for histories with replicates (`archive.agents.observations.has_replicates`).
With a nugget from the start, up to seven of twenty searches took all noise for deviations, and
evaluated no network twice in a hundred evaluations.

`DimensionScaledPrior` scales the prior of length scales for distances of several components.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import final

import numpy as np

from archive.agents.surrogates.base import Array
from archive.agents.surrogates.gp.fitted import Pairwise
from archive.architecture.graph import Architecture
from archive.kernels.base import Components
from archive.kernels.covariance.base import BoundCovariance, Covariance

BOUNDS = (1e-3, 1.0)
"""Bounds of delta2, the same as of a learned noise variance."""


class DistancesWithIdentity:
    """Distances with a last component: 0 between a network and itself, else 1.

    Args:
        pairwise: The other components.
    """

    def __init__(self, pairwise: Pairwise) -> None:
        self.pairwise = pairwise

    def distances(
        self, first: Sequence[Architecture], second: Sequence[Architecture] | None = None
    ) -> Components:
        """See `Distance.distances`."""
        inner = self.pairwise.distances(first, second)
        differ = _differ(first, first if second is None else second)
        return Components(inner.unnormalised, np.concatenate([inner.normalised, differ[None]]))


def _differ(first: Sequence[Architecture], second: Sequence[Architecture]) -> Array:
    columns: dict[str, list[int]] = {}
    for column, network in enumerate(second):
        columns.setdefault(network.key, []).append(column)

    differ = np.ones((len(first), len(second)))
    for row, network in enumerate(first):
        differ[row, columns.get(network.key, [])] = 0.0

    return differ


class NuggetCovariance(Covariance):
    """A covariance of all components but the last, and delta2 where the last one is 0.

    Args:
        inner: The covariance of the others; delta2 follows its parameters.
    """

    def __init__(self, inner: Covariance) -> None:
        self.inner = inner

    @property
    def names(self) -> tuple[str, ...]:
        """See `Covariance.names`."""
        return (*self.inner.names, "delta2")

    def bounds(self, stack: Array) -> Array:
        """See `Covariance.bounds`."""
        return np.vstack([self.inner.bounds(stack[:-1]), np.log([BOUNDS])])

    def variance(self, theta: Array) -> float:
        """See `Covariance.variance`."""
        checked = self._check(theta)
        return self.inner.variance(checked[:-1]) + float(np.exp(checked[-1]))

    def bind(self, stack: Array) -> BoundCovariance:
        """See `Covariance.bind`."""
        return _BoundNugget(
            self, self.inner.bind(stack[:-1]), (stack[-1] == 0.0).astype(np.float64)
        )


class _BoundNugget(BoundCovariance):
    def __init__(self, covariance: NuggetCovariance, inner: BoundCovariance, same: Array) -> None:
        self._covariance = covariance
        self._inner = inner
        self._same = same

    def value(self, theta: Array) -> Array:
        checked = self._covariance._check(theta)
        value: Array = self._inner.value(checked[:-1]) + np.exp(checked[-1]) * self._same
        return value

    def value_and_layers(self, theta: Array) -> tuple[Array, Iterator[Array]]:
        checked = self._covariance._check(theta)
        value, layers = self._inner.value_and_layers(checked[:-1])
        nugget = np.exp(checked[-1]) * self._same
        return value + nugget, _append(layers, nugget)


def _append(layers: Iterator[Array], last: Array) -> Iterator[Array]:
    yield from layers
    yield last


@final
class DimensionScaledPrior(Covariance):
    """A covariance with length scales for any number of components.

    The prior correlation of a typical pair does not depend on that number.

    The bounds of every beta follow the median distance of its component. This wrapper divides them
    by the number of components; without it a dozen components would make any two networks nearly
    uncorrelated (cf. dimension-scaled length-scale priors, Hvarfner et al., 2024).

    Args:
        covariance: The covariance; its bounds are scaled.
        components: Number of components.
    """

    def __init__(self, covariance: Covariance, components: int) -> None:
        self.covariance = covariance
        self.components = components

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the wrapped covariance."""
        return self.covariance.names

    def bounds(self, stack: Array) -> Array:
        """Return the bounds; every beta is divided by the number of components."""
        betas = np.array(["beta" in name for name in self.names])
        moved: Array = self.covariance.bounds(stack) - np.log(self.components) * betas[:, None]
        return moved

    def variance(self, theta: Array) -> float:
        """Return the variance of the wrapped covariance."""
        return self.covariance.variance(theta)

    def bind(self, stack: Array) -> BoundCovariance:
        """Return the bound form of the wrapped covariance."""
        return self.covariance.bind(stack)
