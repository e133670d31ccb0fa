"""Models without memory for their weights give the same networks, with the values of buffers."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from archive.architecture.aten.wiring import Input
from archive.errors import UsageError
from archive.trainer.intake.models import import_model
from archive.trainer.intake.weightless import memory_lent, without_weights

pytestmark = pytest.mark.lasts(2)


class Tables(nn.Module):
    """Buffers whose values count, a tensor that is none, and a tied weight."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Linear(6, 6, bias=False)
        self.head = nn.Linear(6, 6)
        self.head.weight = self.embedding.weight
        self.norm = nn.BatchNorm1d(6)
        self.register_buffer("order", torch.arange(6).flip(0), persistent=False)
        self.scale = torch.linspace(0, 1, 6)

    def forward(self, x):
        return self.head(self.norm(self.embedding(x))[:, self.order] * self.scale)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.LSTM(6, 4, batch_first=True, bidirectional=True)

    def forward(self, x):
        return self.layer(x)[0]


class Attending(nn.Sequential):
    def __init__(self):
        super().__init__(nn.TransformerEncoderLayer(6, 2, 8, dropout=0.1, batch_first=True))


class FrozenNorm(nn.Module):
    """A batch normalisation that stays in evaluation, and a straight-through estimator."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(6)

    def forward(self, x):
        norm = self.norm
        y = nn.functional.batch_norm(x, norm.running_mean, norm.running_var, norm.weight, norm.bias)
        return y + (y.round() - y).detach()


class InstanceStatistics(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Unflatten(1, (2, 3)), nn.InstanceNorm1d(2, track_running_stats=True))


KINDS = [
    (Tables, "6"),
    (Recurrent, "3x6"),
    (Attending, "3x6"),
    (FrozenNorm, "6"),
    (InstanceStatistics, "6"),
]


@pytest.mark.parametrize(("kind", "shape"), KINDS)
def test_a_model_without_weights_is_the_network_of_the_model(kind, shape):
    inputs = [Input(tuple(map(int, shape.split("x"))))]
    with without_weights():
        model = kind()

    assert {parameter.device.type for parameter in model.parameters()} <= {"meta"}
    light = import_model(model, inputs)
    full = import_model(kind(), inputs)
    assert light.architecture.key == full.architecture.key
    assert light.params == full.params
    assert light.names == full.names
    assert {parameter.device.type for parameter in model.parameters()} <= {"meta"}


def test_tied_weights_stay_tied():
    with without_weights():
        model = Tables()

    before = model.head.weight
    with memory_lent(model) as absent:
        assert model.head.weight is model.embedding.weight
        assert not model.head.weight.is_meta
        assert absent["head.weight"] is before

    assert model.head.weight is model.embedding.weight is before


def test_parameters_have_memory_again_after_an_error():
    with pytest.raises(ZeroDivisionError), without_weights():
        _ = 1 / 0

    assert not nn.Linear(2, 2).weight.is_meta


def test_values_that_are_missing_are_refused():
    with pytest.raises(UsageError, match=r"order has values .* build the model"):
        import_model(Tables().to("meta"), [Input((6,))])
