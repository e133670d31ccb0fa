"""Use of zero-cost proxies by a stacked ensemble: further members, and an initial design.

| member               | distances                                                      |
|----------------------|----------------------------------------------------------------|
| scores               | squared differences of the normal scores of each proxy         |
| scores and structure | the same, with Weisfeiler-Lehman squared and topology features |

The covariance of both is exp(-sum_i beta_i d_i).

Each proxy has a length scale, so that the evaluations of the study determine which proxies matter.
Stacking weights the members by the density of every evaluation given all others
(`archive.agents.surrogates.stacking`): proxies without information about a task lose their weight
within some evaluations.

The initial design is spread, by variance reduction (`archive.agents.bayesopt.variance_reduction`)
on the distances of proxies. In spaces of cells, it is spread over the networks of the largest mean
rank by some proxies (`CONSENSUS`). In other spaces it is spread over all networks with scores,
because the sign of a proxy's correlation is not known in
advance: for 60 networks of `cnn`, trained on `digits/small`, the rank correlation with the accuracy
was -0.94 by `snip` and -0.68 by the mean rank. Cells share their skeleton; other networks differ in
depth and width. Proxies leave out no network after the initial design.

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

from archive.agents.acquisition.candidate_generators import CandidateGenerator
from archive.agents.base import History, Suggestion
from archive.agents.bayesopt.gp_presets import PRESETS
from archive.agents.bayesopt.model_based import SourceUse
from archive.agents.bayesopt.portfolio_members import MemberModel, PowerExponentialARD
from archive.agents.bayesopt.variance_reduction import alc_design
from archive.agents.proxies.study_scores import LEAST
from archive.agents.surrogates.base import Array, Surrogate
from archive.agents.surrogates.distance_cache import CachedDistances
from archive.agents.surrogates.gp.distance import DistanceGP
from archive.agents.surrogates.gp.nugget import DimensionScaledPrior
from archive.agents.surrogates.stacking import StackedGP
from archive.architecture.graph import Architecture
from archive.architecture.networks import functional_forms, take
from archive.kernels.base import Components
from archive.kernels.covariance.base import Covariance, exponential
from archive.spaces import registry
from archive.spaces.base import Space
from archive.spaces.cell import CellSpace
from archive.store.proxies import ProxyTable

CONSENSUS = frozenset(["naswot", "nwot", "synflow", "jacov", "flops"])
"""The initial design is chosen by the mean rank of these proxies, as far as the task has them; without
any of them, of all proxies. They were chosen on NAS-Bench-201: of its 8,765 cells, the 80 best by these four have a
median rank of 2,160 by accuracy, and the best cell is among them; by all thirteen published proxies
the median rank is 3,270."""

MOST_SPREAD = 500
"""Most candidates of a design that is spread over all networks with scores; of more, a random
sample."""

SHARE = 0.01
"""Share of the networks with scores that the design is spread over: the largest mean ranks, at
least `LEAST` networks."""

NOISE = 0.01
MOST = 1000
"""Most networks of S."""
KEPT = 100_000
"""Most cached features of networks without scores."""


@final
class ProxyKnowledge:
    """Knowledge of proxies and of source studies; a `SourceUse`. Threads may share one.

    Args:
        space: The space that the agent searches.
        transfer: Use of source studies.
        structure: Model of the portfolio's member `structure`.
    """

    def __init__(self, space: Space, transfer: SourceUse, structure: MemberModel) -> None:
        self.space = space
        self._transfer = transfer
        self._structure = structure
        self._cached: tuple[ProxyTable, ProxyFeatures] | None = None
        self._lock = Lock()

    def suggest_first(
        self, history: History, generator: CandidateGenerator, n: int, rng: np.random.Generator
    ) -> tuple[list[Suggestion], int | None]:
        """See `SourceUse.first`: proxies change nothing."""
        return self._transfer.suggest_first(history, generator, n, rng)

    def with_sources(self, cold: Surrogate, history: History) -> Surrogate:
        """Return the stacked surrogate with members of known proxies and of source studies."""
        features = self.features(history)
        if features is not None and isinstance(cold, StackedGP):
            scores = _member(ProxyDistances(features), cold)
            structured = _member(ProxyDistances(features, self._structure.pairwise), cold)
            cold = StackedGP([*cold.members, scores, structured], cold.prior)

        return self._transfer.with_sources(cold, history)

    def features(self, history: History) -> ProxyFeatures | None:
        """Return the features of a history's proxies, None for too few or constant ones."""
        table = history.proxies
        if table is None or len(table) < LEAST:
            return None

        with self._lock:
            if self._cached is None or self._cached[0] is not table:
                self._cached = table, ProxyFeatures(table, self._structure)

            features = self._cached[1]

        return features if features.count else None

    def design(
        self, features: ProxyFeatures, history: History, count: int, rng: np.random.Generator
    ) -> list[Suggestion]:
        """Return at most `count` networks of an initial design, none of them known already."""
        reference = []
        for row in _candidates(features, count, rng):
            network = features.networks[row]
            if network.functional_key not in history.known and self.space.contains(network):
                reference.append(network)

        if not reference:
            return []

        evaluated = functional_forms(history.observed_or_pending)
        functional = functional_forms(reference)
        design = alc_design(
            functional, evaluated, count, TotalProxyDistance(features), exponential(1)
        )
        return [Suggestion(reference[row]) for row in design]


def _candidates(features: ProxyFeatures, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the rows of the networks that a design of `count` is spread over, in random order."""
    if not _of_cells(features.networks[0].space):
        return rng.permutation(len(features.networks))[:MOST_SPREAD]

    order = np.argsort(-_consensus(features), kind="stable")
    # A random half of them, so that studies of different seeds begin with different networks.
    best = rng.permutation(order[: max(int(SHARE * len(order)), LEAST)])
    return best[: max(len(best) // 2, count)]


def _of_cells(space: str) -> bool:
    kind = registry.load(space)
    return isinstance(kind, type) and issubclass(kind, CellSpace)


def _consensus(features: ProxyFeatures) -> Array:
    """Return the mean rank of each network: (n,) float64."""
    columns = [column for column, name in enumerate(features.names) if name in CONSENSUS]
    ranks = features.ranks[:, columns] if columns else features.ranks
    mean: Array = ranks.mean(axis=1)
    return mean


def _member(pairwise: ProxyDistances, beside: StackedGP) -> DistanceGP:
    """Return a member on these distances, with the inference and the transform of the others."""
    other = beside.members[0]
    preset = PRESETS["default"]
    powers = [1.0] * pairwise.features.count
    if pairwise.structure is not None:
        for kind in pairwise.structure.kinds:
            powers += [kind.power] * len(kind.components)

    covariance: Covariance = DimensionScaledPrior(PowerExponentialARD(powers), len(powers))
    return DistanceGP(
        pairwise, covariance, preset.learning, noise=preset.noise, transform=other.transform
    )


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
        self.names = tuple(take(table.names, varied))
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
            normal[unknown] = self._predict(take(networks, unknown))

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
    """Squared differences of the normal scores of each proxy, then distances of the structure.

    Args:
        features: The normal scores.
        structure: Further distances; None for none.
    """

    def __init__(self, features: ProxyFeatures, structure: CachedDistances | None = None) -> None:
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
