"""Spare processes: a trial in one has the result of any trial, and a lost one costs nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from archive.trainer.recipes.source import RecipeSource
from archive.trainer.tasks import registry
from archive.trainer.trial import spare
from archive.trainer.trial.messages import TrialFinished
from archive.trainer.trial.process import TrialProcess
from archive.trainer.trial.spec import TrialSpec
from tests.support import wait_until
from tests.support.networks.nets import TINY_MLP
from tests.trainer.trial.test_process import told


@pytest.fixture
def spec(tmp_path):
    task = registry.get("diabetes")
    return TrialSpec(
        TINY_MLP, task, replace(task.protocol("diabetes/1"), epochs=2), 1, "cpu", 1, tmp_path
    )


@pytest.fixture
def ready():
    """The spare of the CPU, once it waits for a trial."""
    spare.prepare("cpu")
    mine = spare._spares["cpu", None]
    wait_until(mine.connection.poll, 60.0, "a spare")
    yield mine
    spare.discard()


def test_trial_in_a_spare_has_the_result_of_any_trial(spec, ready):
    spare.prepare("cpu")
    trials = [TrialProcess(spec), TrialProcess(spec)]
    assert trials[0].pid == ready.process.pid != trials[1].pid
    (*_, first), (*_, second) = (told(trial) for trial in trials)
    assert first.result.metrics["valid_mse"] == second.result.metrics["valid_mse"]
    assert first.result.curve["train_loss"] == second.result.curve["train_loss"]
    wait_until(lambda: not ready.process.is_alive(), 10.0, "the end of the process")


def test_lost_spare_costs_no_trial(spec, ready):
    ready.process.kill()
    ready.process.join(10.0)
    trial = TrialProcess(spec)
    assert trial.pid != ready.process.pid
    assert isinstance(told(trial)[-1], TrialFinished)
    assert not spare._spares


def test_spare_without_its_device_ends_in_order(spec):
    spec = replace(spec, device="cuda:99")
    spare.prepare_next(spec)
    process = spare._spares["cuda:99", None].process
    process.join(60.0)
    assert process.exitcode == 0
    assert spare.take(spec) is None
    assert not spare._spares


def test_other_recipes_have_no_spares(spec, ready):
    """They may fork processes with CUDA, which a process connected to a GPU must not."""
    other = replace(spec, recipe=RecipeSource("mine", "tests.support.recipes:depth"))
    spare.prepare_next(replace(other, device="cuda:99"))
    assert spare.take(other) is None
    assert list(spare._spares) == [("cpu", None)]
