"""Multiply-adds of layers that PyTorch runs as one operation, against counts by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from archive.architecture.aten.wiring import Input
from archive.trainer.intake.models import import_model
from archive.trainer.nn import costs
from archive.trainer.nn.aten import network
from tests.support import whole


class Applied(nn.Module):
    """A part, and how it is called."""

    def __init__(self, part: nn.Module, call: Callable[[nn.Module, Tensor], Tensor]) -> None:
        super().__init__()
        self.part = part
        self.call = call

    def forward(self, x: Tensor) -> Tensor:
        return self.call(self.part, x)


def first(part: nn.Module) -> Applied:
    """A part whose first output counts."""
    return Applied(part, lambda part, x: part(x)[0])


def attention(*, weights: bool = False) -> Applied:
    part = nn.MultiheadAttention(16, 4, batch_first=True)
    return Applied(part, lambda part, x: part(x, x, x, need_weights=weights)[0])


def encoder(**settings: bool) -> nn.TransformerEncoderLayer:
    return nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, **settings)


# Three steps of sixteen features: three projections with biases, scores and means of the values,
# and a projection.
ATTENTION = 3 * 48 * 17 + 2 * 3 * 3 * 16 + 3 * 16 * 17
ENCODER = ATTENTION + 3 * 32 * 17 + 3 * 16 * 33
# Matrices of the input and of the state, and two biases, for each of four (three) gates.
LSTM, GRU = (3 * gates * 8 * (16 + 8 + 2) for gates in (4, 3))

COUNTED: dict[str, tuple[Callable[[], nn.Module], int]] = {
    "attention": (attention, ATTENTION),
    "attention with its weights": (lambda: attention(weights=True), ATTENTION),
    "encoder layer": (encoder, ENCODER),
    "encoder layer, normalised first": (lambda: encoder(norm_first=True), ENCODER),
    "encoder": (lambda: nn.TransformerEncoder(encoder(), 2), 2 * ENCODER),
    "lstm": (lambda: first(nn.LSTM(16, 8, batch_first=True)), LSTM),
    "lstm of two layers": (
        lambda: first(nn.LSTM(16, 8, 2, batch_first=True, bidirectional=True)),
        2 * LSTM + 2 * 3 * 32 * (16 + 8 + 2),
    ),
    "lstm without biases": (
        lambda: first(nn.LSTM(16, 8, bias=False, batch_first=True)),
        3 * 32 * (16 + 8),
    ),
    "gru": (lambda: first(nn.GRU(16, 8, batch_first=True)), GRU),
}


COSTLY = {"attention with its weights", "encoder layer, normalised first", "encoder"}
"""Cases that differ from others in their sizes alone."""


@pytest.mark.parametrize("case", [whole(case) if case in COSTLY else case for case in COUNTED])
def test_fused_layers_count_as_their_products(case: str) -> None:
    make, expected = COUNTED[case]
    model = make()
    assert costs.flops(model, (3, 16)) == expected
    imported = import_model(model, [Input((3, 16))])
    assert (
        imported.flops == costs.flops(network.rebuilt(imported.architecture), (3, 16)) == expected
    )


def test_a_bilinear_layer_counts_its_weight_for_each_input() -> None:
    model = Applied(nn.Bilinear(4, 4, 3), lambda part, x: part(x, x))
    assert costs.flops(model, (4,)) == 3 * 4 * 4
    assert costs.flops(model, (5, 4)) == 5 * 3 * 4 * 4


def test_recurrent_layers_of_a_gpu_count_all_their_weights() -> None:
    weights = [torch.empty(32, 16), torch.empty(32, 8), torch.empty(32), torch.empty(32)]
    count = costs._COUNTS[torch.ops.aten._cudnn_rnn]
    assert count((), torch.empty(3, 1, 16), weights, 4) == LSTM


@pytest.mark.parametrize("fused", [True, False])
def test_a_measurement_leaves_the_fast_path_as_it_was(fused: bool) -> None:
    before = torch.backends.mha.get_fastpath_enabled()
    try:
        torch.backends.mha.set_fastpath_enabled(fused)
        costs.flops(encoder(), (3, 16))
        with pytest.raises(RuntimeError):
            costs.flops(nn.Linear(3, 2), (4,))

        assert torch.backends.mha.get_fastpath_enabled() is fused
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


@pytest.mark.whole
@pytest.mark.lasts(30)
@pytest.mark.parametrize(
    "name", ["resnet18", "mobilenet_v3_small", "squeezenet1_1", "shufflenet_v2_x0_5", "vit_b_16"]
)
def test_the_import_counts_what_the_rebuilt_network_does(name: str) -> None:
    from torchvision import models

    imported = import_model(getattr(models, name)(weights=None), [Input((3, 224, 224))])
    rebuilt = network.rebuilt(imported.architecture)
    assert imported.flops == costs.flops(rebuilt, (3, 224, 224))
