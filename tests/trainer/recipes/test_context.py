"""The context of a trial: reasons to stop, checkpoints, and the results of a recipe."""

from __future__ import annotations

import dataclasses
import gc
import logging
import random
import threading

import numpy as np
import pytest
import torch

from archive import spaces
from archive.errors import SettingsError, TrainingError, UsageError, WeightsError
from archive.space import Space
from archive.trainer.protocols.base import add_inheritance
from archive.trainer.recipes.base import FitResult, Stop
from archive.trainer.recipes.context import TrialContext
from archive.trainer.recipes.loading import ModelSource
from archive.trainer.recipes.run import Cancelled, run
from archive.trainer.storage import checkpoints
from archive.trainer.tasks import registry
from tests.support.networks.nets import TINY_MLP

TASK = registry.DIABETES
PROTOCOL = dataclasses.replace(TASK.protocol(), epochs=4)


def trial_of(**options) -> TrialContext:
    return TrialContext(TINY_MLP, TASK, PROTOCOL, **options)


def counting(trial):
    """A recipe that counts to the end, and saves when it is told to stop."""
    saved = trial.checkpoint.load()
    for epoch in range(1 + (saved.state["epoch"] if saved else 0), 100):
        stop = trial.report(
            epoch, {"valid_mse": 1 / epoch, "even": epoch % 2} if epoch > 1 else {"valid_mse": 1.0}
        )
        if stop:
            trial.checkpoint.save({"epoch": epoch})
            return {"valid_mse": 1 / epoch}

    raise AssertionError("nothing stopped it")


def test_a_trial_stops_after_its_epochs():
    outcome = run(counting, trial_of())
    assert (outcome.ended, outcome.epochs, outcome.value) == ("epochs", 4, 0.25)
    assert outcome.curve["epoch"] == [1.0, 2.0, 3.0, 4.0]
    assert np.array_equal(outcome.curve["even"], [np.nan, 0, 1, 0], equal_nan=True)
    assert outcome.curve["seconds"] == sorted(outcome.curve["seconds"])
    assert outcome.metrics == {"valid_mse": 0.25, "even": 0.0}


def test_what_a_recipe_does_beyond_its_rung_is_not_recorded(tmp_path, caplog):
    def deaf(trial):
        saved = trial.checkpoint.load()
        first = 1 + (saved.state["epoch"] if saved else 0)
        for epoch in range(first, 7):
            trial.report(epoch, {"valid_mse": 1 / epoch})
            trial.checkpoint.save({"epoch": epoch})

        return FitResult({"valid_mse": 1 / epoch, "first": first}, ended="patience")

    path = tmp_path / "a.checkpoint"
    rows = []
    with caplog.at_level(logging.WARNING):
        rung = run(
            deaf,
            trial_of(epochs=2, checkpoint=path, on_report=lambda row, _: rows.append(row["epoch"])),
        )

    assert (rung.ended, rung.epochs, rung.value) == ("rung", 2, 1 / 2)
    assert rung.curve["epoch"] == rows == [1.0, 2.0]
    assert caplog.text.count("continues beyond its rung") == 1
    # The whole training is as long as the recipe makes it.
    whole = run(deaf, trial_of(checkpoint=path))
    assert (whole.ended, whole.epochs, whole.value, whole.metrics["first"]) == (
        "patience",
        6,
        1 / 6,
        3.0,
    )


@pytest.mark.parametrize("remote", [False, True])
def test_a_trial_pauses_at_its_rung_and_continues(tmp_path, remote):
    path = f"memory://{tmp_path.name}/a.checkpoint" if remote else tmp_path / "a.checkpoint"
    rows = []
    rung = run(counting, trial_of(epochs=2, checkpoint=path))
    assert (rung.ended, rung.epochs, rung.resumed) == ("rung", 2, 0)
    whole = run(
        counting,
        trial_of(checkpoint=path, on_report=lambda row, resumed: rows.append((row, resumed))),
    )
    assert (whole.ended, whole.epochs, whole.resumed) == ("epochs", 4, 1)
    assert whole.curve["valid_mse"] == [1.0, 1 / 2, 1 / 3, 1 / 4]
    assert [(row["epoch"], resumed) for row, resumed in rows] == [
        (1, True),
        (2, True),
        (3, False),
        (4, False),
    ]
    assert "even" not in rows[0][0]
    assert whole.seconds > rung.curve["seconds"][-1]


def test_an_interrupted_trial_has_no_result(tmp_path):
    trial = trial_of(checkpoint=tmp_path / "a.checkpoint")

    def interrupted(trial):
        trial.cancel()
        return counting(trial)

    with pytest.raises(Cancelled) as left:
        run(interrupted, trial)

    assert (left.value.saved, left.value.epoch) == (True, 1)
    assert run(counting, trial_of(checkpoint=tmp_path / "a.checkpoint")).resumed == 1


def test_an_interruption_between_reports_is_seen():
    trial = trial_of()
    assert (trial.stop, trial.checkpoint.due()) == (None, False)
    trial.cancel()
    assert (trial.stop, trial.checkpoint.due()) == (Stop.INTERRUPTED, True)


