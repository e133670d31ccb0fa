"""Floating-point precision: its choice, refusals, its record, and its effect on learning."""

from __future__ import annotations

import pytest
import torch

from archive.errors import SettingsError, UsageError
from archive.trainer.fit import precision
from archive.trainer.fit.train import train
from archive.trainer.tasks import registry
from tests.support.networks.nets import TINY_CNN, TINY_MLP
from tests.trainer.fit.test_train import short

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("capability", "chosen"), [((7, 5), "float32"), ((8, 0), "bf16"), ((9, 0), "bf16")]
)
def test_device_decides_the_automatic_precision(monkeypatch, capability, chosen):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert precision.choose("auto", torch.device("cuda:1")) == chosen
    assert precision.choose("float32", torch.device("cuda:1")) == "float32"
    assert precision.choose("auto", CPU) == "float32"
    assert precision.choose("bf16", CPU) == "bf16"


def test_unknown_precisions_are_refused():
    with pytest.raises(
        UsageError, match="precision must be one of auto, float32, bf16, tf32, got 'fp8'"
    ):
        train(TINY_MLP, registry.get("diabetes"), precision="fp8")


def test_tf32_needs_a_gpu_that_has_it(monkeypatch):
    with pytest.raises(
        SettingsError,
        match=r"tf32 needs a GPU of compute capability 8\.0 or "
        r"more, got the device cpu",
    ):
        precision.choose("tf32", CPU)

    for capability in ((7, 5), (8, 0)):
        monkeypatch.setattr(
            torch.cuda, "get_device_capability", lambda device, capability=capability: capability
        )
        if capability < (8, 0):
            with pytest.raises(SettingsError, match="got the device cuda:0"):
                precision.choose("tf32", torch.device("cuda:0"))
        else:
            assert precision.choose("tf32", torch.device("cuda:0")) == "tf32"


@pytest.fixture
def flags():
    """Where PyTorch is told what units a GPU's convolutions and products may use; there without a
    GPU, too."""
    places = torch.backends.cudnn, torch.backends.cuda.matmul
    before = [place.allow_tf32 for place in places]
    yield places
    for place, value in zip(places, before, strict=True):
        place.allow_tf32 = value


@pytest.mark.parametrize("before", [(True, False), (False, True)])
@pytest.mark.parametrize(("name", "allowed"), [("float32", False), ("bf16", False), ("tf32", True)])
def test_convolutions_and_products_use_the_recorded_precision(
    monkeypatch, flags, before, name, allowed
):
    convolutions, products = flags
    convolutions.allow_tf32, products.allow_tf32 = before
    monkeypatch.setattr(precision, "choose", lambda requested, device: requested)
    told = []

    def on_epoch(_):
        told.append((convolutions.allow_tf32, products.allow_tf32))

    task = registry.get("digits")
    outcome = train(TINY_CNN, task, short("digits", epochs=1), precision=name, on_epoch=on_epoch)
    assert (told, outcome.precision) == ([(allowed, allowed)], name)
    assert (convolutions.allow_tf32, products.allow_tf32) == before


def test_networks_learn_in_bfloat16_with_weights_of_float32():
    exact, rounded = (
        train(TINY_CNN, registry.get("digits"), short("digits", epochs=4), precision=name)
        for name in ("auto", "bf16")
    )
    assert (exact.precision, rounded.precision) == ("float32", "bf16")
    assert exact.curve["train_loss"] != rounded.curve["train_loss"]
    assert rounded.curve["train_loss"] == pytest.approx(exact.curve["train_loss"], rel=0.1)
    assert rounded.value > 0.8
    assert {tensor.dtype for tensor in rounded.weights.values()} <= {torch.float32, torch.int64}


def test_a_regression_learns_in_bfloat16():
    outcome = train(
        TINY_MLP, registry.get("diabetes"), short("diabetes", epochs=10), precision="bf16"
    )
    assert outcome.curve["train_loss"][-1] < outcome.curve["train_loss"][0]
