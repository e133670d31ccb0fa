"""Trials on a GPU in spare processes: each has a separate process, whose context was there
before."""

from __future__ import annotations

import time

import pytest

from archive.trainer.trial import spare
from archive.trainer.trial.messages import EpochReport, TrialFinished
from archive.trainer.trial.process import TrialProcess
from archive.trainer.trial.spec import TrialSpec
from tests.gpu.problems import SMALL, patterns


@pytest.fixture(autouse=True)
def nothing_left():
    yield
    spare.discard()


def finished(trial):
    messages = []
    try:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and not (
            messages and not isinstance(messages[-1], EpochReport)
        ):
            trial.connection.poll(0.1)
            messages += trial.messages()
    finally:
        trial.kill()

    return messages[-1]


def test_second_trial_runs_in_the_spare(tmp_path):
    task = patterns(epochs=2)
    spec = TrialSpec(SMALL, task, task.protocols[0], 1, "cuda", 1, tmp_path)
    first = finished(TrialProcess(spec))
    prepared = spare._spares["cuda", None]
    assert prepared.connection.poll(60.0)
    trial = TrialProcess(spec)
    assert trial.pid == prepared.process.pid
    second = finished(trial)
    assert isinstance(first, TrialFinished) and isinstance(second, TrialFinished), (first, second)
    assert second.result.value == pytest.approx(first.result.value, abs=0.05)
    assert second.result.environment["cuda_graphs"] == 2
