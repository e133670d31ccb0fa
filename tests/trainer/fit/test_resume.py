"""Interrupted trainings: resumed with the same result to the last bit, or started again with a
reason in the log."""

from __future__ import annotations

import dataclasses
import logging

import numpy as np
import pytest
import torch

from archive.errors import TrainingError, UsageError, WeightsError
from archive.trainer.fit.train import fit, train
from archive.trainer.nn import builders
from archive.trainer.protocols.networks import NetworkForm
from archive.trainer.recipes.base import Resources
from archive.trainer.recipes.context import TrialContext
from archive.trainer.recipes.run import Cancelled, run
from archive.trainer.storage import checkpoints
from archive.trainer.tasks import registry
from tests.support.networks.nets import TINY_CNN, TINY_MLP, net
from tests.support.strategies import relabelled
from tests.trainer.fit.test_train import BRANCHES, same, short

DIABETES = registry.get("diabetes")
DIGITS = registry.get("digits")
PLAIN = short("diabetes", epochs=4)
CASES = {
    "adamw": (DIABETES, TINY_MLP, PLAIN, {}),
    "sgd, channels last, branches": (DIGITS, BRANCHES, short("digits", epochs=2), {}),
    "dropout, norms": (
        DIGITS,
        TINY_CNN,
        short("digits", epochs=2),
        {"dropout": [0.2, 0.0, 0.4], "max_norm": 1.0},
    ),
    "one optimiser a layer": (
        DIABETES,
        TINY_MLP,
        PLAIN,
        {"learning_rate": [1e-3, 2e-3, 1e-3], "dropout": 0.1},
    ),
    "augmented, short epochs": (
        DIGITS,
        TINY_CNN,
        short(
            "digits", epochs=6, epoch_steps=5, augmentation="shift-flip", convergence="threshold"
        ),
        {},
    ),
    "no momentum": (
        DIABETES,
        TINY_MLP,
        short("diabetes", optimiser="sgd", momentum=0.0, schedule="constant"),
        {},
    ),
}


def leave(path, step, *asked, device="cpu", **options):
    """Train until the trial is told to stop after its k-th step."""
    trial = TrialContext(
        *asked, checkpoint=path, checkpoint_seconds=1e9, resources=Resources((device,)), **options
    )
    due = trial.checkpoint.due
    taken = iter(range(1, step + 1))

    def counted():
        if next(taken) == step:
            trial.cancel()

        return due()

    trial.checkpoint.due = counted
    return run(fit, trial)


