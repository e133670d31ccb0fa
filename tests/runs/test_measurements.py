"""Metrics in what a program prints and writes."""

import math
import os
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.errors import UsageError
from archive.runs import measurements as measurements_module
from archive.runs.measurements import (
    MOST_POINTS,
    Measurements,
    choose_objective,
    compile_pattern,
)


@pytest.mark.parametrize(
    ("line", "step", "metrics"),
    [
        ("epoch 3 | val_loss: 0.52 | lr=0.001", 3, {"val_loss": 0.52, "lr": 0.001}),
        ("step:250/1000 val_loss:3.28 train_time:41ms", 250, {"val_loss": 3.28}),
        ('{"step": 7, "val": {"loss": 1.5}, "name": "x"}', 7, {"val/loss": 1.5}),
        ("Epoch [4] acc = 93.5", 4, {"acc": 93.5}),
        ("accuracy=.5", None, {"accuracy": 0.5}),
        ("loss: 1e-3, val/acc: -2.", None, {"loss": 1e-3, "val/acc": -2.0}),
        ("at 12:30:05 the file http://host:80/x opened", None, {}),
        ("accuracy: 93%", None, {}),
        ("{'not': json", None, {}),
        ("\x1b[1mepoch 2\x1b[0m loss: 0.5", 2, {"loss": 0.5}),
        ("step 1 loss=3\rstep 1 loss=2", 1, {"loss": 2.0}),
        ("\0x: 5", None, {}),
        ("{'loss': 2.5, 'epoch': 3, 'name': 'x'}", 3, {"loss": 2.5}),
        ('{"flag": true}', None, {}),
        ('{"step": 7, "epoch": 1, "loss": 2}', 7, {"loss": 2.0}),
        ('{"step": 7, "epoch": 0.5, "loss": 2}', 7, {"loss": 2.0}),
        ('{"step": NaN, "loss": 2}', None, {"loss": 2.0}),
        ('{"step": Infinity, "loss": 2}', None, {"loss": 2.0}),
        ('{"step": 1e300, "loss": 2}', None, {"loss": 2.0}),
        (f'{{"loss": 1{"0" * 400}, "acc": 1}}', None, {"acc": 1.0}),
        (f"step {'1' * 5000} loss: 2", None, {"loss": 2.0}),
        ('{"a":' * 5000 + "1" + "}" * 5000, None, {}),
        # Digits that are tried in every part would take an hour.
        (f"x={'1' * 60_000}z", None, {}),
        (f'{{"{"x" * 500}": 1, "": 1, "\\ud800": 1}}', None, {}),
    ],
)
def test_a_line_has_metrics_and_a_step(line, step, metrics):
    measurements = Measurements()
    measurements.read_line(line)
    assert measurements.latest == metrics
    assert measurements.points == ({} if step is None else {step: metrics})


def test_a_value_that_is_no_number_is_no_result_but_a_point():
    measurements = Measurements()
    measurements.read_line("epoch 1 loss: 0.5")
    measurements.read_line("epoch 2 loss: nan")
    assert measurements.result() == {}
    assert measurements.curve()["loss"][0] == 0.5
    assert math.isnan(measurements.curve()["loss"][1])


@pytest.mark.parametrize(
    ("pattern", "line", "metrics"),
    [
        (r"val=(?P<val_loss>\S+)", "val=0.25;", {}),
        (r"val=(?P<val_loss>[\d.]+)", "val=0.25;", {"val_loss": 0.25}),
        (r"(?P<name>\w+) is (?P<value>[\d.]+)", "acc is 0.9, loss is 2", {"acc": 0.9, "loss": 2.0}),
    ],
)
def test_a_pattern_of_the_user(pattern, line, metrics):
    measurements = Measurements(compile_pattern(pattern))
    measurements.read_line(line)
    assert measurements.latest == metrics


@pytest.mark.parametrize("pattern", ["(", "no group", "(?P<name>x)", "(?P<step>1)"])
def test_a_pattern_without_a_use_is_refused(pattern):
    with pytest.raises(UsageError, match="--metrics"):
        compile_pattern(pattern)


@given(st.integers(1, 5000), st.integers(1, 1000))
def test_a_long_curve_is_thinned_evenly(count, distance):
    measurements = Measurements()
    for number in range(count):
        measurements.add(number * distance, {"loss": float(number)})

    steps = measurements.curve()["epoch"]
    assert min(count, MOST_POINTS // 2) <= len(steps) <= MOST_POINTS
    gaps = {later - earlier for earlier, later in pairwise(steps)}
    assert len(gaps) <= 1
    assert measurements.latest == {"loss": count - 1.0}


def test_a_metric_of_few_steps_stays_whole_beside_one_of_many():
    measurements = Measurements()
    for step in range(50_000):
        measurements.add(step, {"loss": 1.0})
        if step % 500 == 499:
            measurements.add(step, {"val": float(step)})

    curve = measurements.curve()
    assert len(curve["epoch"]) <= MOST_POINTS + 100
    assert [value for value in curve["val"] if value == value] == list(range(499, 50_000, 500))


def test_many_metrics_with_steps_of_their_own_are_bounded():
    measurements = Measurements()
    for step in range(40_000):
        measurements.add(step, {f"metric {step % 100}": 1.0})

    assert len(measurements.points) <= 6 * MOST_POINTS


def test_a_file_of_lines_is_read_whatever_its_length(tmp_path, monkeypatch):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1, "first": 1}\n' + '{"step": 2, "loss": 3}\n' * 100)
    monkeypatch.setattr(measurements_module, "MOST_LINES_BYTES", 200)
    measurements = Measurements()
    measurements.read_file(path)
    assert measurements.latest == {"loss": 3.0}


@pytest.mark.parametrize("name", ["metrics.json", "metrics.jsonl"])
def test_a_pipe_with_the_name_of_a_file_is_not_waited_for(tmp_path, name):
    os.mkfifo(tmp_path / name)
    measurements = Measurements()
    measurements.read_file(tmp_path / name)
    assert measurements.latest == {}


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["train_loss", "val_loss", "val_acc"], ("val_loss", "minimise")),
        (["acc", "test_acc", "train_loss"], ("test_acc", "maximise")),
        (["lr", "seconds"], None),
        (["val_bpb"], ("val_bpb", "minimise")),
    ],
)
def test_the_metric_that_a_run_is_judged_by(names, chosen):
    assert choose_objective(names) == chosen


@given(st.text(max_size=200))
def test_no_line_stops_a_run(line):
    Measurements().read_line(line)
