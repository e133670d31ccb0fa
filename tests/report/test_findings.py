"""Sentences that a report makes from its data: at every size of the data they are sentences."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from archive.plots.data.progress import BestSoFar
from archive.plots.data.tradeoff import ValueAndCost
from archive.report.page.findings import cost_finding, hypervolume_finding, progress_finding
from archive.values import rounded

VALUES = st.lists(st.floats(-10, 10), min_size=1, max_size=30)


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (0.954729, None, "0.9547"),
        (0.954729, 0.0, "0.9547"),
        (0.954729, 0.0031, "0.955"),
        (0.954729, 0.0012, "0.9547"),
        (0.954729, 0.3, "1.0"),
        (-0.0004, 0.02, "0.00"),
        (12345.6, 300.0, "12300"),
        (float("nan"), 0.1, "nan"),
    ],
)
def test_a_number_has_the_digits_that_its_error_permits(value, error, text):
    assert rounded(value, error) == text


@given(st.floats(-1e6, 1e6), st.floats(1e-9, 1e6))
def test_rounding_changes_a_number_by_less_than_its_error(value, error):
    assert abs(float(rounded(value, error)) - value) <= 0.51 * error


@pytest.mark.parametrize("against", ["evaluations", "seconds"])
@given(VALUES)
def test_progress_names_the_evaluation_of_the_best_value(against, values):
    value = np.array(values)
    best = np.maximum.accumulate(value)
    number = np.arange(len(value))
    x = (number + 1.0) * 3
    data = BestSoFar("s", "accuracy", "maximise", against, number, x, value, best, 0)
    sentence = progress_finding(data, None)
    assert sentence.endswith(".") and "nan" not in sentence
    assert f"valuation {int(np.argmax(value)) + 1} of {len(values)}" in sentence


@given(st.lists(st.tuples(st.floats(1, 9), st.floats(1, 9)), min_size=1, max_size=20))
def test_the_front_is_told_by_its_ends(pairs):
    cost, value = np.array(pairs).T
    order = np.lexsort((-value, cost))
    front = []
    for row in order:
        if not front or value[row] > value[front[-1]]:
            front.append(row)

    rows = np.array(front)
    number = np.arange(len(cost))
    data = ValueAndCost(
        studies=("s",),
        objective="accuracy",
        direction="maximise",
        cost_name="params",
        study=np.zeros_like(number),
        number=number,
        architecture=tuple(map(str, number)),
        value=value,
        cost=cost,
        front=rows,
        missing=0,
        left_out=0,
    )
    sentence = cost_finding(data, None)
    assert sentence.endswith(".")
    assert f"{value[rows[-1]]:.4g}" in sentence and f"{value[rows[0]]:.4g}" in sentence


def test_most_of_a_hypervolume_is_reached_at_the_first_such_proposal():
    sentence = hypervolume_finding([1, 2, 5], [0.1, 0.95, 1.0])
    assert sentence.endswith("were reached at proposal 2.")
