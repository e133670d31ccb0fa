"""Importance by a random forest: shares of its variance, with their spread over the trees.

Each tree is fitted to a bootstrap sample of the results, so that the spread over the trees is that
of repeated studies of the same size (`archive.plots.anova.trees`).

The code of a parameter that does not exist has no effect: each tree sees a random one in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from archive.plots.anova.measures import CodeMeasure
from archive.plots.anova.trees import TreeBoxes, spread
from archive.plots.data.results import Floats

TREES = 64
FEWER_TREES = 32
"""Trees of a set of results in which conditional parameters exist: there may be many sets."""
LEAST_LEAF = 3
"""Fewest results of a leaf: a leaf of one result would count its noise as an effect."""
MOST_RESULTS = 2000
"""Most results that trees are fitted to, drawn at random."""
_SHARE = 5 / 6
"""Share of the inputs that a split may use, as in SMAC (Hutter et al., 2011)."""


@dataclass(frozen=True)
class ImportanceShare:
    """A share with its interval.

    Attributes:
        share: The estimate, in [0, 1].
        low: Lower end of its 95 % interval, over bootstrap samples of the results.
        high: Upper end.
    """

    share: float
    low: float
    high: float

    @classmethod
    def of_repeats(cls, repeats: Floats, mean: float | None = None) -> ImportanceShare:
        """Return the share of (T,) repeated estimates."""
        middle = float(repeats.mean()) if mean is None else mean
        low, high = np.quantile(repeats, [0.025, 0.975]).tolist()
        return cls(middle, min(low, middle), max(high, middle))


@final
@dataclass(frozen=True, eq=False)
class AnovaForest:
    """Trees as boxes.

    Attributes:
        boxes: The trees that are not constant; none where the values have no structure.
        explained: Share of the variance of the values that trees predict of results that they have
            not seen, at most 1; 0 or less where they predict nothing.
    """

    boxes: tuple[TreeBoxes, ...]
    explained: float

    @cached_property
    def _variances(self) -> Floats:
        return np.array([boxes.variance for boxes in self.boxes])

    def main(self, column: int) -> ImportanceShare:
        """Return the share of a column alone, V_d / V."""
        parts = np.array([boxes.main(column) for boxes in self.boxes])
        return ImportanceShare.of_repeats(parts / self._variances)

    def pair(self, first: int, second: int) -> ImportanceShare:
        """Return the share that two columns have together beyond each alone, V_de / V."""
        parts = np.array([boxes.pair(first, second) for boxes in self.boxes])
        # Rounding makes an absent interaction slightly negative.
        return ImportanceShare.of_repeats(np.maximum(parts / self._variances, 0.0))

    def marginals(self, column: int, codes: Floats) -> Floats:
        """Return the mean prediction of each tree at (m,) codes of a column: (T, m) float64."""
        return np.array([boxes.marginal_at(column, codes) for boxes in self.boxes])

    def surface(self, first: int, second: int, across: Floats, up: Floats) -> Floats:
        """Return the mean prediction over the trees at codes of two columns: (m, k) float64."""
        total = np.zeros((len(across), len(up)))
        for boxes in self.boxes:
            total += boxes.joint_at(first, second, across, up)

        return total / max(1, len(self.boxes))


def grow(
    codes: Floats,
    values: Floats,
    measures: Sequence[CodeMeasure],
    *,
    trees: int = TREES,
    seed: int = 0,
) -> AnovaForest:
    """Fit trees to results.

    Args:
        codes: (n, D) float64; NaN for a parameter that does not exist.
        values: (n,) float64, finite.
        measures: D distributions.
        trees: Number of trees.
        seed: Seed of samples, splits and random codes.
    """
    from sklearn.tree import DecisionTreeRegressor

    rng = np.random.default_rng(seed)
    if len(values) > MOST_RESULTS:
        rows = np.sort(rng.choice(len(values), MOST_RESULTS, replace=False))
        codes = codes[rows]
        values = values[rows]

    count = len(values)
    leaf = min(LEAST_LEAF, max(1, count // 10))
    sums = np.zeros(count)
    votes = np.zeros(count)
    boxes = []
    for number in range(trees):
        inputs = spread(_supply(codes, measures, rng), measures)
        drawn = rng.integers(count, size=count)
        tree = DecisionTreeRegressor(
            max_features=_SHARE, min_samples_leaf=leaf, random_state=seed + number
        )
        tree.fit(inputs[drawn], values[drawn, None], check_input=False)
        outside = np.ones(count, np.bool_)
        outside[drawn] = False
        sums[outside] += tree.tree_.predict(inputs[outside])[:, 0]
        votes[outside] += 1
        box = TreeBoxes.of_tree(tree.tree_, measures)
        if box.variance > 0.0:
            boxes.append(box)

    return AnovaForest(tuple(boxes), _explained(values, sums, votes))


def _supply(codes: Floats, measures: Sequence[CodeMeasure], rng: np.random.Generator) -> Floats:
    """Return codes with random ones in place of NaN."""
    supplied = codes.copy()
    for column, measure in enumerate(measures):
        absent = np.isnan(supplied[:, column])
        if absent.any():
            supplied[absent, column] = measure.sample(int(absent.sum()), rng)

    return supplied


def _explained(values: Floats, sums: Floats, votes: Floats) -> float:
    """Return 1 - (squared error of the votes of other trees) / (squared deviation)."""
    some = votes > 0
    seen = values[some]
    deviation = float(np.square(seen - values.mean()).sum())
    if not deviation:
        return 0.0

    errors = seen - sums[some] / votes[some]
    return 1.0 - float(np.square(errors).sum()) / deviation