@pytest.mark.parametrize(("last", "ended"), [(4, "epochs"), (3, "patience")])
def test_a_trial_that_has_ended_is_not_interrupted(last, ended):
    def fit(trial):
        for epoch in range(1, last + 1):
            if epoch == last:
                trial.cancel()

            trial.report(epoch, {"valid_mse": 1.0})

        return FitResult(ended="patience" if last < 4 else "")

    assert run(fit, trial_of()).ended == ended


def test_a_recipe_cannot_pretend_to_pause():
    assert (
        run(lambda trial: FitResult({"valid_mse": 1.0}, ended="rung"), trial_of()).ended
        == "finished"
    )


def test_time_without_reports_is_a_sign_of_life(monkeypatch):
    beats = []
    trial = trial_of(on_heartbeat=lambda: beats.append(1))
    assert not trial.stepping
    monkeypatch.setattr("archive.trainer.recipes.context.HEARTBEAT_SECONDS", -1.0)
    for _ in range(2):
        assert trial.stop is None

    assert not trial.checkpoint.due()
    assert (len(beats), trial.stepping) == (3, True)


def test_a_result_may_be_the_last_report():
    def fit(trial):
        trial.report(1, {"valid_mse": 2.0, "once": 1})
        trial.report(2, {"valid_mse": 3.0})

    outcome = run(fit, trial_of())
    assert (outcome.value, outcome.metrics, outcome.weights) == (
        3.0,
        {"valid_mse": 3.0, "once": 1.0},
        {},
    )


def test_the_objective_is_any_metric():
    outcome = run(counting, trial_of(objective="even"))
    assert (outcome.value, outcome.metrics["valid_mse"]) == (0.0, 0.25)
    with pytest.raises(
        TrainingError,
        match="no metric 'f1', the study's objective; the training has valid_mse, even",
    ):
        run(counting, trial_of(objective="f1"))


@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        (0.3, "must return a FitResult, metrics by name or None, got float"),
        ({"valid_mse": "0.3"}, "the metric 'valid_mse' must be a number, got str"),
        ({"valid_mse": float("nan")}, "training diverged: valid_mse is nan in the result"),
        (
            FitResult({"valid_mse": 1.0}, {"w": [1.0]}),
            "weights are tensors or arrays by name, got list as 'w'",
        ),
        (
            FitResult({"valid_mse": 1.0}, torch.nn.Linear(1, 1)),
            "mapping of names .* module.state_dict.*, got Linear",
        ),
        (
            FitResult({"valid_mse": 1.0}, None),
            "weights are a mapping of names to tensors or arrays, .* got NoneType",
        ),
        (
            FitResult({"valid_mse": 1.0}, environment={"gpu": object()}),
            "environment of a result must be JSON values",
        ),
    ],
)
def test_what_is_no_result_is_refused(returned, reason):
    with pytest.raises(TrainingError, match=reason):
        run(lambda trial: returned, trial_of())


def test_generators_begin_with_the_seed():
    def draws(trial):
        torch.rand(1)
        numbers = {"a": random.random(), "b": np.random.rand(), "c": torch.rand(1)}
        return {**numbers, "valid_mse": 1.0}

    first, again, other = (run(draws, trial_of(seed=seed)).metrics for seed in (2**32, 2**32, 1))
    assert first == again
    assert all(first[name] != other[name] for name in "abc")


def test_a_checkpoint_holds_state_tensors_and_files(tmp_path):
    folder = tmp_path / "model"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "a.bin").write_bytes(b"\0one\xff")
    (folder / "empty").write_bytes(b"")
    tied = torch.arange(3.0)
    trial = trial_of(checkpoint=tmp_path / "a.checkpoint")
    assert trial.checkpoint.load() is None
    assert trial.checkpoint.save(
        {"list": [1, 2.5, None]},
        tensors={"one": tied, "two": tied, "array": np.eye(2)},
        folder=folder,
    )
    saved = trial_of(checkpoint=tmp_path / "a.checkpoint").checkpoint.load()
    assert saved.state == {"list": [1, 2.5, None]}
    assert {name: tensor.tolist() for name, tensor in saved.tensors.items()} == {
        "one": [0, 1, 2], "two": [0, 1, 2], "array": [[1, 0], [0, 1]],
    }  # fmt: skip
    assert saved.files == {"deep/a.bin": b"\0one\xff", "empty": b""}
    assert saved.extract(tmp_path / "again").joinpath("deep", "a.bin").read_bytes() == b"\0one\xff"


def test_a_trial_may_return_to_its_best_epoch_and_keeps_its_curve(tmp_path):
    def best(trial):
        for epoch, loss in enumerate([0.5, 0.2, 0.3, 0.4], start=1):
            trial.report(epoch, {"valid_mse": loss})
            if epoch == 2:
                trial.checkpoint.save({"epoch": epoch})

        return {"valid_mse": trial.checkpoint.load().state["epoch"] / 10}

    outcome = run(best, trial_of(checkpoint=tmp_path / "a.checkpoint"))
    assert outcome.curve["valid_mse"] == [0.5, 0.2, 0.3, 0.4]
    assert (outcome.value, outcome.ended, outcome.resumed) == (0.2, "epochs", 0)


