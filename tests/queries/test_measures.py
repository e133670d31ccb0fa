"""Measures of networks side by side: which results are compared, and which differences are certain."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from archive.queries.measures import MeasuredValue, judge, measures_of, of_rows
from tests.support.stores import cells, evaluate


def row(key, value, protocol="p", *, task="t", metrics=(), **more):
    usual = {
        "evaluation": f"{key}{value}{protocol}",
        "source": None,
        "model": None,
        "hardware": None,
        "partial": False,
        "direction": "maximise",
        "objective": None,
    }
    values = {"key": key, "value": value, "task": task, "protocol": protocol, "metrics": metrics}
    return {**usual, **values, **more}


def test_values_are_compared_under_one_protocol_where_there_is_one():
    rows = [row("a", 90.0, "only a"), row("a", 70.0, "both"), row("b", 80.0, "both")]
    (measure,) = of_rows(["a", "b"], rows).measures
    assert (measure.protocol, measure.mixed) == ("both", False)
    assert [value.mean for value in measure.values] == [70.0, 80.0] and measure.best == (1,)
    # Without a common one, each network has its best recipe, and the measure says so.
    (mixed,) = of_rows(["a", "b"], [*rows[:2], row("b", 80.0, "only b")]).measures
    assert mixed.mixed and [value.protocol for value in mixed.values] == ["only a", "only b"]


def test_a_training_counts_once_and_a_pruned_one_not_beside_whole_ones():
    rows = [
        row("a", 0.5, evaluation="s#0"),
        row("a", 0.5, evaluation="other#0", source="s#0 (deleted)"),
        row("b", 0.7, evaluation="s#1"),
        row("b", 0.9, evaluation="s#2", partial=True),
    ]
    (measure,) = of_rows(["a", "b"], rows).measures
    assert [(value.mean, value.trainings) for value in measure.values] == [(0.5, 1), (0.7, 1)]


def test_speeds_are_apart_by_device_and_size_and_costs_come_last():
    def speed(key, value, protocol):
        metrics = [["samples_per_second", value], ["latency_ms", 1000 / value]]
        return row(key, value, protocol, task="inference", hardware="gpu", metrics=metrics)

    rows = [speed("a", 10.0, "gpu@224"), speed("b", 5.0, "gpu@224"), speed("a", 20.0, "gpu@160")]
    rows += [row("a", 1.0), row("b", 1.0)]
    costs = [{"key": "a", "params": 5, "flops": None}, {"key": "b", "params": 3, "flops": None}]
    found = of_rows(["a", "b"], rows, costs).measures
    # A speed of one network alone compares nothing.
    named = [(each.task, each.metric, each.device, each.best) for each in found]
    assert named == [
        ("t", "value", "", (0, 1)),
        ("inference", "samples_per_second", "gpu", (0,)),
        ("", "params", "", (1,)),
    ]


def test_times_on_two_devices_are_not_compared():
    def time(key, value, device):
        metrics = [["latency_ms", value]]
        latency = {"objective": "latency_ms", "direction": "minimise"}
        return row(key, value, hardware=device, metrics=metrics, **latency)

    rows = [time("a", 3.0, "cpu"), time("b", 1.0, "gpu"), time("b", 2.0, "cpu")]
    (measure,) = of_rows(["a", "b"], rows).measures
    assert (measure.device, measure.best) == ("cpu", (1,))
    assert [value.mean for value in measure.values] == [3.0, 2.0]


VALUES = st.builds(
    MeasuredValue, st.floats(-1, 1), st.just(2), st.none() | st.floats(0, 1), st.just("p")
)
OPPOSITE = {"better": "worse", "worse": "better", "equal": "equal", "unclear": "unclear"}


@given(VALUES, VALUES)
def test_a_verdict_turns_with_the_order_and_the_direction(first, second):
    verdict = judge(first, second, "maximise")
    assert judge(second, first, "maximise") == OPPOSITE[verdict]
    assert judge(first, second, "minimise") == OPPOSITE[verdict]


def test_a_difference_within_the_noise_is_not_certain():
    noisy = MeasuredValue(0.5, 3, 0.1, "p")
    assert judge(noisy, MeasuredValue(0.6, 3, 0.1, "p"), "maximise") == "unclear"
    assert judge(noisy, MeasuredValue(0.9, 3, 0.1, "p"), "maximise") == "worse"
    # A single training has more noise than the mean of three.
    assert judge(noisy, MeasuredValue(0.85, 3, 0.1, "p"), "maximise") == "worse"
    assert judge(noisy, MeasuredValue(0.85, 1, None, "p"), "maximise") == "unclear"


def test_networks_of_a_study_are_measured_in_its_objective(archive):
    evaluate(archive, [0.25, 0.75])
    keys = [cell.key for cell in cells(2)]
    (measure,) = measures_of(archive.connection, keys).measures
    assert (measure.task, measure.protocol, measure.metric) == ("digits", "digits/1", "accuracy")
    assert [value.mean for value in measure.values] == [0.25, 0.75] and measure.best == (1,)
