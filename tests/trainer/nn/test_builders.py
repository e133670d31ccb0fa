"""The registry of builders, and the training of modules that another package builds."""

from __future__ import annotations

import dataclasses
from importlib.metadata import EntryPoint
from typing import ClassVar

import pytest
import torch
from torch import nn

from archive.errors import InvalidArchitectureError, SettingsError, UsageError
from archive.registry import Registry
from archive.trainer.fit.train import train
from archive.trainer.nn import builders, costs
from archive.trainer.nn.base import Builder
from archive.trainer.protocols.networks import NetworkForm
from archive.trainer.recipes.run import Cancelled
from archive.trainer.tasks.builtin import DIABETES
from tests.support.networks.nets import TINY_MLP
from tests.trainer.fit.test_resume import leave
from tests.trainer.fit.test_train import same

FORM = NetworkForm((10,), 1, "regression")


class Hybrid(nn.Module):
    """Two heads, torch's own dropout, a layer that is fed nothing, and a record of the progress
    that it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(10, 16)
        self.drop = nn.Dropout(0.3)
        self.head = nn.Linear(16, 1)
        self.auxiliary = nn.Linear(16, 1)
        self.auxiliary_weight = 0.4
        self.unused = nn.Linear(3, 3)
        self.told: list[float] = []

    def set_progress(self, share):
        self.told.append(share)

    def with_auxiliary(self, x):
        body = self.drop(torch.relu(self.body(x)))
        return self.head(body), self.auxiliary(body)

    def forward(self, x):
        return self.head(self.drop(torch.relu(self.body(x))))


class HybridBuilder(Builder):
    built: ClassVar[list[Hybrid]] = []

    def check(self, form):
        if form.kind != "regression":
            raise InvalidArchitectureError("a hybrid predicts")

    def build(self, architecture, form, seed):
        self.built.append(Hybrid())
        return self.built[-1]


@pytest.fixture
def installed(monkeypatch):
    """Pretend that another package offers builders, and that the built-in one of mlp is its own."""
    offered = {
        "mlp": f"{__name__}:HybridBuilder",
        "broken": "no_such_module:Builder",
        "dict": "builtins:dict",
    }
    offered["abstract"] = "archive.trainer.nn.base:Builder"
    points = [EntryPoint(name, value, "archive.builders") for name, value in offered.items()]
    monkeypatch.setattr("archive.registry.entry_points", lambda group: points)
    registry = Registry(
        "builder", "archive.builders", {"cnn": "archive.trainer.nn.builders:CnnBuilder"}
    )
    registry._loaded["mlp"] = HybridBuilder
    monkeypatch.setattr(builders, "registry", registry)
    monkeypatch.setattr(HybridBuilder, "built", [])


def test_a_space_without_a_builder_is_refused_with_those_that_have_one():
    with pytest.raises(
        InvalidArchitectureError,
        match=r"builds networks of cnn, darts, decoder, mlp.*, "
        r"got nothing",
    ):
        builders.get("nothing")


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("broken", "cannot be loaded"),
        ("dict", "must be a subclass of Builder"),
        ("abstract", "cannot be made: TypeError: Can't instantiate abstract class Builder"),
    ],
)
def test_an_unusable_entry_point_is_a_settings_error(name, reason):
    with pytest.raises(SettingsError, match=reason):
        builders.get(name)


@pytest.mark.usefixtures("installed")
def test_modules_that_draw_from_torchs_generator_start_alike():
    state = torch.get_rng_state()
    first, again, other = (builders.build(TINY_MLP, FORM, seed).state_dict() for seed in (3, 3, 4))
    assert torch.equal(state, torch.get_rng_state())
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["body.weight"], other["body.weight"])


@pytest.mark.usefixtures("installed")
def test_default_recipe_trains_both_heads_and_tells_the_progress():
    protocol = dataclasses.replace(DIABETES.protocol(), epochs=2)
    state = torch.get_rng_state()
    outcome = train(TINY_MLP, DIABETES, protocol, seed=1)
    assert torch.equal(state, torch.get_rng_state())
    start = builders.build(TINY_MLP, DIABETES.form(protocol), 1).state_dict()
    trained = {
        name for name, tensor in outcome.weights.items() if not torch.equal(tensor, start[name])
    }
    assert trained >= {"body.weight", "head.weight", "auxiliary.weight"}
    told = HybridBuilder.built[0].told
    assert told == [step / len(told) for step in range(len(told))]


@pytest.mark.usefixtures("installed")
def test_a_resumed_training_draws_the_same_random_numbers(tmp_path):
    protocol = dataclasses.replace(DIABETES.protocol(), epochs=3)
    whole = train(TINY_MLP, DIABETES, protocol, seed=1)
    path = tmp_path / "checkpoint"
    with pytest.raises(Cancelled):
        leave(path, 12, TINY_MLP, DIABETES, protocol, seed=1)

    torch.rand(3)
    resumed = train(TINY_MLP, DIABETES, protocol, seed=1, checkpoint=path)
    assert resumed.resumed == 1
    assert same(resumed, whole)


@pytest.mark.usefixtures("installed")
def test_costs_omit_the_auxiliary_head_and_restore_the_mode():
    network = builders.build(TINY_MLP, FORM)
    network.drop.eval()
    # 10 x 16 and 16 x 1 with their biases; the layer that is fed nothing has weights, and no
    # operations.
    assert costs.measure(network, (10,)) == (11 * 16 + 17 + 12, 11 * 16 + 17)
    assert network.training and not network.drop.training


@pytest.mark.parametrize("value", [0, -1, 2.0, True, "8"])
def test_an_invalid_option_is_named(value):
    form = dataclasses.replace(FORM, options={"channels": value})
    with pytest.raises(UsageError, match=f"option channels must be an integer >= 1, got {value!r}"):
        form.count("channels", 16)

    assert form.count("cells", 5) == 5


@pytest.mark.parametrize("value", [-0.1, 1.0, False, "0.2"])
def test_an_invalid_share_is_named(value):
    form = dataclasses.replace(FORM, options={"drop_path": value})
    with pytest.raises(UsageError, match=r"option drop_path must be a number in \[0, 1\)"):
        form.share("drop_path", 0.2)
