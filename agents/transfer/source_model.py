"""A Gaussian process fitted to a source task: its posterior is the prior for a target task.

| symbol | meaning                                                              | shape  |
|--------|----------------------------------------------------------------------|--------|
| S      | networks evaluated by the source studies                             | (u,)   |
| f'     | their scores, transformed to log-regret and standardised; of a group | (u,)   |
|        | that is `reversed`, their scores with the signs changed              |        |
| k, L   | covariance of f'; L L^T = k(S, S) + noise                            |        |
| V      | L^-1 k(S, x), for every network x                                    | (u, m) |
| m, C   | posterior: m = V^T L^-1 f', C(x, y) = k(x, y) - V(x)^T V(y)          |        |

The units of source scores are arbitrary; the transform removes them. Where the sources searched
another space than the agent does, networks are compared in a common vocabulary
(`archive.agents.transfer.cell_vocabulary`).

V is cached for all members of a listed space: sources do not change during a search, so that a
proposal computes only k between the few evaluated networks and all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from archive.agents.acquisition.listing import Listing, members_of
from archive.agents.base import History, Observation, SourceStudy
from archive.agents.bayesopt.portfolio_members import MemberModel
from archive.agents.observations import scores_of
from archive.agents.surrogates.base import Array
from archive.agents.surrogates.distance_cache import CachedDistances
from archive.agents.surrogates.gp.coregionalised import SourcePosterior
from archive.agents.surrogates.gp.fitted import FittedGP
from archive.agents.surrogates.stacking import loo_log_densities, stacking_weights
from archive.agents.transfer.cell_vocabulary import translate
from archive.agents.transfer.source_tasks import too_little
from archive.architecture.graph import Architecture
from archive.architecture.networks import functional_forms, network_keys, take
from archive.errors import NumericalError
from archive.spaces.base import Space

MOST = 1000
"""Most evaluations of a group to fit to, half of them the best: more take seconds, and change
little."""

BLOCK = 2048
"""Networks predicted at a time."""


Places = slice | NDArray[np.int64] | Sequence[Architecture]


@dataclass(frozen=True)
class SourceGroup:
    """Source studies of one task, protocol and space, which share their models.

    Attributes:
        sources: The studies.
        reversed: Whether scores are modelled with their signs changed, as for a task of negative
            correlation: the transform has the highest resolution for the best scores.
    """

    sources: tuple[SourceStudy, ...]
    reversed: bool = False

    @property
    def sign(self) -> int:
        """The factor of the scores: 1 or -1."""
        return -1 if self.reversed else 1

    @property
    def space(self) -> str:
        """The name of their space."""
        return self.sources[0].space

    @cached_property
    def contents(self) -> tuple[object, ...]:
        """Studies, evaluations, networks and scores: the identity of the group's data."""
        contents = []
        for source in self.sources:
            for observed in source.observations:
                network = observed.architecture.key
                contents.append((source.study, observed.id, network, observed.score))

        return tuple(contents)

    def sample(self) -> list[Observation]:
        """Return the usable evaluations to fit to; of many, half the best and half at random."""
        observations: list[Observation] = []
        for source in self.sources:
            observations += History(source.observations).usable

        if len(observations) <= MOST:
            return observations

        order = np.argsort(-self.sign * scores_of(observations), kind="stable")
        # A fixed seed: the same sources give the same model for every agent.
        others = np.random.default_rng(0).permutation(order[MOST // 2 :])[: MOST - MOST // 2]
        rows = sorted([*order[: MOST // 2].tolist(), *others.tolist()])
        return take(observations, rows)


def group_sources(sources: Sequence[SourceStudy]) -> list[SourceGroup]:
    """Return the groups, in the order of their first sources."""
    groups: dict[tuple[str, str, str], list[SourceStudy]] = {}
    for source in sources:
        groups.setdefault((source.task, source.protocol, source.space), []).append(source)

    return list(map(SourceGroup, map(tuple, groups.values())))


def learn(group: SourceGroup, space: Space, models: Sequence[MemberModel]) -> list[SourceGP]:
    """Fit each model to a group; returns none for too few networks or equal scores.

    Args:
        group: The sources.
        space: The space that the agent searches.
        models: Models of `archive.agents.bayesopt.portfolio_members` for that space.
    """
    if too_little(*group.sources):
        return []

    common = group.space != space.name
    observations = group.sample()
    networks = [_translate(observed.architecture, common) for observed in observations]
    scores = group.sign * scores_of(observations)
    listed = members_of(space) if all(model.cheap for model in models) else None
    members = None if listed is None else functional_forms(listed)
    if common:
        models = _in_common(models, members)

    fitted = []
    for model in models:
        surrogate = model.surrogate("log-regret")
        try:
            fitted.append(surrogate.fit(networks, scores, np.random.default_rng(0)))
        except NumericalError:
            return []

    weights = stacking_weights(loo_log_densities(fitted, scores))
    processes = []
    for process, weight in zip(fitted, weights, strict=True):
        processes.append(SourceGP(group, process, float(weight), common, members or ()))

    return processes


@final
class SourceGP:
    """A Gaussian process fitted to a group; see `SourceModel`.

    Args:
        group: The sources.
        fitted: The fitted GP.
        weight: Its stacking weight among the group's models, of sum 1.
        common: Whether networks are compared in the common vocabulary of cells.
        everywhere: All networks of the agent's space if it can be listed, else empty.
    """

    def __init__(
        self,
        group: SourceGroup,
        fitted: FittedGP,
        weight: float,
        common: bool,
        everywhere: Sequence[Architecture],
    ) -> None:
        self.group = group
        self.fitted = fitted
        self.weight = weight
        self.common = common
        self._everywhere = everywhere
        self._translated: dict[str, Architecture] = {}
        self._process = fitted.processes[0]
        self._theta = fitted.thetas[0][:-1]

    @property
    def studies(self) -> Sequence[str]:
        """See `SourceModel.studies`."""
        return [source.study for source in self.group.sources]

    @property
    def sign(self) -> int:
        """See `SourceModel.sign`."""
        return self.group.sign

    def means(self, networks: Sequence[Architecture]) -> Array:
        """See `SourceModel.means`."""
        return self._means(self._places(networks))

    def posterior(
        self, rows: Sequence[Architecture], networks: Sequence[Architecture]
    ) -> SourcePosterior:
        """See `SourceModel.posterior`."""
        stack = self.fitted.pairwise.distances(
            self._comparable(rows), self._comparable(networks)
        ).stack
        prior: Array = self.fitted.covariance.bind(stack).value(self._theta)
        half = self._half(self._places(rows))
        places = self._places(networks)
        explained = half.T @ self._half(places)
        if rows is networks:
            # A product of single precision is not symmetric on every processor.
            explained = 0.5 * (explained + explained.T)

        covariances = prior - explained
        variance = self.fitted.covariance.variance(self._theta)
        return SourcePosterior(
            self._means(places),
            prior,
            covariances,
            variance,
            np.maximum(variance - self._explained_variance(places), 0.0),
        )

    def _places(self, networks: Sequence[Architecture]) -> Places:
        """Return the positions of networks in the cache, or the networks if one is missing."""
        cached = self._position
        positions = np.array([cached.get(key, -1) for key in network_keys(networks)], np.int64)
        if (positions < 0).any() or not len(positions):
            return networks

        # A slice is copied several times as fast as an index array.
        consecutive = len(positions) > 1 and bool((np.diff(positions) == 1).all())
        return slice(int(positions[0]), int(positions[-1]) + 1) if consecutive else positions

    def _means(self, places: Places) -> Array:
        if isinstance(places, slice | np.ndarray):
            return self._all_means[places]

        means: Array = self._half(places).T @ self._half_values
        return means

    def _explained_variance(self, places: Places) -> Array:
        """Return the variance that the evaluations explain, the column sums of V^2: (m,)."""
        if isinstance(places, slice | np.ndarray):
            return self._all_explained[places]

        explained: Array = np.square(self._half(places)).sum(axis=0)
        return explained

    def _half(self, places: Places) -> NDArray[np.float32] | Array:
        """Return V, from the cache where possible: (u, m)."""
        if isinstance(places, slice | np.ndarray):
            return self._all[:, places]

        return self._compute_half(places)

    @cached_property
    def _position(self) -> dict[str, int]:
        keys = network_keys(self._everywhere)
        return dict(zip(keys, range(len(keys)), strict=True))

    @cached_property
    def _half_values(self) -> Array:
        """L^-1 f'."""
        return self._process.factor.T @ self._process.weights

    @cached_property
    def _all(self) -> NDArray[np.float32]:
        """V of all networks of the space."""
        blocks = []
        for begin in range(0, len(self._everywhere), BLOCK):
            block = self._compute_half(self._everywhere[begin : begin + BLOCK])
            blocks.append(block.astype(np.float32))

        return np.concatenate(blocks, axis=1)

    @cached_property
    def _all_means(self) -> Array:
        means: Array = self._all.T.astype(np.float64) @ self._half_values
        return means

    @cached_property
    def _all_explained(self) -> Array:
        explained: Array = np.square(self._all, dtype=np.float64).sum(axis=0)
        return explained

    def _compute_half(self, networks: Sequence[Architecture]) -> Array:
        stack = self.fitted.pairwise.distances(
            self.fitted.architectures, self._comparable(networks)
        ).stack
        return self._process.half(self.fitted.covariance.bind(stack).value(self._theta))

    def _comparable(self, networks: Sequence[Architecture]) -> Sequence[Architecture]:
        if not self.common:
            return networks

        for network in networks:
            if network.key not in self._translated:
                self._translated[network.key] = _translate(network, True)

        return [self._translated[network.key] for network in networks]


def _in_common(
    models: Sequence[MemberModel], members: Sequence[Architecture] | None
) -> list[MemberModel]:
    """Return the models with the members of a space listed in the common vocabulary."""
    listing = None
    if members is not None:
        listing = Listing([_translate(member, True) for member in members])

    translated = []
    for model in models:
        distances = CachedDistances(model.pairwise.kinds, listing)
        translated.append(replace(model, pairwise=distances))

    return translated


def _translate(network: Architecture, common: bool) -> Architecture:
    return (translate(network) if common else network).functional
