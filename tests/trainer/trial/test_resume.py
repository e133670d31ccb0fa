"""Trials that are killed, drained, or hang, in separate processes: lost work, messages, and kept
checkpoints."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import signal
import time

import numpy as np
import psutil
import pytest

from archive.queue.causes import Cause
from archive.trainer.recipes.source import RecipeSource
from archive.trainer.storage import checkpoints, file_names, weights_file
from archive.trainer.storage.file_names import TAIL_BYTES
from archive.trainer.tasks import registry
from archive.trainer.trial import log as triallog
from archive.trainer.trial.messages import EpochReport, TrialFailed, TrialFinished, TrialInterrupted
from archive.trainer.trial.process import TrialProcess
from archive.trainer.trial.spec import TrialSpec
from tests.support import WHOLE, faulty, repeatable, wait_until, whole
from tests.support.networks.nets import TINY_CNN, TINY_MLP
from tests.trainer.fit.test_train import short
from tests.trainer.trial.test_process import told

DIABETES = registry.get("diabetes")
LONG = dataclasses.replace(DIABETES.protocol(), name="long/1", epochs=100_000, patience=100_000)


def trial_spec(folder, task=DIABETES, protocol=None, architecture=TINY_MLP, **changes):
    """A specification with all files in one folder."""
    return TrialSpec(
        architecture,
        task,
        protocol or task.protocol(),
        1,
        "cpu",
        1,
        folder / "weights",
        {"proposal": "s#1"},
        **{
            "proposal": "s#1",
            "checkpoint_folder": folder / "checkpoints",
            "log": file_names.trial_log_path(folder, "s#1"),
            **changes,
        },
    )


def until(trial, enough):
    """The messages of a trial, until they are enough or it is over."""
    messages = []

    def came():
        messages.extend(trial.messages())
        return enough(messages) or (messages and not isinstance(messages[-1], EpochReport))

    wait_until(came, 60, "news of the trial")
    return messages


def after_epochs(count):
    return lambda messages: sum(not message.resumed for message in messages) >= count


def without_seconds(result):
    curve = {name: values for name, values in result.curve.items() if name != "seconds"}
    return result.value, repeatable(result.metrics), curve, result.epochs


@pytest.mark.parametrize(
    ("task", "architecture", "protocol", "hyperparameters"),
    [
        ("diabetes", TINY_MLP, short("diabetes", epochs=9), {"dropout": 0.1}),
        whole("digits", TINY_CNN, short("digits", epochs=6, augmentation="shift"), {}),
    ],
)
def test_repeatedly_killed_trial_has_the_same_result(
    tmp_path, task, architecture, protocol, hyperparameters
):
    rng = np.random.default_rng(0)
    spec = trial_spec(
        tmp_path, registry.get(task), protocol, architecture, hyperparameters=hyperparameters
    )
    *_, undisturbed = told(
        TrialProcess(dataclasses.replace(spec, checkpoint_folder=None, log=None))
    )
    spec = dataclasses.replace(spec, checkpoint_seconds=0.0, weights_folder=tmp_path / "others")
    for _ in range(4 if WHOLE else 2):
        trial = TrialProcess(spec)
        until(trial, after_epochs(int(rng.integers(1, protocol.epochs // 3))))
        time.sleep(float(rng.uniform(0, 0.01)))
        os.kill(trial.pid, signal.SIGKILL)
        trial.kill()

    last = TrialProcess(spec)
    *epochs, finished = told(last)
    assert isinstance(finished, TrialFinished)
    found = finished.result
    expected = undisturbed.result
    assert without_seconds(found) == without_seconds(expected)
    assert found.environment["resumed"] >= 1
    ours, theirs = (weights_file.load(each.weights).weights for each in (found, expected))
    assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)
    # What was done before is told again, so that whoever listens has the whole curve.
    assert [epoch.metrics["valid_loss"] for epoch in epochs] == found.curve["valid_loss"]
    flags = [epoch.resumed for epoch in epochs]
    assert flags == sorted(flags, reverse=True) and not flags[-1]
    assert found.seconds >= found.curve["seconds"][-1] >= found.curve["seconds"][0]
    # The state is there until the result is safe.
    assert checkpoints.path_of(tmp_path / "checkpoints", "s#1").exists()


def test_interrupted_trial_loses_nothing(tmp_path):
    first = TrialProcess(trial_spec(tmp_path, protocol=LONG))
    told_before = until(first, after_epochs(3))
    first.interrupt()
    first.interrupt()
    *more, last = told(first)
    assert isinstance(last, TrialInterrupted) and last.saved
    assert last.epoch == len(told_before) + len(more)
    again = TrialProcess(trial_spec(tmp_path, protocol=LONG))
    messages = until(again, after_epochs(1))
    again.kill()
    resumed = [message for message in messages if message.resumed]
    assert [message.metrics for message in resumed] == [
        message.metrics for message in [*told_before, *more]
    ]


def test_trial_without_a_checkpoint_folder_can_be_interrupted(tmp_path):
    trial = TrialProcess(trial_spec(tmp_path, protocol=LONG, checkpoint_folder=None))
    until(trial, after_epochs(1))
    trial.interrupt()
    last = told(trial)[-1]
    assert isinstance(last, TrialInterrupted) and not last.saved


def test_trial_that_reads_its_data_ends_at_once(tmp_path):
    trial = TrialProcess(trial_spec(tmp_path, faulty.faulty(faulty.hangs)))
    trial.interrupt()
    (last,) = told(trial)
    assert last == TrialInterrupted(saved=False, epoch=0)


def test_interrupting_a_dead_trial_is_no_error(tmp_path):
    trial = TrialProcess(trial_spec(tmp_path, faulty.faulty(faulty.exits)))
    process = psutil.Process(trial.pid)
    wait_until(
        lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE, what="its end"
    )
    trial.interrupt()
    (last,) = told(trial)
    assert isinstance(last, TrialFailed) and "status 7" in last.reason


def test_rung_keeps_its_checkpoint_for_the_next(tmp_path):
    protocol = short("diabetes", epochs=4)
    first = told(TrialProcess(trial_spec(tmp_path, protocol=protocol, epochs=2)))[-1].result
    assert (first.epochs, first.environment["ended"]) == (2, "rung")
    *epochs, last = told(TrialProcess(trial_spec(tmp_path, protocol=protocol)))
    assert [epoch.resumed for epoch in epochs] == [True, True, False, False]
    *_, whole = told(TrialProcess(trial_spec(tmp_path, protocol=protocol, checkpoint_folder=None)))
    assert without_seconds(last.result) == without_seconds(whole.result)
    assert last.result.curve["valid_mse"][:2] == first.curve["valid_mse"]


RECIPE = """
def fit(trial):
    saved = trial.checkpoint.load()
    for epoch in range(1 + (saved.state["epoch"] if saved else 0), trial.epochs + 1):
        stop = trial.report(epoch, {"valid_mse": RATE * epoch})
        trial.checkpoint.save({"epoch": epoch})
        if stop:
            break
