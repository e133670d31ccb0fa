"""Imported networks at other sizes of images than those of the import: what the model computes, or
a refusal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from archive.architecture.aten.wiring import Input
from archive.architecture.graph import Architecture
from archive.errors import InvalidArchitectureError
from archive.trainer.intake.models import import_model
from archive.trainer.nn import builders
from archive.trainer.nn.aten import network
from archive.trainer.protocols.networks import NetworkForm
from tests.support import whole

pytestmark = pytest.mark.lasts(1)


class Applied(nn.Module):
    """A function as a model."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


def imported(function: Callable[[Tensor], Tensor], axes: int) -> Architecture:
    """Return the network of a function of two channels, imported for sides of 8."""
    return import_model(Applied(function), [Input((2, *[8] * axes))]).architecture


def check(function: Callable[[Tensor], Tensor], axes: int, ops: list[str]) -> None:
    """Check the operations of an imported function, and its values at three sizes."""
    architecture = imported(function, axes)
    assert [layer.op for layer in architecture.layers[1:-1]] == ops
    module = network.rebuilt(architecture)
    for sides in ([8] * axes, [12] * axes, [5, 7, 6][:axes]):
        x = torch.randn(3, 2, *sides)
        torch.testing.assert_close(module(x), function(x), msg=f"{ops} {sides}")


INTERPOLATIONS: dict[str, tuple[int, dict[str, Any]]] = {
    "upsample_nearest1d": (1, {}),
    "upsample_nearest2d": (2, {}),
    "upsample_nearest3d": (3, {}),
    **{f"_upsample_nearest_exact{axes}d": (axes, {"mode": "nearest-exact"}) for axes in (1, 2, 3)},
    "upsample_linear1d": (1, {"mode": "linear"}),
    "upsample_bilinear2d": (2, {"mode": "bilinear"}),
    "upsample_trilinear3d": (3, {"mode": "trilinear"}),
    "upsample_bicubic2d": (2, {"mode": "bicubic"}),
}


# Each mode on one or two axes; three are a larger number of the same.
@pytest.mark.parametrize(
    "op",
    [
        whole(op) if op.endswith(("nearest1d", "nearest3d", "exact1d", "exact3d")) else op
        for op in INTERPOLATIONS
    ],
)
def test_an_interpolation_is_one_layer_for_all_sizes(op: str) -> None:
    axes, settings = INTERPOLATIONS[op]
    targets: list[dict[str, Any]] = [{"scale_factor": 1.7}, {"size": [5] * axes}]
    if "linear" in op or "cubic" in op:
        targets.append({"scale_factor": 1.7, "align_corners": True})

    for target in targets:
        check(lambda x, given={**settings, **target}: F.interpolate(x, **given), axes, [op])


PADDINGS = {
    "reflect": "reflection_pad{}d",
    "replicate": "replication_pad{}d",
    "circular": "pad",
    "constant": "constant_pad_nd",
}


@pytest.mark.parametrize("mode", PADDINGS)
def test_a_padding_is_one_layer_for_all_sizes(mode: str) -> None:
    for axes in (1, 2, 3):
        check(lambda x, pad=(1, 2) * axes: F.pad(x, pad, mode), axes, [PADDINGS[mode].format(axes)])


def test_a_convolution_pads_in_circles() -> None:
    torch.manual_seed(0)
    model = nn.Conv2d(2, 3, 3, padding=(1, 0), padding_mode="circular")
    found = import_model(model, [Input((2, 8, 8))])
    module = network.rebuilt(found.architecture)
    module.load_state_dict(found.state_dict(model))
    x = torch.randn(3, 2, 12, 7)
    torch.testing.assert_close(module(x), model(x))


def test_windows_are_one_layer_for_all_sizes() -> None:
    check(lambda x: F.unfold(x, 3, padding=1, stride=2), 2, ["im2col"])


def form(sides: int) -> NetworkForm:
    return NetworkForm((1, sides, sides), 2, "classification")


def pooled(**settings: Any) -> Architecture:
    return imported(lambda x: F.interpolate(x, **settings).mean((2, 3)), 2)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
def test_sides_that_may_be_those_of_the_import_take_no_other_images(mode: str) -> None:
    architecture = pooled(scale_factor=1.7, mode=mode, recompute_scale_factor=True)
    builders.build(architecture, form(8))
    reason = (
        r"imported for inputs 2x8x8, and its _?upsample_\w+ to the sides \(13, 13\) may depend "
        r"on them: "
        "import it for 2x12x12, or interpolate by a scale_factor without recompute_scale_factor$"
    )
    with pytest.raises(InvalidArchitectureError, match=reason):
        builders.build(architecture, form(12))

    builders.build(pooled(scale_factor=1.7, mode=mode), form(12))


def test_sides_of_sequences_may_be_those_of_the_import_too() -> None:
    architecture = imported(lambda x: F.interpolate(x.mT, 5, mode="linear").mean(1)[:, :2], 1)
    sequences = NetworkForm((2, 8), 2, "classification")
    builders.build(architecture, sequences)
    with pytest.raises(
        InvalidArchitectureError,
        match=r"its upsample_linear1d to the sides "
        r"\(5,\) may .* for 4x8,",
    ):
        builders.build(architecture, NetworkForm((4, 8), 2, "classification"))
