"""Random forest on codes of configurations: a model of tables with jumps and conditions.

| symbol | meaning                                                                  | shape   |
|--------|--------------------------------------------------------------------------|---------|
| T      | trees                                                                    | scalar  |
| f_t    | prediction of tree t                                                     | (T, m)  |
| mu, s2 | mean and variance over the trees                                         | (m,)    |
| e2     | variance that out-of-bag errors have beyond s2                           | scalar  |

Options have a column each, and an absent parameter the value -1. The density of an observation
given the others is N(mu, s2 + e2) of the trees whose bootstrap sample lacks it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from archive.agents.configurations.process import CodedScores
from archive.agents.surrogates.base import Array
from archive.agents.surrogates.gp.exact import LOG_TWO_PI
from archive.agents.surrogates.threads import one_thread

TREES = 40
_SHARE = 5 / 6
"""Share of the columns that a split may use, as in SMAC (Hutter et al., 2011)."""
_LEAST_VARIANCE = 1e-4


@final
@dataclass(frozen=True, eq=False)
class FittedCodeForest:
    """A forest with its data.

    Attributes:
        options: (D,) number of options of each choice without an order, else 0.
        data: The observed configurations, fantasies included.
        forest: The trees.
        outside: (T, u) whether the sample of each tree lacks each value.
        seed: Seed of samples and splits.
    """

    options: tuple[int, ...]
    data: CodedScores
    forest: tuple[Any, ...]
    outside: NDArray[np.bool_]
    seed: int

    def predict(self, codes: Array) -> tuple[Array, Array]:
        """Return means and variances of the noise-free values of (m, D) codes: (m,), (m,)."""
        predicted = self._predictions(codes)
        variances = predicted.var(axis=0)
        return predicted.mean(axis=0), np.maximum(variances, _LEAST_VARIANCE)

    @property
    def noise(self) -> float:
        """Noise variance of one evaluation: what out-of-bag errors exceed the trees' variance by."""
        return self._excess(*self._out_of_bag())

    def loo_log_densities(self) -> Array:
        """Return the log out-of-bag density of each value: (u,) float64."""
        means, variances = self.left_out()
        squares = np.square(self.data.values - means)
        logs: Array = -0.5 * (np.log(variances) + LOG_TWO_PI + squares / variances)
        return logs

    def left_out(self) -> tuple[Array, Array]:
        """Return the out-of-bag means and variances of each value, with noise: (u,), (u,)."""
        means, variances = self._out_of_bag()
        return means, variances + self._excess(means, variances)

    def sample(self, codes: Array, count: int, rng: np.random.Generator) -> Array:
        """Draw trees, and return their values of (m, D) codes: (count, m) float64."""
        predicted = self._predictions(codes)
        drawn: Array = predicted[rng.integers(len(predicted), size=count)]
        return drawn

    def _excess(self, means: Array, variances: Array) -> float:
        """Return what squared out-of-bag errors exceed the variances by, in the mean."""
        squares = np.square(self.data.values - means)
        return max(float((squares - variances).mean()), _LEAST_VARIANCE)

    def _out_of_bag(self) -> tuple[Array, Array]:
        """Return means and variances of the trees that did not see each value: (u,), (u,)."""
        codes = self.data.codes

        # A value that is in every sample counts as predicted by the mean of the others.
        some = np.asarray(self.outside.any(axis=0))
        votes = np.where(self.outside, self._predictions(codes), np.nan)
        means = np.full(len(codes), float(self.data.values.mean()))
        variances = np.full(len(codes), float(self.data.values.var()))
        means[some] = np.nanmean(votes[:, some], axis=0)
        variances[some] = np.nanvar(votes[:, some], axis=0)
        return means, variances

    def hallucinate(self, codes: Array) -> FittedCodeForest:
        """Return the forest with its means at (k, D) codes as further values."""
        means, _ = self.predict(codes)
        data = CodedScores(
            np.vstack([self.data.codes, codes]),
            np.concatenate([self.data.values, means]),
            np.concatenate([self.data.counts, np.ones(len(codes))]),
        )
        return grow(self.options, data, self.seed, len(self.forest))

    def _predictions(self, codes: Array) -> Array:
        """Return f_t: (T, m) float64."""
        inputs = spread(codes, self.options)
        return np.array([tree.tree_.predict(inputs)[:, 0] for tree in self.forest])


def grow(
    options: tuple[int, ...], data: CodedScores, seed: int, trees: int = TREES
) -> FittedCodeForest:
    """Return the forest of a seed."""
    from sklearn import config_context
    from sklearn.tree import DecisionTreeRegressor

    rng = np.random.default_rng(seed)
    inputs = spread(data.codes, options)
    values = np.ascontiguousarray(data.values, dtype=np.float64)[:, None]
    n = len(values)
    forest = []
    outside = []
    # The checks of a tree's arguments cost as much as growing it.
    with one_thread(), config_context(assume_finite=True, skip_parameter_validation=True):
        for _ in range(trees):
            drawn = np.bincount(rng.integers(n, size=n), minlength=n)
            tree = DecisionTreeRegressor(max_features=_SHARE, random_state=int(rng.integers(2**31)))
            tree.fit(inputs, values, sample_weight=drawn * data.counts, check_input=False)
            forest.append(tree)
            outside.append(drawn == 0)

    return FittedCodeForest(options, data, tuple(forest), np.array(outside), seed)


def spread(codes: Array, options: tuple[int, ...]) -> Any:
    """Return the inputs of the trees: (n, q) float32, which scikit-learn's trees read."""
    columns = []
    for column, size in enumerate(options):
        values = codes[:, column]
        if size > 2:
            columns.append(values[:, None] == np.arange(size))
        else:
            columns.append(np.where(np.isnan(values), -1.0, values)[:, None])

    return np.ascontiguousarray(np.hstack(columns), dtype=np.float32)
