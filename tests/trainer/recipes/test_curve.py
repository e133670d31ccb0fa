"""Curves of trials: any metrics in any report, and clear refusals of what cannot be recorded."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from archive.errors import TrainingError
from archive.store.properties import curve_properties
from archive.trainer.recipes import curve as curves
from archive.trainer.recipes.curve import Curve, check_metrics

NAMES = st.sampled_from(["loss", "val/acc", "f1@5", "a.b-c"])
REPORTS = st.lists(st.dictionaries(NAMES, st.floats(-1e9, 1e9)), max_size=6)


@given(reports=REPORTS)
def test_every_column_has_an_entry_for_each_report(reports):
    curve = Curve()
    for step, metrics in enumerate(reports, 1):
        assert curve.add(step, metrics, float(step)) == {
            "epoch": float(step),
            **metrics,
            "seconds": float(step),
        }

    assert len(curve) == len(reports)
    for name, column in curve.columns.items():
        own = [metrics.get(name, math.nan) for metrics in reports]
        if name not in ("epoch", "seconds"):
            assert np.array_equal(column, own, equal_nan=True)

    assert [
        {k: v for k, v in row.items() if k not in ("epoch", "seconds")} for row in curve.rows()
    ] == reports
    # What the store accepts, and what a resumed trial begins with.
    curve_properties(curve.columns)
    assert Curve(curve.columns).rows() == curve.rows()
    assert curve.last() == {name: value for metrics in reports for name, value in metrics.items()}


def test_a_column_that_comes_late_stands_before_the_seconds():
    curve = Curve()
    curve.add(1, {"loss": 3}, 0.5)
    curve.add(4, {"accuracy": np.float32(0.5)}, 1.5)
    assert list(curve.columns) == ["epoch", "loss", "accuracy", "seconds"]
    assert curve.columns["epoch"] == [1.0, 4.0]
    assert curve.columns["accuracy"][1] == 0.5


@pytest.mark.parametrize(
    "value",
    [
        3,
        3.0,
        np.float64(3),
        np.int64(3),
        np.array([3.0]),
        np.array(3.0),
        torch.tensor(3.0),
        torch.tensor([3]),
    ],
)
def test_numbers_of_all_kinds_are_floats(value):
    (number,) = check_metrics({"loss": value}).values()
    assert (number, type(number)) == (3.0, float)


@pytest.mark.parametrize(
    ("metrics", "reason"),
    [
        ({"loss": math.nan}, "training diverged: loss is nan in step 2"),
        ({"loss": torch.tensor(-math.inf)}, "training diverged: loss is -inf in step 2"),
        ({"loss": 10**400}, "the metric 'loss' is larger than a float in step 2"),
        ({"loss": Fraction(10**400)}, "the metric 'loss' is larger than a float in step 2"),
        ({"loss": "0.3"}, "the metric 'loss' must be a number, got str"),
        ({"loss": True}, "the metric 'loss' must be a number, got bool"),
        ({"loss": None}, "the metric 'loss' must be a number, got NoneType"),
        ({"loss": np.array([1.0, 2.0])}, "the metric 'loss' must be a number, got ndarray"),
        ({"loss": torch.ones(2)}, "the metric 'loss' must be a number, got Tensor"),
        ({"": 1.0}, "the name of a metric must be .* got ''"),
        ({"1st": 1.0}, "the name of a metric must be .* got '1st'"),
        ({"a`b": 1.0}, "the name of a metric must be .* got 'a`b'"),
        ({"x" * 65: 1.0}, "the name of a metric must be 1 to 64"),
        ({3: 1.0}, "the name of a metric must be .* got '3'"),
        ({"epoch": 1.0}, "the metric 'epoch' is recorded with every report"),
        ({"seconds": 1.0}, "the metric 'seconds' is recorded with every report"),
        ([1.0], "metrics must be a mapping of names to numbers, got list"),
    ],
)
def test_what_cannot_be_recorded_is_refused(metrics, reason):
    curve = Curve()
    curve.add(1, {"loss": 1.0}, 0.0)
    with pytest.raises(TrainingError, match=reason):
        curve.add(2, metrics, 0.0)

    assert len(curve) == 1


@pytest.mark.parametrize("step", [1, 0, -3, 1.5, "2", True, None, 2**60])
def test_steps_are_whole_numbers_that_increase(step):
    curve = Curve()
    curve.add(1, {}, 0.0)
    with pytest.raises(
        TrainingError,
        match=r"the step of a report must be|the steps of reports "
        r"must increase",
    ):
        curve.add(step, {}, 0.0)


def test_a_curve_is_bounded(monkeypatch):
    monkeypatch.setattr(curves, "MOST_METRICS", 4)
    monkeypatch.setattr(curves, "MOST_REPORTS", 2)
    curve = Curve()
    with pytest.raises(TrainingError, match="may report 4 different metrics"):
        curve.add(1, {"a": 1, "b": 1, "c": 1}, 0.0)

    curve.add(1, {"a": 1, "b": 1}, 0.0)
    curve.add(2, {"a": 1}, 0.0)
    with pytest.raises(
        TrainingError, match="may report 2 times: report once an epoch, not after each batch"
    ):
        curve.add(3, {"a": 1}, 0.0)


def test_a_curve_has_no_more_values_than_a_server_can_store(monkeypatch):
    monkeypatch.setattr(curves, "MOST_VALUES", 11)
    curve = Curve()
    for step in (1, 2, 3):
        curve.add(step, {"a": 1}, 0.0)

    with pytest.raises(
        TrainingError,
        match=r"may report 11 values, got 4 reports of 3 metrics: "
        r"report once an epoch",
    ):
        curve.add(4, {"a": 1}, 0.0)

    # A new metric has an entry for each earlier report, too.
    shorter = Curve({name: values[:2] for name, values in curve.columns.items()})
    with pytest.raises(TrainingError, match="got 3 reports of 4 metrics"):
        shorter.add(3, {"b": 1}, 0.0)

    assert (len(curve), len(shorter)) == (3, 2)
