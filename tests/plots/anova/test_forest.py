"""Shares of the variance: exact for each tree, and right for functions of known variances."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from archive.plots.anova import forest
from archive.plots.anova.measures import CodeMeasure
from archive.plots.anova.trees import TreeBoxes, spread

MEASURES = (
    CodeMeasure(levels=4),
    CodeMeasure(options=3),
    CodeMeasure(levels=5),
    CodeMeasure(options=2),
)


def grid(measures):
    """Return every combination of codes."""
    return np.array(list(itertools.product(*(measure.grid(99) for measure in measures))))


def effect(values, axes, axis):
    """Return the deviation of the means over all other axes: the oracle of a main effect."""
    others = tuple(other for other in axes if other != axis)
    return values.mean(axis=others) - values.mean()


@pytest.mark.parametrize("seed", range(4))
def test_shares_of_a_tree_are_those_of_its_predictions_on_the_whole_grid(seed):
    rng = np.random.default_rng(seed)
    points = grid(MEASURES)
    seen = points[rng.integers(len(points), size=60)]
    tree = DecisionTreeRegressor(min_samples_leaf=2, random_state=seed)
    tree.fit(spread(seen, MEASURES), rng.standard_normal(60))
    boxes = TreeBoxes.of_tree(tree.tree_, MEASURES)
    values = tree.predict(spread(points, MEASURES)).reshape(4, 3, 5, 2)
    assert boxes.mean == pytest.approx(values.mean())
    assert boxes.variance == pytest.approx(values.var())
    axes = range(4)
    for axis in axes:
        main = effect(values, axes, axis)
        assert boxes.main(axis) == pytest.approx(np.square(main).mean(), abs=1e-12)
        codes = MEASURES[axis].grid(99)
        assert boxes.marginal_at(axis, codes) == pytest.approx(values.mean() + main)

    for first, second in itertools.combinations(axes, 2):
        others = tuple(axis for axis in axes if axis not in (first, second))
        joint = values.mean(axis=others)
        alone = effect(values, axes, first)[:, None] + effect(values, axes, second)
        rest = joint - values.mean() - alone
        assert boxes.pair(first, second) == pytest.approx(np.square(rest).mean(), abs=1e-12)
        codes = (MEASURES[first].grid(99), MEASURES[second].grid(99))
        assert boxes.joint_at(first, second, *codes) == pytest.approx(joint)


def test_a_restricted_measure_counts_only_its_codes():
    restricted = (
        MEASURES[0].restrict(np.array([1 / 3, 1.0])),
        MEASURES[1].restrict(np.array([2.0, 0.0])),
    )
    assert restricted[0].grid(99) == pytest.approx([1 / 3, 2 / 3, 1.0])
    assert restricted[0].probabilities(np.array([0.5])) == pytest.approx([1 / 3, 2 / 3])
    assert restricted[1].probabilities(np.empty(0)) == pytest.approx([0.5, 0.0, 0.5])
    interval = CodeMeasure().restrict(np.array([0.2, 0.6]))
    assert interval.probabilities(np.array([0.1, 0.3, 0.9])) == pytest.approx(
        [0.0, 0.25, 0.75, 0.0]
    )


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_a_function_of_known_variances_has_these_shares(noise):
    rng = np.random.default_rng(0)
    codes = rng.random((800, 4))
    codes[:, 3] = rng.integers(3, size=800)
    measures = (CodeMeasure(), CodeMeasure(), CodeMeasure(), CodeMeasure(options=3))
    product = (codes[:, 0] - 0.5) * (codes[:, 1] - 0.5)
    values = 4 * codes[:, 0] + 8 * product + 1.5 * (codes[:, 3] == 1)
    values += noise * rng.standard_normal(800)
    parts = np.array([16 / 12, 64 / 144, 2.25 * 2 / 9])
    expected = parts / parts.sum()
    grown = forest.grow(codes, values, measures)
    # Trees cannot follow a slope exactly, and noise takes a share.
    assert grown.main(0).share == pytest.approx(expected[0], abs=0.08)
    assert grown.pair(0, 1).share == pytest.approx(expected[1], abs=0.06)
    assert grown.main(3).share == pytest.approx(expected[2], abs=0.06)
    for column in (1, 2):
        assert grown.main(column).share < 0.02

    assert grown.explained > (0.95 if not noise else 0.75)
    share = grown.main(0)
    assert 0.0 <= share.low < share.share < share.high <= 1.0


def test_noise_alone_is_not_explained():
    rng = np.random.default_rng(0)
    grown = forest.grow(
        rng.random((100, 2)), rng.standard_normal(100), (CodeMeasure(), CodeMeasure())
    )
    assert grown.explained < 0.1


def test_a_parameter_that_does_not_exist_has_no_effect():
    rng = np.random.default_rng(0)
    codes = rng.random((300, 2))
    values = np.where(codes[:, 0] > 0.5, 3.0, codes[:, 1])
    codes[codes[:, 0] > 0.5, 1] = np.nan
    grown = forest.grow(codes, values, (CodeMeasure(), CodeMeasure()))
    middle = (3.0 - 0.5) ** 2 / 4
    total = middle + 1 / 12 / 2
    assert grown.main(0).share == pytest.approx(middle / total, abs=0.03)
    assert grown.main(1).share == pytest.approx((1 / 12 / 4) / total, abs=0.02)
