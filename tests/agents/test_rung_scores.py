"""Projected scores of trainings of different lengths."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.agents import rung_scores
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
    return pytest.approx(rung_scores.scores(evaluations, "accuracy"))


def test_the_table_of_the_module():
    a = seen(0, [0.8, 0.8, 0.8, 0.8, 0.8, 0.9, 0.93, *[0.9] * 11])
    b, c = seen(1, [0.6, 0.7], partial=True), seen(2, [0.6, 0.5], partial=True)
    d = seen(3, [0.7, 0.75, 0.79, 0.7, 0.7, 0.7], partial=True)
    assert [0.93, 0.80, 0.70, 0.82] == scores(a, b, c, d)


def test_whole_trainings_keep_their_scores():
    assert rung_scores.scores([seen(0, [0.5, 0.9]), seen(1, [0.7])], "accuracy") == [0.9, 0.7]


def test_all_at_one_rung_are_told_as_they_are():
    both = [seen(0, [0.5, 0.6], partial=True), seen(1, [0.1, 0.2], partial=True)]
    assert rung_scores.scores(both, "accuracy") == [0.6, 0.2]


def test_an_estimate_is_never_better_than_the_best_that_was_measured():
    slow = seen(0, [0.2, 0.9])
    fast = seen(1, [0.6], partial=True)
    assert [0.9, 0.9] == scores(slow, fast)
    # Nor below its own score.
    assert [0.5, 0.6] == scores(seen(0, [0.5, 0.5]), fast)


def test_what_is_minimised_is_estimated_downwards():
    whole = seen(0, [4.0, 1.0], direction="minimise")
    assert [-1.0, -2.0] == scores(whole, seen(1, [5.0], partial=True, direction="minimise"))


def test_other_tasks_are_scales_of_their_own():
    other = seen(0, [0.0, 50.0], task="other")
    assert [50.0, 0.6] == scores(other, seen(1, [0.6], partial=True))


def test_a_partial_score_of_no_length_teaches_nothing():
    without = Evaluation("s#1", "s", 1, "t", "t/1", CELL, 0.5, partial=True)
    projected = rung_scores.scores([seen(0, [0.9]), without], "accuracy")
    assert projected[0] == 0.9 and math.isnan(projected[1])


curves = st.lists(st.floats(0, 1), min_size=6, max_size=6)


@given(st.lists(st.tuples(curves, st.sampled_from([1, 3, 6])), min_size=1, max_size=12))
def test_estimates_keep_the_order_of_a_rung_and_stay_in_bounds(given):
    every = [seen(n, curve[:length], partial=length < 6) for n, (curve, length) in enumerate(given)]
    projected = rung_scores.scores(every, "accuracy")
    best = max(one.value for one in every)
    for one, score in zip(every, projected, strict=True):
        assert one.value <= score <= best or one.value == score
        for other, others in zip(every, projected, strict=True):
            if one.epochs == other.epochs and one.value <= other.value:
                assert score <= others


@given(curves, st.integers(1, 5))
def test_a_paused_training_is_restored_as_of_its_rung(curve, epochs):
    then, now = seen(0, curve[:epochs], partial=True), seen(0, curve)
    assert rung_scores.as_of(now, epochs, "accuracy") == then
