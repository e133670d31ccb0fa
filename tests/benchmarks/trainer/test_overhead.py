"""The benchmark of trials: both loops do the same work, and what is asked for is measured."""

from __future__ import annotations

import logging

import pytest
import torch

from archive.errors import SettingsError
from archive.trainer.tasks import registry
from tests.benchmarks.trainer import trial_start
from tests.benchmarks.trainer.overhead import compare, measure, ours, plain
from tests.support.networks.nets import TINY_CNN, TINY_MLP
from tests.trainer.fit.test_train import short

CPU = torch.device("cpu")


@pytest.mark.parametrize(("task", "architecture"), [("digits", TINY_CNN), ("diabetes", TINY_MLP)])
def test_the_plain_loop_takes_the_same_steps(tmp_path, task, architecture):
    protocol = short(task)
    runs = [
        plain(architecture, registry.get(task), protocol, CPU),
        ours(architecture, registry.get(task), protocol, CPU, tmp_path / "a.state"),
    ]
    assert len(runs[0].losses) == protocol.epochs
    assert runs[0].losses == pytest.approx(runs[1].losses, rel=1e-4)
    assert all(run.seconds > 0 for run in runs)


def test_a_comparison_has_its_figures(tmp_path):
    figures = compare("diabetes", registry.get("diabetes"), TINY_MLP, CPU, 1, 0.01, tmp_path)
    rate, overhead, other, state = figures
    assert rate.value > 0 and rate.reference > 0
    # one turn: its quotient
    assert overhead.value == pytest.approx(100 * (rate.reference / rate.value - 1))
    assert overhead.goal == "< 3"
    assert "bf16" in other.name
    assert 0 < state.value < 60_000
    assert not logging.getLogger("archive.trainer").handlers


def test_trial_start_has_figures_for_process_and_data(tmp_path):
    first, further, inside = trial_start.measure(CPU, tmp_path)
    assert 0 < further.value <= first.value + inside.value
    assert inside.value > 0


def test_missing_device_is_refused_before_any_measurement():
    with pytest.raises(SettingsError, match="the device 'cuda:99' cannot be used"):
        list(measure(device="cuda:99"))
