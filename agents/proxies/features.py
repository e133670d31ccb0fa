"""Features of networks from their zero-cost proxies, and distances by these features.

| symbol | meaning                                                                         | shape   |
|--------|---------------------------------------------------------------------------------|---------|
| n, p   | networks with scores; proxies that are not constant                             | scalars |
| r      | rank of each network's score among the n, less a half, divided by their number: | (n, p)  |
|        | in (0, 1); 0.5 where a proxy is not defined                                     |         |
| z      | normal scores, Phi^-1(r)                                                        | (n, p)  |
| K, e   | covariance of networks by their structure, of variance 1; `NOISE`               |         |

A network x without scores gets its normal scores from networks S that have scores:

    z(x) = K(x, S) (K(S, S) + e)^-1 z(S)

Proxies differ in unit and range by orders of magnitude, hence the ranks. Scores are smooth
functions of the structure, so that the scores of some hundred networks predict the scores of all
others. The distances are for Gaussian processes (`archive.agents.surrogates.gp.fitted.Pairwise`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property
from threading import Lock
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve
from scipy.special import ndtri

from archive.agents.bayesopt.portfolio_members import MemberModel
from archive.agents.surrogates.base import Array
from archive.agents.surrogates.distance_cache import CachedDistances
from archive.architecture.graph import Architecture
from archive.kernels.base import Components
from archive.store.proxies import ProxyTable

NOISE = 0.01
MOST = 1000
"""Most networks of S."""
KEPT = 100_000
"""Most cached features of networks without scores."""


@final
class ProxyFeatures:
    """Normal scores of any networks of a space. Threads may share an object.

    Args:
        table: Scores of at least two networks.
        structure: Distances of networks, and their covariance, with its parameters at the centre
            of their bounds.

    Attributes:
        networks: The n networks.
        names: Names of the p proxies.
        ranks: r.
    """

    def __init__(self, table: ProxyTable, structure: MemberModel) -> None:
        """Compute r and z."""
        self.networks = table.networks
        self._row = table.rows
        self._structure = structure
        # loads a third of a second of modules, which few searches need
        from scipy.stats import rankdata

        ranks: Array = (rankdata(table.scores, axis=0, nan_policy="omit") - 0.5) / np.isfinite(
            table.scores
        ).sum(axis=0)
        ranks = np.where(np.isnan(ranks), 0.5, ranks)
        varied = np.flatnonzero(np.ptp(ranks, axis=0) > 0).tolist()
        self.names = tuple(table.names[column] for column in varied)
        self.ranks = ranks[:, varied]
        self._normal: Array = ndtri(self.ranks)
        self._predicted: OrderedDict[str, Array] = OrderedDict()
        self._lock = Lock()

    @property
    def count(self) -> int:
        """Number of proxies, p."""
        return int(self.ranks.shape[1])

    def normal(self, networks: Sequence[Architecture]) -> Array:
        """Return z of m networks without dead layers: (m, p) float64."""
        keys = [network.functional_key for network in networks]
        rows = np.array([self._row.get(key, -1) for key in keys], np.int64)
        normal = self._normal[rows]
        unknown = np.flatnonzero(rows < 0).tolist()
        if unknown:
            normal[unknown] = self._predict([networks[row] for row in unknown])

        return normal

    def _predict(self, networks: Sequence[Architecture]) -> Array:
        with self._lock:
            new: dict[str, Architecture] = {}
            for network in networks:
                if network.functional_key not in self._predicted:
                    new[network.functional_key] = network

            if new:
                rows, theta, weights = self._regression
                stack = self._structure.pairwise.distances(rows, list(new.values())).stack
                predicted = self._structure.covariance.value(stack, theta).T @ weights
                self._predicted.update(zip(new, predicted, strict=True))

            values = np.stack([self._predicted[network.functional_key] for network in networks])
            while len(self._predicted) > KEPT:
                self._predicted.popitem(last=False)

            return values

    @cached_property
    def _regression(self) -> tuple[list[Architecture], Array, Array]:
        """S, the parameters of K, and (K + e)^-1 z(S)."""
        # A fixed seed: one table gives the same features to every agent.
        order = np.random.default_rng(0).permutation(len(self.networks))
        sample: NDArray[np.int64] = np.sort(order[:MOST])
        rows = [self.networks[row].functional for row in sample]
        stack = self._structure.pairwise.distances(rows).stack
        theta = self._structure.covariance.bounds(stack).mean(axis=1)
        gram = self._structure.covariance.value(stack, theta)
        ridge = NOISE * self._structure.covariance.variance(theta)
        weights: Array = solve(
            gram + ridge * np.eye(len(rows)), self._normal[sample], assume_a="sym"
        )
        return rows, theta, weights


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
