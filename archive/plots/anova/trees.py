"""Functional analysis of variance of one regression tree, exact by its leaves (fANOVA).

| symbol  | meaning                                                                     | shape     |
|---------|-----------------------------------------------------------------------------|-----------|
| D, L    | columns, leaves                                                             | scalars   |
| p_d     | probabilities of the cells of column d: intervals between the tree's cuts,  | (A_d,)    |
|         | or options                                                                  |           |
| M_d     | whether leaf l covers a cell of column d                                    | (L, A_d)  |
| v_ld    | probability of column d in leaf l, M_d p_d                                  | (L, D)    |
| c_l     | prediction of leaf l                                                        | (L,)      |
| f_0     | mean, sum_l c_l prod_d v_ld                                                 | scalar    |
| a_U     | marginal prediction: f averaged over all columns that are not in U          | cells     |
| V_U     | variance of the effect of U alone                                           | scalar    |
| V       | variance of f, the sum of all V_U                                           | scalar    |

    a_d = M_d' (c_l prod_{e != d} v_le)                 V_d  = sum p_d a_d^2 - f_0^2
    a_de = M_d' diag(c_l prod_{g != d, e} v_lg) M_e     V_de = sum p_d p_e a_de^2 - f_0^2 - V_d - V_e

F. Hutter, H. Hoos, K. Leyton-Brown, An efficient approach for assessing hyperparameter importance,
ICML 2014, section 3. Columns are independent, each uniform on its domain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from archive.plots.anova.measures import CodeMeasure
from archive.plots.data.results import Booleans, Floats

NO_CUTS: Floats = np.empty(0)


def spread(codes: Floats, measures: Sequence[CodeMeasure]) -> Any:
    """Return the inputs of a tree: (n, q) float32, a column for each option.

    Args:
        codes: (n, D) float64 without NaN.
        measures: D distributions.
    """
    blocks = []
    for column, measure in enumerate(measures):
        values = codes[:, column, None]
        blocks.append(values == np.arange(measure.options) if measure.options else values)

    return np.ascontiguousarray(np.hstack(blocks), dtype=np.float32)


@dataclass(frozen=True, eq=False)
class TreeBoxes:
    """The leaves of a tree as boxes.

    Attributes:
        cuts: D ascending cuts of numbers; empty for options.
        chances: D arrays p_d.
        masks: D arrays M_d, float64.
        volumes: (L, D) v.
        values: (L,) c - f_0.
        mean: f_0.
    """

    cuts: tuple[Floats, ...]
    chances: tuple[Floats, ...]
    masks: tuple[Floats, ...]
    volumes: Floats
    values: Floats
    mean: float

    @classmethod
    def of_tree(cls, tree: Any, measures: Sequence[CodeMeasure]) -> TreeBoxes:
        """Return the boxes of a tree of scikit-learn, fitted to `spread` inputs.

        Args:
            tree: Its `tree_`.
            measures: D distributions of the columns.
        """
        cuts = _read_cuts(tree, measures)
        chances = [
            measure.probabilities(marks) for measure, marks in zip(measures, cuts, strict=True)
        ]
        masks = _read_masks(tree, measures, cuts, chances)
        volumes = np.stack(
            [mask @ chance for mask, chance in zip(masks, chances, strict=True)], axis=1
        )
        values = tree.value[tree.children_left < 0, 0, 0]
        mean = float(volumes.prod(axis=1) @ values)
        return cls(tuple(cuts), tuple(chances), tuple(masks), volumes, values - mean, mean)

    @property
    def variance(self) -> float:
        """V."""
        return float(self.volumes.prod(axis=1) @ np.square(self.values))

    @cached_property
    def mains(self) -> Floats:
        """V_d of all columns: (D,) float64."""
        parts = np.empty(len(self.chances))
        for column, chances in enumerate(self.chances):
            parts[column] = chances @ np.square(self._marginal(column))

        return parts

    def main(self, column: int) -> float:
        """Return V_d."""
        return float(self.mains[column])

    def pair(self, first: int, second: int) -> float:
        """Return V_de of two different columns."""
        marginal = self._joint(first, second)
        joint = self.chances[first] @ np.square(marginal) @ self.chances[second]
        return float(joint) - self.main(first) - self.main(second)

    def marginal_at(self, column: int, codes: Floats) -> Floats:
        """Return a_d at (m,) codes: (m,) float64."""
        marginal: Floats = self.mean + self._marginal(column)[self._cells(column, codes)]
        return marginal

    def joint_at(self, first: int, second: int, across: Floats, up: Floats) -> Floats:
        """Return a_de at (m,) codes of one column and (k,) of another: (m, k) float64."""
        marginal = self._joint(first, second)
        rows = self._cells(first, across)
        columns = self._cells(second, up)
        return self.mean + marginal[np.ix_(rows, columns)]

    @cached_property
    def _others(self) -> Floats:
        """prod_{e != d} v_le: (L, D) float64, without a division, since v may be 0."""
        ones = np.ones((len(self.values), 1))
        before = np.cumprod(np.hstack([ones, self.volumes[:, :-1]]), axis=1)
        after = np.cumprod(np.hstack([ones, self.volumes[:, :0:-1]]), axis=1)[:, ::-1]
        return np.asarray(before * after, np.float64)

    def _marginal(self, column: int) -> Floats:
        weights: Floats = self.values * self._others[:, column]
        marginal: Floats = weights @ self.masks[column]
        return marginal

    def _joint(self, first: int, second: int) -> Floats:
        others = np.delete(self.volumes, [first, second], axis=1).prod(axis=1)
        weighted = self.masks[first] * (self.values * others)[:, None]
        joint: Floats = weighted.T @ self.masks[second]
        return joint

    def _cells(self, column: int, codes: Floats) -> Any:
        if len(self.cuts[column]) or len(self.chances[column]) == 1:
            # A tree sends a number that equals a cut to the left.
            return np.searchsorted(self.cuts[column], codes, side="left")

        return codes.astype(int)


def _read_cuts(tree: Any, measures: Sequence[CodeMeasure]) -> list[Floats]:
    """Return the ascending cuts of each column; none of options."""
    cuts = []
    begin = 0
    for measure in measures:
        thresholds = NO_CUTS
        if not measure.options:
            thresholds = np.unique(tree.threshold[tree.feature == begin])

        cuts.append(thresholds)
        begin += measure.options or 1

    return cuts


def _read_masks(
    tree: Any, measures: Sequence[CodeMeasure], cuts: Sequence[Floats], chances: Sequence[Floats]
) -> list[Floats]:
    """Return M_d of each column, (L, A_d) float64; the leaves in the order of the tree's nodes."""
    ends = np.cumsum([len(chance) for chance in chances]).tolist()
    begins = [0, *ends[:-1]]
    owners: list[tuple[int, int]] = []
    for column, measure in enumerate(measures):
        owners += [(column, option) for option in range(measure.options)] or [(column, -1)]

    reached: Booleans = np.ones((tree.node_count, ends[-1]), np.bool_)
    # A child has a greater number than its parent.
    for node in np.flatnonzero(tree.children_left >= 0).tolist():
        column, option = owners[tree.feature[node]]
        begin = begins[column]
        left = tree.children_left[node]
        right = tree.children_right[node]
        reached[left] = reached[node]
        reached[right] = reached[node]
        if option >= 0:
            # Without the option is left, with it right.
            index = begin + option
            reached[left, index] = False
            reached[right, begin:index] = False
            reached[right, index + 1 : ends[column]] = False
        else:
            index = begin + 1 + int(np.searchsorted(cuts[column], tree.threshold[node]))
            reached[left, index : ends[column]] = False
            reached[right, begin:index] = False

    leaves = reached[tree.children_left < 0].astype(np.float64)
    return [leaves[:, begin:end] for begin, end in zip(begins, ends, strict=True)]