"""


@pytest.mark.parametrize("edited", [False, True])
def test_a_training_has_one_version_of_its_recipe(tmp_path, edited):
    file = tmp_path / "counting.py"
    spec = trial_spec(
        tmp_path,
        protocol=short("diabetes", epochs=4),
        recipe=RecipeSource("mine", f"{file}:fit", "recipes.toml"),
    )
    file.write_text(f"RATE = 1.0\n{RECIPE}")
    told(TrialProcess(dataclasses.replace(spec, epochs=2)))
    if edited:
        file.write_text(f"RATE = 10.0\n{RECIPE}")

    digest = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    *_, last = told(TrialProcess(spec))
    assert last.result.curve["valid_mse"] == (
        [10.0, 20.0, 30.0, 40.0] if edited else [1.0, 2.0, 3.0, 4.0]
    )
    assert last.result.environment.get("resumed", 0) == (0 if edited else 1)
    assert last.result.environment["recipe_version"] == f"sha256:{digest}"
    assert (
        "is of a training with another recipe_version: 'sha256:" in spec.log.read_text()
    ) is edited


@pytest.mark.parametrize(("before", "resumed"), [("0123", 1), ("4567", 0), ("", 1)])
def test_the_checkpoint_of_a_deleted_study_is_not_resumed_by_one_of_its_name(
    tmp_path, before, resumed
):
    """Its proposals have the same ids.

    A release that recorded no run left checkpoints without one.
    """
    file = tmp_path / "counting.py"
    file.write_text(f"RATE = 1.0\n{RECIPE}")
    spec = trial_spec(
        tmp_path,
        protocol=short("diabetes", epochs=4),
        recipe=RecipeSource("mine", f"{file}:fit", "recipes.toml"),
    )
    told(TrialProcess(dataclasses.replace(spec, epochs=2, run=before)))
    *_, last = told(TrialProcess(dataclasses.replace(spec, run="0123")))
    assert len(last.result.curve["valid_mse"]) == 4
    assert last.result.environment.get("resumed", 0) == resumed
    assert ("another run: '4567', not '0123'" in spec.log.read_text()) is not bool(resumed)


def test_diverged_trial_leaves_no_checkpoint(tmp_path):
    protocol = short("diabetes", optimiser="sgd", learning_rate=1e6, warmup=0.0, epochs=5)
    (*_, last) = told(TrialProcess(trial_spec(tmp_path, protocol=protocol, checkpoint_seconds=0.0)))
    assert isinstance(last, TrialFailed)
    assert "training diverged" in last.reason and "training diverged" in last.log_tail
    assert not list((tmp_path / "checkpoints").iterdir())


def test_log_has_a_line_for_each_attempt(tmp_path):
    spec = trial_spec(tmp_path, protocol=short("diabetes"))
    told(TrialProcess(spec))
    told(TrialProcess(spec))
    log = spec.log.read_text()
    assert log.count("attempt began proposal=s#1") == log.count("finished value=") == 2
    assert log.count("epoch=3 train_loss=") == 2


@pytest.mark.parametrize(
    ("loader", "printed"),
    [
        (faulty.segfaults, "Fatal Python error: Segmentation fault"),
        (faulty.raises, "ValueError: no such column"),
        (faulty.prints, "from native code"),
    ],
)
def test_failure_has_the_tail_of_the_log(tmp_path, loader, printed):
    (last,) = told(TrialProcess(trial_spec(tmp_path, faulty.faulty(loader))))
    assert isinstance(last, TrialFailed)
    assert printed in last.log_tail
    assert len(last.log_tail) <= TAIL_BYTES


def test_hung_trial_logs_its_stacks(tmp_path):
    trial = TrialProcess(trial_spec(tmp_path, faulty.faulty(faulty.hangs)))
    wait_until(lambda: "loading for ever" in triallog.tail(trial.spec.log), what="the hang")
    failed = trial.abandon("no progress for 5 s", Cause.STALL)
    assert failed.reason == "no progress for 5 s" and failed.retry
    assert 'faulty.py", line' in failed.log_tail and "in hangs" in failed.log_tail
    assert (
        not psutil.pid_exists(trial.pid)
        or psutil.Process(trial.pid).status() == psutil.STATUS_ZOMBIE
    )


@pytest.mark.whole
def test_a_long_epoch_is_no_hang(tmp_path, monkeypatch):
    endless = dataclasses.replace(LONG, epoch_steps=10_000_000)
    trial = TrialProcess(trial_spec(tmp_path, protocol=endless))
    last_seen = trial.last_seen
    wait_until(lambda: trial.messages() or trial.last_seen > last_seen, what="a sign of life")
    assert trial.last_seen > last_seen
    trial.interrupt()
    (last,) = told(trial)
    assert last == TrialInterrupted(saved=True, epoch=0)


def test_unwritable_log_does_not_fail_the_trial(tmp_path):
    (tmp_path / "logs").write_text("a file where the folder should be")
    *_, last = told(TrialProcess(trial_spec(tmp_path, protocol=short("diabetes"))))
    assert isinstance(last, TrialFinished)
