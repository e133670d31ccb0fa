"""Hyperparameters of a proposal: read, refused, and seen to change the training."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from archive.architecture.graph import Architecture, Layer
from archive.errors import UnknownNameError, UsageError
from archive.trainer.fit.hyperparameters import Hyperparameters
from archive.trainer.fit.train import train
from archive.trainer.nn import builders
from archive.trainer.nn.base import applied_layers
from archive.trainer.nn.dropout import InputDropout
from archive.trainer.protocols.networks import NetworkForm
from archive.trainer.tasks import registry
from archive.trainer.trial.messages import TrialFailed, TrialFinished
from archive.trainer.trial.process import TrialProcess
from tests.support.networks.nets import TINY_CNN
from tests.trainer.trial.test_process import job, told

CHAIN = Architecture(
    "mlp",
    [Layer("ip"), Layer("relu", 16), Layer("relu", 8), Layer("linear"), Layer("op")],
    [(0, 1), (1, 2), (2, 3), (3, 4)],
)


@pytest.fixture(scope="module")
def diabetes():
    """The task with a short protocol: what changes a training changes its first steps."""
    task = registry.get("diabetes")
    return replace(task, protocols=(replace(task.protocol(), epochs=6),))


def trained(task, **hyperparameters):
    return train(CHAIN, task, seed=1, hyperparameters=hyperparameters)


@pytest.fixture(scope="module")
def plain(diabetes):
    return trained(diabetes)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"learning_rate": 0}, "learning_rate must be > 0, got 0"),
        ({"learning_rate": float("nan")}, "learning_rate must be > 0, got nan"),
        ({"weight_decay": -1.0}, "weight_decay must be >= 0, got -1.0"),
        ({"dropout": 1.0}, r"dropout must be in \[0, 1\), got 1.0"),
        ({"dropout": "much"}, "got 'much'"),
        ({"max_norm": [1.0, 0.0]}, "max_norm must be > 0, got 0.0"),
        ({"max_norm": True}, "got True"),
    ],
)
def test_invalid_values_are_refused(given, message):
    with pytest.raises(UsageError, match=message):
        Hyperparameters.of(given)


def test_unknown_names_are_refused():
    with pytest.raises(
        UnknownNameError, match="unknown hyperparameter 'learning_rat': did you mean learning_rate"
    ):
        Hyperparameters.of({"learning_rat": 0.1})


def test_a_list_needs_one_value_a_layer(diabetes):
    with pytest.raises(
        UsageError, match="dropout must be one number, or one for each of 3 layers, got 2"
    ):
        trained(diabetes, dropout=[0.1, 0.2])


def test_the_protocols_own_values_change_nothing(diabetes, plain):
    protocol = diabetes.protocol()
    rate = protocol.learning_rate
    decay = protocol.weight_decay
    same = trained(diabetes, learning_rate=rate, weight_decay=decay, dropout=0.0, max_norm=1e9)
    assert same.curve["valid_mse"] == plain.curve["valid_mse"]
    # One optimiser a layer takes the very steps that one for all takes.
    split = trained(diabetes, learning_rate=[rate, rate, rate * (1 + 1e-15)])
    assert split.curve["train_loss"] == pytest.approx(plain.curve["train_loss"], rel=1e-4)


@pytest.mark.parametrize(
    "changed", [{"learning_rate": 1e-2}, {"weight_decay": 1.0}, {"dropout": 0.3}]
)
def test_each_changes_the_training_and_can_be_repeated(diabetes, plain, changed):
    found = trained(diabetes, **changed)
    assert found.curve["train_loss"] != plain.curve["train_loss"]
    torch.rand(3)  # What the process draws besides does not matter.
    assert trained(diabetes, **changed).curve["train_loss"] == found.curve["train_loss"]


def test_layer_with_a_tiny_learning_rate_hardly_changes(diabetes):
    start = builders.build(CHAIN, diabetes.form(), 1).state_dict()
    found = trained(diabetes, learning_rate=[1e-3, 1e-12, 1e-3], weight_decay=0.0)
    first = "layers.1.affine.weight"
    second = "layers.2.affine.weight"
    assert torch.allclose(found.weights[second], start[second], atol=1e-8)
    assert not torch.allclose(found.weights[first], start[first], atol=1e-3)


def test_norms_stay_within_their_bounds(diabetes, plain):
    bounds = {
        "layers.1.affine.weight": 0.5,
        "layers.2.affine.weight": 0.25,
        "layers.3.weight": 0.125,
    }
    found = trained(diabetes, max_norm=list(bounds.values()))
    for name, bound in bounds.items():
        norms = torch.linalg.vector_norm(found.weights[name], dim=1)
        assert norms.max() <= bound * (1 + 1e-5)
        assert torch.linalg.vector_norm(plain.weights[name], dim=1).max() > bound

    # Only what is too long is cut: some unit is not at its bound, or all would have been rescaled.
    assert torch.linalg.vector_norm(found.weights["layers.1.affine.weight"], dim=1).min() > 0.0


def test_norms_of_kernels_are_bounded_too():
    digits = registry.get("digits")
    found = train(
        TINY_CNN, digits, digits.protocol("digits/1"), seed=1, hyperparameters={"max_norm": 0.2}
    )
    kernels = [
        tensor
        for name, tensor in found.weights.items()
        if name.endswith("weight") and tensor.ndim > 1
    ]
    assert kernels
    assert all(kernel.flatten(1).norm(dim=1).max() <= 0.2 * (1 + 1e-5) for kernel in kernels)


def test_dropout_keeps_the_mean_and_drops_its_share():
    ones = torch.ones(200, 500)
    layer = nn.Identity()
    InputDropout([[layer]], [0.4], seed=0)
    dropped = layer(ones)
    assert dropped.unique().tolist() == pytest.approx([0.0, 1 / 0.6])
    assert float((dropped == 0).float().mean()) == pytest.approx(0.4, abs=0.01)
    assert float(dropped.mean()) == pytest.approx(1.0, abs=0.02)


def test_dropout_is_off_when_measuring():
    network = builders.build(CHAIN, NetworkForm((10,), 1, "regression", False))
    x = torch.randn(4, 10)
    before = network.eval()(x)
    InputDropout(applied_layers(network), [0.0, 0.9, 0.0], seed=0)
    assert torch.equal(network.eval()(x), before)
    assert not torch.equal(network.train()(x), before)


def test_trial_applies_and_records_hyperparameters(tmp_path, diabetes):
    asked = {
        "learning_rate": [0.01, 0.01, 0.001],
        "dropout": 0.1,
        "max_norm": 2.0,
        "weight_decay": 0.001,
    }
    *_, last = told(TrialProcess(replace(job(diabetes, tmp_path, CHAIN), hyperparameters=asked)))
    assert isinstance(last, TrialFinished)
    assert last.result.environment["hyperparameters"] == asked
    here = train(CHAIN, diabetes, seed=1, hyperparameters=asked)
    assert last.result.curve["valid_mse"][0] == pytest.approx(here.curve["valid_mse"][0], rel=1e-3)


def test_trial_with_unusable_hyperparameters_fails_with_the_reason(tmp_path, diabetes):
    *_, last = told(
        TrialProcess(replace(job(diabetes, tmp_path, CHAIN), hyperparameters={"dropout": 2}))
    )
    assert isinstance(last, TrialFailed)
    assert last.reason == "dropout must be in [0, 1), got 2"
    assert not last.retry