def steps_of(task, protocol):
    return protocol.epochs * (protocol.epoch_steps or -(-protocol.train // protocol.batch))


@pytest.mark.parametrize("case", CASES)
def test_resumed_training_equals_an_uninterrupted_one(tmp_path, case):
    task, architecture, protocol, hyperparameters = CASES[case]
    rng = np.random.default_rng(len(case))

    options = {"seed": 1, "hyperparameters": hyperparameters}
    whole = train(architecture, task, protocol, **options)
    steps = whole.epochs * steps_of(task, protocol) // protocol.epochs
    path = tmp_path / "a.checkpoint"
    # The last step of an epoch, and one that is neither, are among them.
    first = steps // protocol.epochs
    taken = 0
    for stop in (first, *(int(rng.integers(1, max(2, steps // 3))) for _ in range(3))):
        if taken + stop >= steps:
            break

        taken += stop
        with pytest.raises(Cancelled) as left:
            leave(path, stop, architecture, task, protocol, **options)

        assert left.value.saved
        assert checkpoints.path_of(tmp_path, "a") == path

    resumed = train(architecture, task, protocol, checkpoint=path, **options)
    assert resumed.resumed >= 2
    assert same(resumed, whole)
    assert list(resumed.curve) == list(whole.curve)
    assert resumed.weights.keys() == whole.weights.keys()


def test_seconds_add_up(tmp_path):
    path = tmp_path / "a.checkpoint"
    with pytest.raises(Cancelled):
        leave(path, 20, TINY_MLP, DIABETES, PLAIN)

    job = checkpoints._note(path.read_bytes()[len(checkpoints._MAGIC) + checkpoints._DIGEST :])[
        "job"
    ]
    state = checkpoints.load(path, job)
    later = {**state.metadata, "trial": {**state.metadata["trial"], "seconds": 1000.0}}
    checkpoints.save(path, job, checkpoints.TrainingCheckpoint(later, state.tensors))
    outcome = train(TINY_MLP, DIABETES, PLAIN, checkpoint=path)
    assert 1000.0 < outcome.seconds < 1060.0
    seconds = outcome.curve["seconds"]
    assert seconds == sorted(seconds)
    assert seconds[1] < 1000.0 < seconds[2]


@pytest.fixture
def interrupted(tmp_path):
    """The file of a training that was interrupted amid its third epoch."""
    path = tmp_path / "a.checkpoint"
    with pytest.raises(Cancelled):
        leave(path, 20, TINY_MLP, DIABETES, PLAIN)

    return path


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"architecture": net("mlp", "relu/16 tanh/9 linear")}, "another architecture"),
        ({"protocol": dataclasses.replace(PLAIN, learning_rate=0.5)}, "another protocol"),
        ({"seed": 2}, "another seed: 0, not 2"),
        (
            {"hyperparameters": {"dropout": 0.1}},
            "another hyperparameters: {}, not {'dropout': 0.1}",
        ),
        (
            {"task": dataclasses.replace(DIABETES, name="other")},
            "another task: 'diabetes', not 'other'",
        ),
        ({"precision": "bf16"}, "another precision: 'float32', not 'bf16'"),
        (
            {"task": dataclasses.replace(DIABETES, loader=lambda protocol: _shuffled(protocol))},
            "another data",
        ),
    ],
)
def test_checkpoint_of_another_training_is_refused(interrupted, caplog, changes, reason):
    asked = {"architecture": TINY_MLP, "task": DIABETES, "protocol": PLAIN, **changes}
    anew = train(**asked)
    with caplog.at_level(logging.WARNING):
        found = train(**asked, checkpoint=interrupted)

    assert "starts from scratch" in caplog.text
    assert reason in caplog.text
    assert found.resumed == 0
    assert same(found, anew)


def _shuffled(protocol):
    splits = DIABETES.load(protocol)
    part = dataclasses.replace(splits.train, targets=splits.train.targets[::-1].copy())
    return dataclasses.replace(splits, train=part)


def test_relabelled_network_resumes(tmp_path):
    path = tmp_path / "a.checkpoint"
    protocol = short("digits", epochs=1)
    with pytest.raises(Cancelled):
        leave(path, 3, BRANCHES, DIGITS, protocol)

    assert train(relabelled(BRANCHES, 3), DIGITS, protocol, checkpoint=path).resumed == 1


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_rung_is_a_prefix_of_the_whole_and_resumes(tmp_path, limit):
    path = tmp_path / "a.checkpoint"
    whole = train(TINY_MLP, DIABETES, PLAIN)
    rung = train(TINY_MLP, DIABETES, PLAIN, epochs=limit, checkpoint=path)
    assert (rung.ended, rung.epochs) == ("rung", limit)
    for name in ("train_loss", "valid_loss", "valid_mse"):
        assert rung.curve[name] == whole.curve[name][:limit]

    assert rung.value == min(whole.curve["valid_mse"][:limit])
    steps = []
    promoted = train(TINY_MLP, DIABETES, PLAIN, checkpoint=path, on_epoch=steps.append)
    assert promoted.ended == "epochs"
    assert same(promoted, whole)
    assert [metrics["epoch"] for metrics in steps] == [1.0, 2.0, 3.0, 4.0]


def test_checkpoint_beyond_the_requested_rung_is_ignored(interrupted):
    asked = train(TINY_MLP, DIABETES, PLAIN, epochs=1, checkpoint=interrupted)
    assert (asked.epochs, asked.resumed) == (1, 0)


def test_trial_that_converged_at_its_rung_ends_like_the_whole(tmp_path):
    path = tmp_path / "a.checkpoint"
    still = short("diabetes", epochs=9, patience=1, optimiser="sgd", learning_rate=1e-12)
    outcome = train(TINY_MLP, DIABETES, still, epochs=8, checkpoint=path)
    assert outcome.ended == "patience"
    assert same(outcome, train(TINY_MLP, DIABETES, still))


@pytest.mark.parametrize("epochs", [0, -1, 5])
def test_a_rung_must_be_one_of_the_protocols_epochs(epochs):
    with pytest.raises(UsageError, match=f"between 1 and the 4 of diabetes/1, got {epochs}"):
        train(TINY_MLP, DIABETES, PLAIN, epochs=epochs)


def weights(architecture=TINY_MLP, seed=5):
    return builders.build(
        architecture, NetworkForm((10,), 1, "regression", False), seed
    ).state_dict()


def test_training_starts_from_initial_weights():
    still = dataclasses.replace(PLAIN, epochs=1, learning_rate=1e-12, weight_decay=0.0)
    outcome = train(
        TINY_MLP.canonical, DIABETES, still, initial=weights(), inherited={"from": "parent"}
    )
    assert outcome.inherited == {"from": "parent"}
    for name, tensor in weights().items():
        assert torch.allclose(outcome.weights[name], tensor, atol=1e-6)


def test_unloadable_initial_weights_do_not_fail_the_trial(caplog):
    def none():
        raise WeightsError("cannot read weights from /nowhere")

    with caplog.at_level(logging.WARNING):
        outcome = train(TINY_MLP, DIABETES, PLAIN, initial=none, inherited={"from": "parent"})

    assert "starts from the seed reason='cannot read weights from /nowhere'" in caplog.text
    assert outcome.inherited == {"error": "cannot read weights from /nowhere"}
    assert same(outcome, train(TINY_MLP, DIABETES, PLAIN))


def test_weights_of_another_network_are_refused():
    with pytest.raises(
        TrainingError, match="weights to start from do not fit the network: size mismatch"
    ):
        train(TINY_MLP, DIABETES, PLAIN, initial=weights(net("mlp", "relu/16 tanh/9 linear")))


def test_resumed_training_keeps_its_initial_weights(tmp_path):
    path = tmp_path / "a.checkpoint"
    whole = train(TINY_MLP, DIABETES, PLAIN, initial=weights())
    with pytest.raises(Cancelled):
        leave(path, 11, TINY_MLP, DIABETES, PLAIN, initial=weights(), inherited={"from": "p"})

    def other():
        raise AssertionError("the state has weights")

    resumed = train(
        TINY_MLP, DIABETES, PLAIN, initial=other, inherited={"from": "q"}, checkpoint=path
    )
    assert same(resumed, whole)
    assert resumed.inherited == {"from": "p"}


def test_unwritable_checkpoint_does_not_fail_the_training(tmp_path, caplog):
    (tmp_path / "checkpoints").write_text("a file where the folder should be")
    path = tmp_path / "checkpoints" / "a.checkpoint"
    with caplog.at_level(logging.WARNING):
        outcome = run(
            fit, TrialContext(TINY_MLP, DIABETES, PLAIN, checkpoint=path, checkpoint_seconds=0.0)
        )

    assert "checkpoint not saved reason=" in caplog.text
    assert same(outcome, train(TINY_MLP, DIABETES, PLAIN))


def test_training_without_a_checkpoint_file_can_be_cancelled():
    with pytest.raises(Cancelled) as left:
        leave(None, 20, TINY_MLP, DIABETES, PLAIN)

    assert (left.value.saved, left.value.epoch) == (False, 2)
