"""Distances of networks by their proxies, for Gaussian processes
(`archive.agents.surrogates.gp.fitted.Pairwise`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np

from archive.agents.proxies.features import ProxyFeatures
from archive.agents.surrogates.base import Array
from archive.agents.surrogates.distance_cache import CachedDistances
from archive.architecture.graph import Architecture
from archive.kernels.base import Components


@final
class ProxyDistances:
    """Squared differences of the normal scores of each proxy, followed by distances of the
    networks' structure.

    Args:
        features: The normal scores.
        structure: Further distances; None for none.
    """

    def __init__(self, features: ProxyFeatures, structure: CachedDistances | None = None) -> None:
        """Keep the arguments."""
        self.features = features
        self.structure = structure

    @property
    def components(self) -> int:
        """Number of components."""
        return self.features.count + (0 if self.structure is None else self.structure.components)

    def distances(
        self, first: Sequence[Architecture], second: Sequence[Architecture] | None = None
    ) -> Components:
        """Return the distances of all pairs, all of them unnormalised."""
        stack = _squares(self.features, first, second)
        if self.structure is not None:
            stack = np.concatenate([stack, self.structure.distances(first, second).stack])

        return Components.of_stack(stack, len(stack))


@final
class TotalProxyDistance:
    """Sum of the squared differences over all proxies, as one component.

    Args:
        features: The normal scores.
    """

    def __init__(self, features: ProxyFeatures) -> None:
        """Keep the argument."""
        self.features = features

    def distances(
        self, first: Sequence[Architecture], second: Sequence[Architecture] | None = None
    ) -> Components:
        """Return the distances of all pairs."""
        return Components.of_stack(
            _squares(self.features, first, second).sum(axis=0, keepdims=True), 1
        )


def _squares(
    features: ProxyFeatures, first: Sequence[Architecture], second: Sequence[Architecture] | None
) -> Array:
    """Return (p, m, n) float64."""
    rows = features.normal(first).T
    columns = rows if second is None else features.normal(second).T
    squares: Array = np.square(rows[:, :, None] - columns[:, None, :])
    return squares
