"""Model of the first evaluations of a history: trees, or a process that ranks clearly better.

| symbol | meaning                                                                             | shape  |
|--------|-------------------------------------------------------------------------------------|--------|
| N      | evaluations of the history                                                          | scalar |
| n0     | evaluations of the prefix: see `prefix_size`                                        | scalar |
| n      | distinct networks among them; the score of a network is the mean of its evaluations | scalar |
| y      | transformed, standardised scores                                                    | (n,)   |
| e      | out-of-fold predictions by trees (`trees`)                                          | (n,)   |

The trees are compared with a rival, a Gaussian process of at most `FIRST` networks of the other
folds, by predictions of networks of fold 0 (`trees`). The comparison leaves out the Gaussian
process of the errors, because the models of the other folds were fitted to fold 0. After 1,000
evaluations of NAS-Bench-101 the rival is clearly better; after 2,500 it is not.

A history consists of a prefix and the later evaluations. Prefixes grow by a tenth, so that one
model is used for many steps. The model is a function of the prefix alone, and the same in every
process. The latest fiftieth of a history is never in the prefix, because evaluations of several
trainers arrive out of order.

`RecurringBlocks` caches distances to blocks of networks that every proposal requests again. The
trees of a prefix predict the same values at every step, so that the promising networks of a
block of candidates stay the same until the next prefix. A step replaces only a few of the relevant
networks, from which the distances are.

| symbol | meaning                                              | shape     |
|--------|------------------------------------------------------|-----------|
| A      | relevant networks                                    | scalar    |
| k      | promising networks of a block of candidates          | scalar    |
| rows   | distances of one relevant network from these         | (c, k)    |

A block takes 8 A c k bytes: 2.5 MB with 400 relevant networks, three components and 256 promising
networks.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import is_
from threading import Lock
from typing import final

import numpy as np

from archive.agents.surrogates.base import Array
from archive.agents.surrogates.gp.distance import DistanceGP
from archive.agents.surrogates.gp.fitted import FittedGP, Pairwise
from archive.agents.surrogates.gp.likelihood import FixedHyperparameters
from archive.agents.surrogates.many.features import (
    Integers,
    Merged,
    SparseFeatures,
    forget,
    relevant,
)
from archive.agents.surrogates.many.trees import CrossFittedTrees, RankComparison, split
from archive.agents.surrogates.outcome_transforms import OutcomeTransform, Scale
from archive.agents.surrogates.stacking import FittedStackedGP, StackedGP
from archive.architecture.graph import Architecture
from archive.architecture.networks import network_keys, networks_by_key, take
from archive.kernels.base import Components

SHORTEST = 128
"""Columns of the smallest block that is cached: neighbourhoods in a local search are smaller, and
do not recur."""
MOST_BLOCKS = 32


@final
class RecurringBlocks:
    """A source of distances that caches blocks of many columns by row. The cache changes no result.

    Threads may share one.

    Args:
        pairwise: Computes the distances.
    """

    def __init__(self, pairwise: Pairwise) -> None:
        self._pairwise = pairwise
        self._unnormalised = 0
        self._blocks: OrderedDict[tuple[str, ...], dict[str, Array]] = OrderedDict()
        self._lock = Lock()

    def distances(
        self, first: Sequence[Architecture], second: Sequence[Architecture] | None = None
    ) -> Components:
        """See `Distance.distances`; rows of the previous call for these columns are cached."""
        if second is None or len(second) < SHORTEST or not first:
            return self._pairwise.distances(first, second)

        with self._lock:
            columns = tuple(network_keys(second))
            rows = self._blocks.get(columns, {})
            new = networks_by_key(first, rows)
            if new:
                computed = self._pairwise.distances(list(new.values()), second)
                self._unnormalised = len(computed.unnormalised)
                # Copies: a view of one row would keep the whole block.
                for column, key in enumerate(new):
                    rows[key] = computed.stack[:, column].copy()

            recent = list(map(rows.__getitem__, network_keys(first)))
            self._blocks[columns] = dict(zip(network_keys(first), recent, strict=True))
            self._blocks.move_to_end(columns)
            while len(self._blocks) > MOST_BLOCKS:
                self._blocks.popitem(last=False)

            stack = np.stack(recent, axis=1)

        return Components.of_stack(stack, self._unnormalised)


FIRST = 1000
"""Number of networks up to which the surrogate of few evaluations is used, and to which the rival
is fitted at most."""
GROWTH = 0.1
LATEST = 0.02
RELEVANT = 400
"""Networks of the Gaussian process of the errors of the trees."""
MOST_PREFIXES = 8
"""Prefixes with cached models: a history has one for each objective and measured constraint."""


def prefix_size(evaluations: int, first: int = FIRST) -> int:
    """Return n0: the greatest `first` * 1.1^k that leaves out the latest evaluations."""
    size = first
    while (grown := size + max(1, int(GROWTH * size))) <= (1.0 - LATEST) * evaluations:
        size = grown

    return size


@final
@dataclass(frozen=True, eq=False)
class Prefix:
    """The model of a prefix. Threads may share one.

    Attributes:
        content: The n networks and their scores.
        scale: Maps scores to y.
        unit: Standard deviation of y - e.
        trees: The trees.
        features: Features of networks.
        columns: The features that the trees use.
        thetas: (S, p + 1) float64, hyperparameters of the Gaussian process of errors.
        distances: Distances of that process, cached for the steps that the prefix serves.
        comparison: The trees beside the rival.
        rival: The rival, fitted to relevant networks of all folds; None where it is not clearly
            better.
    """

    content: Merged
    scale: Scale
    unit: float
    trees: CrossFittedTrees
    features: SparseFeatures
    columns: Integers
    thetas: Array
    distances: RecurringBlocks
    comparison: RankComparison
    rival: FittedStackedGP | None
    _predicted: dict[str, tuple[float, float]]
    _lock: Lock

    @classmethod
    def fit(
        cls,
        networks: Sequence[Architecture],
        scores: Array,
        transform: OutcomeTransform,
        features: SparseFeatures,
        errors: DistanceGP,
        rival: StackedGP,
        most: int = FIRST,
    ) -> Prefix:
        """Fit the model to n0 evaluations.

        Args:
            networks: The network of each.
            scores: (n0,) float64.
            transform: Outcome transform of the trees.
            features: Features of networks.
            errors: The Gaussian process of the errors of the trees.
            rival: The model that the trees are compared with.
            most: Most networks that the rival is fitted to.
        """
        content = Merged.of(networks, scores)
        distinct = content.networks
        means = content.means
        scale = transform.learn(means)
        values = scale.standardise(means)
        columns = features.varying(distinct)
        trees = CrossFittedTrees.fit(features.matrix(distinct, columns), values)
        residuals = values - trees.out_of_fold
        unit = float(residuals.std()) or 1.0
        # One row for each evaluation, so that the noise is fitted to the replicates of a network.
        rows = np.array([content.position[network.key] for network in networks], np.int64)
        near = np.flatnonzero(np.isin(rows, relevant(means, RELEVANT)))
        errors_near = (scale.standardise(scores[near]) - trees.out_of_fold[rows[near]]) / unit
        relevant_ones = take(networks, near)
        thetas = process_of_errors(errors, errors.pairwise, None, relevant_ones, errors_near).thetas
        distances = RecurringBlocks(errors.pairwise)
        held_out, others = split(len(distinct))
        targets = take(distinct, held_out)
        evaluated = networks, scores, rows
        predicted = (
            _rival_of(rival, evaluated, others[relevant(means[others], most)])
            .posterior(targets)
            .mean
        )
        comparison = RankComparison.of(trees.out_of_fold[held_out], predicted, means[held_out])
        better = comparison.rival_is_clearly_better
        fitted = _rival_of(rival, evaluated, relevant(means, most)) if better else None
        return cls(
            content,
            scale,
            unit,
            trees,
            features,
            columns,
            thetas,
            distances,
            comparison,
            fitted,
            {},
            Lock(),
        )

    def predict(self, networks: Sequence[Architecture]) -> tuple[Array, Array]:
        """Return f and s2 of `trees` for m networks, cached: (m,) float64 each."""
        keys = network_keys(networks)
        with self._lock:
            new = networks_by_key(networks, self._predicted)
            if new:
                matrix = self.features.matrix(list(new.values()), self.columns)
                means, variances = self.trees.predict(matrix)
                self._predicted.update(
                    zip(new, zip(means.tolist(), variances.tolist(), strict=True), strict=True)
                )

            predicted = np.array([self._predicted[key] for key in keys], np.float64).reshape(-1, 2)
            forget(self._predicted)

        return predicted[:, 0], predicted[:, 1]


@final
class Prefixes:
    """Models of the latest prefixes. Threads may share one."""

    def __init__(self) -> None:
        self._cached: OrderedDict[
            tuple[int, float, str], tuple[Sequence[Architecture], Array, Prefix]
        ] = OrderedDict()
        self._lock = Lock()

    def of(
        self,
        networks: Sequence[Architecture],
        scores: Array,
        transform: OutcomeTransform,
        fit: Callable[[], Prefix],
    ) -> Prefix:
        """Return the model of a prefix, fitted by `fit` if it is not cached.

        Args:
            networks: The network of each evaluation.
            scores: (n0,) float64.
            transform: Outcome transform of the model.
            fit: Returns the model.
        """
        identity = len(networks), float(scores.sum()), f"{transform.name} {vars(transform)}"
        with self._lock:
            cached = self._cached.get(identity)
            if (
                cached is None
                or not _are_equal(cached[0], networks)
                or not np.array_equal(cached[1], scores)
            ):
                self._cached[identity] = cached = networks, scores, fit()

            self._cached.move_to_end(identity)
            while len(self._cached) > MOST_PREFIXES:
                self._cached.popitem(last=False)

            return cached[2]


def _are_equal(first: Sequence[Architecture], second: Sequence[Architecture]) -> bool:
    # Successive histories usually share their networks; the comparison of a hundred thousand keys
    # takes ten times as long as a comparison of references.
    if all(map(is_, first, second)):
        return True

    return network_keys(first) == network_keys(second)


def process_of_errors(
    errors: DistanceGP,
    pairwise: Pairwise,
    thetas: Array | None,
    networks: Sequence[Architecture],
    residuals: Array,
) -> FittedGP:
    """Return the Gaussian process of the errors of trees.

    Args:
        errors: Its covariance, noise, and method of fitting.
        pairwise: Its distances.
        thetas: (S, p + 1) float64, its hyperparameters; None fits them.
        networks: Networks, one for each of n evaluations.
        residuals: (n,) float64, errors in units of their standard deviation.
    """
    inference = errors.inference if thetas is None else FixedHyperparameters(thetas)
    model = DistanceGP(pairwise, errors.covariance, inference, noise=errors.noise, transform="none")
    return model.fit(networks, residuals, np.random.default_rng(0))


def _rival_of(
    rival: StackedGP, evaluated: tuple[Sequence[Architecture], Array, Integers], selected: Integers
) -> FittedStackedGP:
    """Fit the rival to all evaluations of the chosen networks; it merges replicates itself.

    Args:
        rival: The rival.
        evaluated: The network of each evaluation, (n0,) scores, and (n0,) positions among the
            distinct networks.
        selected: Positions of distinct networks.
    """
    networks, scores, rows = evaluated
    near = np.flatnonzero(np.isin(rows, selected))
    return rival.fit(take(networks, near), scores[near], np.random.default_rng(0))
