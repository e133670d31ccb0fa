"""The model of the first evaluations of a history: trees, or a Gaussian process where it ranks better.

| symbol | meaning                                                                                      | shape  |
|--------|----------------------------------------------------------------------------------------------|--------|
| N      | evaluations of the history                                                                   | scalar |
| n0     | evaluations of the prefix: see `prefix_size`                                                 | scalar |
| n      | distinct networks among them; the score of a network is the mean of its evaluations          | scalar |
| y      | transformed, standardised scores                                                             | (n,)   |
| e      | out-of-fold predictions by trees (`trees`)                                                   | (n,)   |
| rho_t  | Spearman correlation of e and y over a sample of fold 0                                      | scalar |
| rho_g  | the same for a Gaussian process fitted to at most `FIRST` networks of the other folds        | scalar |

A history is a prefix and the evaluations since. Prefixes grow by a tenth, so that a model serves many steps; it is a
function of the prefix alone, and the same in every process. The latest fiftieth of a history is never in the prefix:
evaluations of several trainers arrive out of order.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import final

import numpy as np
from scipy.stats import spearmanr

from archive.agents.surrogates.base import Array, Surrogate
from archive.agents.surrogates.gp.distance import DistanceGP
from archive.agents.surrogates.many.features import Integers, SparseFeatures, forget
from archive.agents.surrogates.many.trees import FOLDS, CrossFittedTrees
from archive.agents.surrogates.outcome_transforms import OutcomeTransform, Scale
from archive.architecture.graph import Architecture

FIRST = 1000
"""Evaluations up to which every surrogate uses all of them as before, and networks of a Gaussian process beyond."""
GROWTH, LATEST = 0.1, 0.02
RELEVANT = 400
"""Networks of the Gaussian process of the errors of the trees."""
HELD_OUT = 500
"""Networks of the comparison of trees and Gaussian process."""
MOST_PREFIXES = 8
"""Prefixes whose models are cached: a history has one for each objective and measured constraint."""


def prefix_size(evaluations: int, first: int = FIRST) -> int:
    """Return n0: the greatest of `first`, `first` times 1.1, and so on, that leaves out the latest evaluations."""
    size = first
    while (grown := size + max(1, int(GROWTH * size))) <= (1.0 - LATEST) * evaluations:
        size = grown
    return size


@final
@dataclass(frozen=True, eq=False)
class Prefix:
    """The model of a prefix. Threads may share one.

    Attributes:
        position: Key of each of the n networks to its row.
        scale: Maps scores to y.
        unit: Standard deviation of y - e.
        trees: The trees.
        features: Features of networks.
        columns: The features that the trees use.
        thetas: (S, p + 1) float64, hyperparameters of the Gaussian process of errors.
        ranks_trees: rho_t.
        ranks_process: rho_g.
    """

    position: dict[str, int]
    scale: Scale
    unit: float
    trees: CrossFittedTrees
    features: SparseFeatures
    columns: Integers
    thetas: Array
    ranks_trees: float
    ranks_process: float
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
        process: Surrogate,
        most: int = FIRST,
    ) -> Prefix:
        """Fit the model to n0 evaluations.

        Args:
            networks: The network of each.
            scores: (n0,) float64.
            transform: Outcome transform of the trees.
            features: Features of networks.
            errors: The Gaussian process of the errors of the trees.
            process: The Gaussian process that trees are compared with.
            most: Networks that it is fitted to.
        """
        distinct, means = merged(networks, scores)
        scale = transform.learn(means)
        values = scale.standardise(means)
        columns = features.varying(distinct)
        trees = CrossFittedTrees.fit(features.matrix(distinct, columns), values)
        residuals = values - trees.out_of_fold
        unit = float(residuals.std()) or 1.0
        near = relevant(means, RELEVANT).tolist()
        model = DistanceGP(errors.pairwise, errors.covariance, errors.inference, noise=errors.noise, transform="none")
        thetas = model.fit([distinct[at] for at in near], residuals[near] / unit, np.random.default_rng(0)).thetas
        position = {one.key: at for at, one in enumerate(distinct)}
        ranks = _compared(distinct, means, trees.out_of_fold, process, most)
        return cls(position, scale, unit, trees, features, columns, thetas, *ranks, {}, Lock())

    def predict(self, networks: Sequence[Architecture]) -> tuple[Array, Array]:
        """Return f and s2 of `trees` for m networks, cached: (m,) float64 each."""
        keys = [one.key for one in networks]
        with self._lock:
            new = {key: one for key, one in zip(keys, networks, strict=True) if key not in self._predicted}
            if new:
                matrix = self.features.matrix(list(new.values()), self.columns)
                means, variances = self.trees.predict(matrix)
                self._predicted.update(zip(new, zip(means.tolist(), variances.tolist(), strict=True), strict=True))
            predicted = np.array([self._predicted[key] for key in keys], np.float64).reshape(-1, 2)
            forget(self._predicted)
        return predicted[:, 0], predicted[:, 1]


@final
class Prefixes:
    """Models of the latest prefixes. Threads may share one."""

    def __init__(self) -> None:
        """Start without models."""
        self._cached: OrderedDict[tuple[int, float, str], tuple[list[str], Array, Prefix]] = OrderedDict()
        self._lock = Lock()

    def of(
        self, networks: Sequence[Architecture], scores: Array, transform: OutcomeTransform, fit: Callable[[], Prefix]
    ) -> Prefix:
        """Return the model of a prefix, fitted by `fit` if it is not cached.

        Args:
            networks: The network of each evaluation.
            scores: (n0,) float64.
            transform: Outcome transform of the model.
            fit: Returns the model.
        """
        keys = [one.key for one in networks]
        identity = len(keys), float(scores.sum()), f"{transform.name} {vars(transform)}"
        with self._lock:
            cached = self._cached.get(identity)
            if cached is None or cached[0] != keys or not np.array_equal(cached[1], scores):
                self._cached[identity] = cached = keys, scores, fit()
            self._cached.move_to_end(identity)
            while len(self._cached) > MOST_PREFIXES:
                self._cached.popitem(last=False)
            return cached[2]


def merged(networks: Sequence[Architecture], scores: Array) -> tuple[tuple[Architecture, ...], Array]:
    """Return the distinct networks in the order of their first evaluation, and the means of their scores."""
    rows: dict[str, int] = {}
    at = np.array([rows.setdefault(one.key, len(rows)) for one in networks], np.int64)
    first = np.unique(at, return_index=True)[1]
    return tuple(networks[row] for row in first.tolist()), np.bincount(at, scores) / np.bincount(at)


def relevant(values: Array, most: int) -> Integers:
    """Return ascending positions of networks for a Gaussian process: half the best, a quarter the latest, others.

    Args:
        values: (n,) float64, in the order of evaluation.
        most: Number of positions, of fewer networks all.
    """
    if len(values) <= most:
        return np.arange(len(values))
    chosen = np.zeros(len(values), np.bool_)
    chosen[np.argsort(-values, kind="stable")[: most // 2]] = True
    chosen[len(values) - most // 4 :] = True
    others = np.flatnonzero(~chosen)
    chosen[others[np.linspace(0, len(others) - 1, most - int(chosen.sum())).astype(np.int64)]] = True
    return np.flatnonzero(chosen)


def _compared(
    networks: Sequence[Architecture], means: Array, out_of_fold: Array, process: Surrogate, most: int
) -> tuple[float, float]:
    """Return rho_t and rho_g."""
    folds = np.arange(len(networks)) % FOLDS
    held_out = np.flatnonzero(folds == 0)
    held_out = held_out[np.linspace(0, len(held_out) - 1, min(HELD_OUT, len(held_out))).astype(np.int64)]
    others = np.flatnonzero(folds)
    others = others[relevant(means[others], most)]
    fitted = process.fit([networks[at] for at in others.tolist()], means[others], np.random.default_rng(0))
    predicted = fitted.posterior([networks[at] for at in held_out.tolist()]).mean
    return _spearman(out_of_fold[held_out], means[held_out]), _spearman(predicted, means[held_out])


def _spearman(first: Array, second: Array) -> float:
    if first.min() == first.max() or second.min() == second.max():
        return 0.0
    return float(spearmanr(first, second).statistic)
