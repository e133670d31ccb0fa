"""Batch normalisations of imported networks: their statistics, in both modes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from archive.architecture.aten.wiring import Input
from archive.trainer.intake.models import ImportedModel, import_model
from archive.trainer.nn import builders
from archive.trainer.protocols.networks import NetworkForm

FORM = NetworkForm((1, 8, 8), 10, "classification")


def normalised(norm: nn.Module) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), norm, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 10)
    )  # fmt: skip


def both(model: nn.Module) -> tuple[ImportedModel, nn.Module]:
    """The import of a model, and the network that is built from it, with the model's weights."""
    imported = import_model(model, [Input(FORM.input_shape)])
    again = builders.build(imported.architecture, FORM, 1)
    again.load_state_dict(imported.state_dict(model), strict=True)
    return imported, again


def batches(count: int) -> list[Tensor]:
    rng = torch.Generator().manual_seed(0)
    return [torch.randn((6, *FORM.input_shape), generator=rng) * 2 + at for at in range(count)]


@pytest.mark.parametrize("affine", [True, False])
def test_without_statistics_the_batch_decides_in_both_modes(affine: bool) -> None:
    model = normalised(nn.BatchNorm2d(4, affine=affine, track_running_stats=False))
    _, again = both(model)
    (x,) = batches(1)
    for mode in (True, False):
        torch.testing.assert_close(again.train(mode)(x), model.train(mode)(x))

    assert not list(again.buffers())


def test_statistics_without_a_momentum_are_the_mean_of_all_batches() -> None:
    model = normalised(nn.BatchNorm2d(4, momentum=None))
    first, *others = batches(6)
    model.train()(first)
    imported, again = both(model)
    assert model[1].momentum is None
    assert [layer.attributes.get("momentum") for layer in imported.architecture.layers[2:3]] == [
        "nan"
    ]
    for x in others:
        torch.testing.assert_close(again.train()(x), model.train()(x))

    torch.testing.assert_close(again.eval()(first), model.eval()(first))
    found = again.state_dict()
    expected = imported.state_dict(model)
    assert found.keys() == expected.keys()
    counts = [value.item() for name, value in found.items() if name.endswith("num_batches_tracked")]
    assert counts == [6]
    for name in found:
        torch.testing.assert_close(found[name], expected[name])

    fresh = builders.build(imported.architecture, FORM, 1)
    assert [value.item() for value in fresh.buffers() if not value.is_floating_point()] == [0]


def test_statistics_with_the_momentum_0_stay() -> None:
    model = normalised(nn.BatchNorm2d(4, momentum=0.0))
    imported, again = both(model)
    assert imported.architecture.layers[2].attributes["momentum"] == 0.0
    again.train()(*batches(1))
    assert all(
        torch.equal(found, value)
        for found, value in zip(again.buffers(), model[1].buffers(), strict=False)
    )
