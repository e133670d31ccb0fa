r"""A Gaussian process of results over networks and recipes, judged on families that it left out.

| symbol  | meaning                                                                       | shape   |
|---------|-------------------------------------------------------------------------------|---------|
| g       | increasing transform of the values, `TRANSFORMS`                              |         |
| u       | g(value), standardised                                                        | (n,)    |
| d_k     | mean squared difference of the standardised features of group k               | (n, n)  |
| d       | the same over all features                                                    | (n, n)  |
| W, H    | words of the recipes, 0 or 1; linear features with a constant                 | (n, .)  |
| m       | exp(-sqrt(x)), the Matern covariance of smoothness 1/2: latencies and          |         |
|         | accuracies jump between designs                                               |         |
| K       | graph (mean_k m(d_k / l^2) + m(d / l^2)) / 2 + words W W^T + protocol [equal]  | (n, n)  |
|         | + network [equal] + 100 H H^T                                                 |         |
| A       | K + noise I                                                                   | (n, n)  |

Leaving out a family with the rows i has a closed form (Rasmussen and Williams, section 5.4.2, for
blocks): with B = (A^-1)_ii, the mean is u_i - B^-1 (A^-1 u)_i and the covariance B^-1. The
hyperparameters maximise the density of families left out: the likelihood would reward a model that
interpolates within families, which have many results each. The transform is chosen likewise.

The Gaussian interval is corrected by the families' own residuals: quantiles of (u_i - mean) / std
over all rows take the place of the normal quantiles (conformal prediction with normalised scores).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit, logit

from archive.agents.surrogates.threads import one_thread
from archive.errors import NumericalError

Array = NDArray[np.float64]

LINEAR_VARIANCE = 100.0
COVERAGE = 0.9
"""Share of the cases that an interval holds in."""

DEFAULTS: Mapping[str, float] = {
    "graph": 0.4,
    "length": 1.0,
    "words": 0.04,
    "protocol": 0.03,
    "network": 0.01,
    "noise": 0.01,
}
"""Hyperparameters in units of the variance of u, before they are fitted."""

STEPS = (4.0, 2.0)
"""Factors by which the search changes one hyperparameter at a time."""

MOST_TUNED = 600
"""Rows to fit hyperparameters to: whole families at random."""


@dataclass(frozen=True)
class ValueTransform:
    """An increasing transform of values.

    Attributes:
        name: Its name.
        apply: Values to g.
        restore: g to values.
        slope: Logarithm of the derivative of g at values.
        least: Values are greater than this.
        most: Values are less than this.
    """

    name: str
    apply: Callable[[Array], Array]
    restore: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    least: float = -np.inf
    most: float = np.inf


def _bounded(most: float) -> ValueTransform:
    return ValueTransform(
        name=f"logit of {most:g}",
        apply=lambda values: np.asarray(logit(values / most), np.float64),
        restore=lambda inner: np.asarray(most * expit(inner), np.float64),
        slope=lambda values: np.log(most / (values * (most - values))),
        least=0.0,
        most=most,
    )


TRANSFORMS = (
    ValueTransform("identity", lambda values: values, lambda inner: inner, np.zeros_like),
    ValueTransform("logarithm", np.log, np.exp, lambda values: -np.log(values), least=0.0),
    _bounded(1.0),
    _bounded(100.0),
)
BY_NAME = {transform.name: transform for transform in TRANSFORMS}


@dataclass(frozen=True, eq=False)
class ResultInputs:
    """Networks and recipes of n rows.

    Attributes:
        groups: Features of each group, standardised: (n, d) each.
        linear: (n, q) features with a linear effect, standardised.
        words: (n, w) 0 or 1.
        stems: (n,) protocols.
        networks: (n,) keys.
    """

    groups: tuple[Array, ...]
    linear: Array
    words: Array
    stems: NDArray[np.str_]
    networks: NDArray[np.str_]

    def take(self, rows: NDArray[np.int64] | slice) -> ResultInputs:
        """Return some of the rows."""
        groups = tuple(group[rows] for group in self.groups)
        linear = self.linear[rows]
        return ResultInputs(groups, linear, self.words[rows], self.stems[rows], self.networks[rows])


@final
class ResultPairs:
    """What the covariance of two lists of rows is made of, for any hyperparameters.

    Args:
        first: m rows.
        second: n rows.
    """

    def __init__(self, first: ResultInputs, second: ResultInputs) -> None:
        pairs = zip(first.groups, second.groups, strict=True)
        self.distances = [_squares(left, right) for left, right in pairs]
        self.whole: Array = np.zeros_like(self.distances[0])
        sizes = [group.shape[1] for group in first.groups]
        for distance, size in zip(self.distances, sizes, strict=True):
            self.whole += distance * (size / sum(sizes))

        self.words: Array = first.words @ second.words.T
        self.protocols: Array = (first.stems[:, None] == second.stems).astype(np.float64)
        self.networks: Array = (first.networks[:, None] == second.networks).astype(np.float64)
        self.linear: Array = LINEAR_VARIANCE * (1.0 + first.linear @ second.linear.T)

    def similarity(self, length: float) -> Array:
        """Return the correlation of the networks by their graphs, 1 for equal features: (m, n)."""
        apart = sum(np.exp(-np.sqrt(distance) / length) for distance in self.distances)
        together: Array = np.exp(-np.sqrt(self.whole) / length)
        return 0.5 * (apart / len(self.distances) + together)

    def covariance(self, theta: Mapping[str, float]) -> Array:
        """Return K: (m, n)."""
        covariance: Array = theta["graph"] * self.similarity(theta["length"])
        covariance += theta["words"] * self.words + theta["protocol"] * self.protocols
        covariance += theta["network"] * self.networks + self.linear
        return covariance


@dataclass(frozen=True, eq=False)
class LeftOutPredictions:
    """Predictions for each row from the rows of other families, in units of u.

    Attributes:
        means: (n,)
        stds: (n,), with the noise of a result.
    """

    means: Array
    stds: Array

    def density(self, targets: Array) -> float:
        """Return the mean log density of the rows, without its constant."""
        scaled = (targets - self.means) / self.stds
        return float(-np.mean(np.log(self.stds) + 0.5 * np.square(scaled)))


def leave_out(
    pairs: ResultPairs, theta: Mapping[str, float], targets: Array, families: NDArray[np.str_]
) -> LeftOutPredictions:
    """Predict each family from all others.

    Raises:
        NumericalError: The covariance is singular to working precision.
    """
    covariance = pairs.covariance(theta) + theta["noise"] * np.eye(len(targets))
    means = np.empty_like(targets)
    variances = np.empty_like(targets)
    try:
        inverse = np.linalg.inv(covariance)
        weights = inverse @ targets
        for rows in rows_of(families):
            block = np.linalg.inv(inverse[np.ix_(rows, rows)])
            means[rows] = targets[rows] - block @ weights[rows]
            variances[rows] = np.diag(block)
    except np.linalg.LinAlgError as error:
        raise NumericalError(f"no family can be left out: {error}") from error

    if not np.isfinite(means).all() or not (variances > 0.0).all():
        raise NumericalError("no family can be left out: the covariance is singular")

    return LeftOutPredictions(means, np.sqrt(variances))


def rows_of(families: NDArray[np.str_]) -> list[NDArray[np.int64]]:
    """Return the rows of each family."""
    order = np.argsort(families, kind="stable")
    _, firsts = np.unique(families[order], return_index=True)
    return np.split(order, firsts[1:])


@dataclass(frozen=True, eq=False)
class ProcessFit:
    """What is fitted to results, small enough to keep in a file.

    Attributes:
        transform: Name of g.
        theta: Hyperparameters by name.
        left_out: Predictions of all rows, their families left out.
    """

    transform: str
    theta: Mapping[str, float]
    left_out: LeftOutPredictions


def fit(
    inputs: ResultInputs, values: Array, families: NDArray[np.str_], seed: int = 0
) -> ProcessFit:
    """Choose transform and hyperparameters, and predict every family from the others."""
    rows = _some_families(families, seed)
    some = ResultPairs(inputs.take(rows), inputs.take(rows))
    with one_thread():
        transform = max(
            usable(values),
            key=lambda candidate: _density(candidate, some, DEFAULTS, values[rows], families[rows]),
        )
        theta = _search(transform, some, values[rows], families[rows])

    targets, _, _ = standardised(transform, values)
    whole = ResultPairs(inputs, inputs)
    return ProcessFit(transform.name, theta, leave_out(whole, theta, targets, families))


def usable(values: Array) -> list[ValueTransform]:
    """Return the transforms that are defined on all values."""
    transforms = []
    for transform in TRANSFORMS:
        if transform.least < values.min() and values.max() < transform.most:
            transforms.append(transform)

    return transforms


def standardised(transform: ValueTransform, values: Array) -> tuple[Array, float, float]:
    """Return u, and the mean and standard deviation of g(values)."""
    inner = transform.apply(values)
    centre = float(inner.mean())
    spread = float(inner.std()) or 1.0
    return (inner - centre) / spread, centre, spread


def _search(
    transform: ValueTransform, pairs: ResultPairs, values: Array, families: NDArray[np.str_]
) -> dict[str, float]:
    """Return the best hyperparameters, changed one at a time."""
    theta = dict(DEFAULTS)
    best = _density(transform, pairs, theta, values, families)
    for step in STEPS:
        for name in DEFAULTS:
            for factor in (step, 1.0 / step):
                changed = {**theta, name: theta[name] * factor}
                density = _density(transform, pairs, changed, values, families)
                if density > best:
                    theta, best = changed, density
                    break

    return theta


def _density(
    transform: ValueTransform,
    pairs: ResultPairs,
    theta: Mapping[str, float],
    values: Array,
    families: NDArray[np.str_],
) -> float:
    """Return the mean log density of the values of families left out."""
    targets, _, spread = standardised(transform, values)
    try:
        density = leave_out(pairs, theta, targets, families).density(targets)
    except NumericalError:
        return -np.inf

    return density - float(np.log(spread)) + float(np.mean(transform.slope(values)))


def _some_families(families: NDArray[np.str_], seed: int) -> NDArray[np.int64]:
    """Return the rows of whole families at random, at most `MOST_TUNED` and of two at least."""
    groups = rows_of(families)
    order = np.random.default_rng(seed).permutation(len(groups))
    chosen = [groups[order[0]][:MOST_TUNED]]
    for index in order[1:]:
        if len(chosen) < 2 or sum(map(len, chosen)) + len(groups[index]) <= MOST_TUNED:
            chosen.append(groups[index][:MOST_TUNED])

    return np.sort(np.concatenate(chosen))


@final
class ResultProcess:
    """A fitted process that predicts.

    Args:
        inputs: The n rows of results.
        values: (n,) their values.
        fitted: The fit to them.
    """

    def __init__(self, inputs: ResultInputs, values: Array, fitted: ProcessFit) -> None:
        self.inputs = inputs
        self.values = values
        self.fitted = fitted
        self.transform = BY_NAME[fitted.transform]
        self.targets, self._centre, self._spread = standardised(self.transform, values)
        residuals = (self.targets - fitted.left_out.means) / fitted.left_out.stds
        tail = 0.5 * (1.0 - COVERAGE)
        self.quantiles = quantiles(residuals, tail)
        noise = fitted.theta["noise"] * np.eye(len(values))
        covariance = ResultPairs(inputs, inputs).covariance(fitted.theta) + noise
        self._factor = cho_factor(covariance, lower=True)
        self._weights = cho_solve(self._factor, self.targets)

    def predict(self, queries: ResultInputs) -> tuple[Array, Array, Array]:
        """Return the values of m queries, and the lower and upper ends of their intervals."""
        theta = self.fitted.theta
        across = ResultPairs(queries, self.inputs).covariance(theta)
        prior = np.diag(ResultPairs(queries, queries).covariance(theta))
        means = across @ self._weights
        explained = np.einsum("mn,nm->m", across, cho_solve(self._factor, across.T))
        stds = np.sqrt(np.maximum(prior - explained, 0.0) + theta["noise"])
        low, high = self.quantiles
        return (
            self.restore(means),
            self.restore(means + low * stds),
            self.restore(means + high * stds),
        )

    def restore(self, targets: Array) -> Array:
        """Return values from u."""
        restored: Array = self.transform.restore(self._centre + self._spread * targets)
        return restored

    def similarities(self, query: ResultInputs) -> Array:
        """Return the similarity of one query's network to each row's, at most 1: (n,)."""
        similarities: Array = ResultPairs(query, self.inputs).similarity(
            self.fitted.theta["length"]
        )
        return similarities.ravel()


def quantiles(residuals: Array, tail: float) -> tuple[float, float]:
    """Return the quantiles that leave a share of residuals outside at each end."""
    count = len(residuals)
    ordered = np.sort(residuals)
    outside = int(np.floor(tail * (count + 1)))
    low = ordered[max(outside - 1, 0)]
    high = ordered[min(count - outside, count - 1)]
    return float(low), float(high)


def _squares(first: Array, second: Array) -> Array:
    """Return the mean squared differences of features: (m, n)."""
    norms = np.square(first).sum(axis=1)[:, None] + np.square(second).sum(axis=1)
    squares: Array = np.maximum(norms - 2.0 * first @ second.T, 0.0)
    squares /= max(first.shape[1], 1)
    return squares