def test_a_trial_resumes_once(tmp_path):
    path = tmp_path / "a.checkpoint"
    reported = []
    before = trial_of(checkpoint=path)
    before._start -= 100
    before.report(1, {"valid_mse": 1.0})
    before.checkpoint.save({"epoch": 1})
    trial = trial_of(checkpoint=path, on_report=lambda row, resumed: reported.append(resumed))
    assert trial.checkpoint.load() == trial.checkpoint.load()
    assert (reported, trial.resumed, trial.reports) == ([True], 1, 1)
    assert 100 <= trial.seconds < 150


def test_a_trial_goes_on_during_an_upload(monkeypatch, tmp_path):
    """One upload at a time, the last one awaited where the trial stops, and none is lost."""
    written = []
    may_end = threading.Event()

    monkeypatch.setattr(
        checkpoints, "write", lambda uri, content: (may_end.wait(60), written.append(len(content)))
    )
    trial = trial_of(checkpoint=f"memory://{tmp_path.name}/a.checkpoint", checkpoint_seconds=0.0)
    slot = trial.checkpoint
    trial.report(1, {"valid_mse": 1.0})
    assert slot.due() and slot.save({"epoch": 1})
    trial.report(2, {"valid_mse": 0.5})
    assert not slot.due() and not slot.saved
    trial.cancel()
    assert slot.due()
    threading.Timer(0.05, may_end.set).start()
    assert slot.save({"epoch": 2, "more": "x" * 1000})
    assert slot.saved and len(written) == 2 and written[0] < written[1]


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"state": {"a": object()}}, "state of a checkpoint must be JSON values"),
        ({"tensors": {"a": 1.0}}, "weights are tensors or arrays by name, got float as 'a'"),
    ],
)
def test_what_no_checkpoint_can_hold_is_refused(tmp_path, asked, reason):
    with pytest.raises(TrainingError, match=reason):
        trial_of(checkpoint=tmp_path / "a.checkpoint").checkpoint.save(**asked)


def test_a_checkpoint_belongs_to_its_trial(tmp_path, caplog):
    path = tmp_path / "a.checkpoint"
    trial_of(checkpoint=path).checkpoint.save({"epoch": 1})
    with caplog.at_level(logging.WARNING):
        assert trial_of(checkpoint=path, seed=1).checkpoint.load() is None

    assert "another seed: 0, not 1" in caplog.text
    assert trial_of(checkpoint=path).checkpoint.load({"data": "other"}) is None
    assert trial_of(checkpoint=path).checkpoint.load().state == {"epoch": 1}


def test_inherited_weights_are_recorded_once_they_are_taken():
    weights = {"w": torch.zeros(1)}
    trial = trial_of(initial=lambda: weights, inherited={"from": "p"})
    assert trial.inherited == {}
    assert trial.inherited_weights() is weights
    assert trial.inherited == {"from": "p"}
    assert trial_of().inherited_weights() is None


def test_the_rules_for_inheriting_networks_end_with_unloadable_weights():
    def none():
        raise WeightsError("gone")

    assert trial_of(initial=none).inherited_weights() is None
    with pytest.raises(WeightsError, match="gone"):
        TrialContext(TINY_MLP, TASK, add_inheritance(PROTOCOL), initial=none).inherited_weights()


@pytest.mark.parametrize("epochs", [0, 5])
def test_a_rung_is_one_of_the_protocols_epochs(epochs):
    with pytest.raises(UsageError, match=f"between 1 and the 4 of diabetes/1, got {epochs}"):
        trial_of(epochs=epochs)


def test_a_trial_has_data_a_module_and_a_scratch_folder(tmp_path):
    trial = trial_of(seed=3)
    assert len(trial.data().train) == PROTOCOL.train
    inputs = torch.from_numpy(trial.data().valid.inputs)
    first, again = (trial.module()(inputs) for _ in range(2))
    assert torch.equal(first, again)
    folder = trial.scratch
    assert folder.is_dir() and trial.scratch == folder
    del trial
    gc.collect()
    assert not folder.exists()
    assert trial_of(scratch=tmp_path).scratch == tmp_path


def test_a_configuration_has_the_module_of_its_model(tmp_path):
    space = spaces.get("parameters", parameters=Space(width=[2, 4], lr=[0.1]))
    network = space.of_names({"width": 4, "lr": 0.1})
    model = tmp_path / "nets_of_a_trial.py"
    model.write_text(
        "import torch\ndef build(width, bias=True):\n    return torch.nn.Linear(10, width, bias)\n"
    )
    source = ModelSource("nets.py:build", f"{model}:build")
    trial = TrialContext(network, TASK, PROTOCOL, model=source, seed=3)
    weight = trial.module().weight
    assert weight.shape == (4, 10)
    assert torch.equal(weight, trial.module().weight)
    assert trial.built
    with pytest.raises(SettingsError, match=r"names no model .* in recipes\.toml"):
        TrialContext(network, TASK, PROTOCOL).module()
