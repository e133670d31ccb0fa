"""Scores of partial trainings, projected to full length."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.agents.rungs import RungRegression, as_of, project_scores, score_after
from archive.store.records import Evaluation
from tests.support.stores import cells

(CELL,) = cells(1)


def seen(number, curve, *, partial=False, **settings):
    given = {"task": "t", "protocol": "t/1", "study": "s", "direction": "maximise", **settings}
    better = max if given["direction"] == "maximise" else min
    return Evaluation(
        id=f"s#{number}", number=number, architecture=CELL, value=better(curve),
        curve={"accuracy": list(curve)}, epochs=len(curve), partial=partial, **given,
    )  # fmt: skip


def scores(*evaluations):
    return [one.score for one in project_scores(evaluations, "accuracy")]


def deviations(*evaluations):
    return [math.sqrt(one.variance) for one in project_scores(evaluations, "accuracy")]


def test_the_table_of_the_module():
    a = seen(0, [0.8, 0.8, 0.8, 0.8, 0.8, 0.9, 0.93, *[0.9] * 11])
    b = seen(1, [0.6, 0.7], partial=True)
    c = seen(2, [0.6, 0.5], partial=True)
    d = seen(3, [0.7, 0.75, 0.79, 0.7, 0.7, 0.7], partial=True)
    every = (a, b, c, d)
    first = RungRegression.fit(
        np.array([0.8, 0.7, 0.6, 0.75]), np.array([0.8, 0.75]), np.array([0.9, 0.79])
    )
    second = RungRegression.fit(np.array([0.9, 0.79]), np.array([0.9]), np.array([0.93]))
    mean, variance = second.predict(*first.predict(0.6))
    assert scores(*every)[0] == 0.93 and deviations(*every)[0] == 0.0
    assert 0.6 < mean < 0.93
    assert project_scores(every, "accuracy")[2] == pytest.approx((mean, variance))


def test_a_whole_result_without_a_length_says_nothing_of_rungs():
    paused = [seen(0, [0.6, 0.7], partial=True), seen(1, [0.3, 0.4], partial=True)]
    whole = [seen(2, [0.5, 0.65, 0.8]), seen(3, [0.6, 0.8, 0.9])]
    told = [replace(seen(4 + at, [0.95]), epochs=None, curve={}) for at in range(6)]
    assert score_after(told[0], 2, "accuracy") is None
    assert (
        project_scores([*paused, *whole, *told], "accuracy")[:4]
        == project_scores([*paused, *whole, told[0]], "accuracy")[:4]
    )
    assert scores(*told) == [0.95] * 6


def test_whole_trainings_keep_their_scores():
    whole = seen(0, [0.5, 0.9]), seen(1, [0.7])
    assert scores(*whole) == [0.9, 0.7]
    assert deviations(*whole) == [0.0, 0.0]


def test_all_at_one_rung_are_told_as_they_are():
    both = [seen(0, [0.5, 0.6], partial=True), seen(1, [0.1, 0.2], partial=True)]
    assert scores(*both) == [0.6, 0.2]
    assert deviations(*both) == [0.0, 0.0]


def test_a_projection_is_never_better_than_the_best_that_was_measured():
    slow = seen(0, [0.2, 0.9])
    fast = seen(1, [0.6], partial=True)
    assert scores(slow, fast) == [0.9, 0.9]
    assert deviations(slow, fast)[1] > 0.0
    # Nor below its own score.
    assert scores(seen(0, [0.5, 0.5]), fast) == [0.5, 0.6]


def test_what_is_minimised_is_projected_downwards():
    whole = [
        seen(n, [early, early - 3.0], direction="minimise") for n, early in enumerate((4.0, 6.0))
    ]
    paused = seen(2, [5.0], partial=True, direction="minimise")
    assert scores(*whole, paused)[2] == pytest.approx(-2.0, abs=0.1)


def test_other_tasks_are_scales_of_their_own():
    other = seen(0, [0.0, 50.0], task="other")
    assert scores(other, seen(1, [0.6], partial=True)) == [50.0, 0.6]


def test_a_partial_score_of_no_length_teaches_nothing():
    without = Evaluation("s#1", "s", 1, "t", "t/1", CELL, 0.5, partial=True)
    assert scores(seen(0, [0.9]), without)[0] == 0.9
    assert math.isnan(scores(seen(0, [0.9]), without)[1])


def test_a_score_that_is_not_finite_is_no_part_of_a_regression():
    failed = seen(1, [math.nan], partial=True)
    told = scores(seen(0, [0.5, 0.9]), failed, seen(2, [0.4], partial=True))
    assert math.isnan(told[1]) and 0.4 < told[2] <= 0.9


def test_promotion_does_not_bias_the_projection():
    rng = np.random.default_rng(0)
    early = rng.normal(0.5, 0.1, 400)
    late = 0.6 + 0.4 * early + rng.normal(0.0, 0.02, 400)
    promoted = set(np.argsort(-early)[:133].tolist())
    every = [
        seen(n, [a, b]) if n in promoted else seen(n, [a], partial=True)
        for n, (a, b) in enumerate(zip(early, late, strict=True))
    ]
    told = project_scores(every, "accuracy")
    errors = np.array([told[n].score - late[n] for n in range(400) if n not in promoted])
    # The gain of the promoted ones would be wrong by 0.09.
    assert abs(errors.mean()) < 0.005
    assert (
        np.sqrt(np.mean([told[n].variance for n in range(400) if n not in promoted])) > errors.std()
    )


def test_a_curve_without_promotion_enters_the_regression():
    whole = [seen(n, [a, 0.5 + 0.5 * a], study="source") for n, a in enumerate((0.2, 0.5, 0.9))]
    few = deviations(whole[2], seen(9, [0.3], partial=True))
    many = deviations(*whole, seen(9, [0.3], partial=True))
    assert many[-1] < few[-1]


curves = st.lists(st.floats(0, 1), min_size=6, max_size=6)


@given(st.lists(st.tuples(curves, st.sampled_from([1, 3, 6])), min_size=1, max_size=12))
def test_estimates_keep_the_order_of_a_rung_and_stay_in_bounds(given):
    every = [seen(n, curve[:length], partial=length < 6) for n, (curve, length) in enumerate(given)]
    told = scores(*every)
    best = max(one.value for one in every)
    for one, score in zip(every, told, strict=True):
        assert one.value <= score <= best or one.value == score
        for other, others in zip(every, told, strict=True):
            if one.epochs == other.epochs and one.value <= other.value:
                assert score <= others


@given(curves, st.integers(1, 5))
def test_a_paused_training_is_restored_as_of_its_rung(curve, epochs):
    then = seen(0, curve[:epochs], partial=True)
    now = seen(0, curve)
    assert as_of(now, epochs, "accuracy") == then
    assert score_after(now, epochs, "accuracy") == then.score
