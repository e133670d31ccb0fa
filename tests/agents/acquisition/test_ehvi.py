"""Expected hypervolume improvement in closed form, against Monte Carlo and an independent
hypervolume."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.agents.acquisition.ehvi import LogEhvi, free_boxes
from archive.agents.surrogates.base import Posterior
from archive.objectives.pareto import history, hypervolume, nondominated
from tests.support import examples

DRAWS = 4000


def improvement(points, reference, y):
    """The definition: the hypervolume with one more point, less that without it."""
    return hypervolume(np.vstack([points, y]), reference) - hypervolume(points, reference)


def mixture(means, stds, weights=None):
    return Posterior(means, np.square(stds), np.zeros(len(means)), None, weights)


@given(st.integers(1, 4), st.integers(0, 9), st.integers(0, 2**32 - 1))
@examples(10)
def test_boxes_partition_what_the_front_leaves_free(objectives, count, seed):
    # Few levels, so that points tie in one objective or in all, and some lie on the reference point
    # or below it.
    rng = np.random.default_rng(seed)
    points = rng.integers(-1, 5, (count, objectives)).astype(float)
    reference = np.zeros(objectives)
    lower, upper = free_boxes(points, reference)
    assert (lower < upper).all()
    for y in rng.uniform(-1.0, 6.0, (5, objectives)):
        covered = np.maximum(np.minimum(upper, y) - lower, 0.0).prod(axis=1).sum()
        assert covered == pytest.approx(improvement(points, reference, y), abs=1e-9)


@pytest.mark.parametrize("learnt", [1, 2, 3])
@pytest.mark.parametrize("known", [0, 1, 2])
def test_the_closed_form_is_the_mean_of_drawn_improvements(learnt, known):
    rng = np.random.default_rng(10 * learnt + known)
    objectives = learnt + known
    points = rng.normal(size=(6, objectives))
    reference = np.full(objectives, -1.5)
    means = rng.normal(size=(learnt, 2, 3))
    stds = rng.uniform(0.2, 0.7, (learnt, 2, 3))
    weights = np.array([0.3, 0.7])
    exact = rng.normal(size=(known, 3))
    gain = LogEhvi(*free_boxes(points, reference))
    found = np.exp(gain([*(mixture(means[j], stds[j], weights) for j in range(learnt)), *exact]))
    for at in range(3):
        y = np.empty((DRAWS, objectives))
        for j in range(learnt):
            member = rng.choice(2, DRAWS, p=weights)
            y[:, j] = rng.normal(means[j, member, at], stds[j, member, at])

        y[:, learnt:] = exact[:, at]
        gains = (
            np.maximum(np.minimum(gain.upper, y[:, None]) - gain.lower, 0.0)
            .prod(axis=2)
            .sum(axis=1)
        )
        assert found[at] == pytest.approx(
            gains.mean(), abs=5 * gains.std() / np.sqrt(DRAWS) + 1e-12
        )


def test_certain_candidates_have_the_improvement_itself():
    points = np.array([[1.0, 3.0], [2.0, 1.0]])
    reference = np.zeros(2)
    y = np.array([[3.0, 2.0], [1.0, 2.0], [0.5, 4.0]])
    gain = LogEhvi(*free_boxes(points, reference))
    found = np.exp(gain([mixture(y[None, :, 0], np.zeros((1, 3))), y[:, 1]]))
    assert found == pytest.approx([improvement(points, reference, each) for each in y])


def test_candidates_far_below_the_front_keep_their_order_and_unknown_costs_have_no_chance():
    points = np.array([[1.0, 1.0]])
    reference = np.array([0.0, 0.0])
    means = np.array([[-100.0, -90.0, 5.0, 5.0]])
    gain = LogEhvi(*free_boxes(points, reference))
    known = np.array([0.5, 0.5, np.nan, -1.0])
    ranks = gain([mixture(means, np.ones((1, 4))), known])
    assert -np.inf < ranks[0] < ranks[1] < -1000
    assert (ranks[2:] == -np.inf).all()


def test_the_history_of_the_hypervolume_is_that_of_each_prefix():
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 6, (25, 3)).astype(float)
    reference = np.zeros(3)
    expected = [hypervolume(scores[: at + 1], reference) for at in range(len(scores))]
    assert history(scores, reference) == pytest.approx(expected)


@pytest.mark.parametrize("objectives", [2, 3])
@pytest.mark.parametrize("missing", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_add_nothing_to_the_history(missing, objectives):
    rng = np.random.default_rng(0)
    scores = rng.random((20, objectives))
    reference = np.zeros(objectives)
    scores[rng.random(20) < 0.4, 1] = missing
    known = [scores[: at + 1][np.isfinite(scores[: at + 1, 1])] for at in range(20)]
    assert history(scores, reference) == pytest.approx(
        [hypervolume(rows, reference) for rows in known]
    )


def test_of_equal_points_the_first_is_in_the_pareto_set():
    scores = np.array([[0.0, 2.0], [1.0, 1.0], [1.0, 1.0], [1.0, 0.0], [0.0, 2.0]])
    assert nondominated(scores).tolist() == [True, True, False, False, False]
    assert nondominated(np.empty((0, 2))).tolist() == []
