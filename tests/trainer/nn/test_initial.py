"""Initial weights of imported networks, against those that `torch.nn` draws."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import weight_norm

from archive.architecture.aten.wiring import Input
from archive.trainer.intake.models import import_model
from archive.trainer.nn.aten import network

pytestmark = pytest.mark.lasts(0.5)


class Applied(nn.Module):
    """Parts, parameters, and how they are called."""

    def __init__(self, call: Callable[..., Tensor], *parts: nn.Module | nn.Parameter) -> None:
        super().__init__()
        for at, part in enumerate(parts):
            setattr(self, f"part{at}", part)

        self.call = call
        self.count = len(parts)

    def forward(self, x: Tensor) -> Tensor:
        return self.call(x, *(getattr(self, f"part{at}") for at in range(self.count)))


def initial(model: nn.Module, *shape: int, dtype: str = "float32") -> dict[str, Tensor]:
    """The initial tensors of the network that is built from a model, by their names in the
    model."""
    imported = import_model(model, [Input(shape, dtype)])
    drawn = network.rebuilt(imported.architecture, seed=3).state_dict()
    layers = imported.architecture.canonical.layers
    return {
        full: drawn[network.tensor_name(layers[at], at, name)]
        for (at, name), full in imported.names.items()
    }


def recurrent(kind: type[nn.Module]) -> tuple[nn.Module, tuple[int, ...]]:
    # As many inputs as states, for which torch.nn has one bound.
    return Applied(lambda x, part: part(x)[0], kind(64, 64, batch_first=True)), (3, 64)


def tied() -> tuple[nn.Module, tuple[int, ...]]:
    first = nn.Linear(64, 64)
    head = nn.Linear(64, 64)
    head.weight = first.weight
    return nn.Sequential(first, nn.ReLU(), head), (64,)


BIASED: dict[str, Callable[[], tuple[nn.Module, tuple[int, ...]]]] = {
    "weight-normed linear": lambda: (nn.Sequential(weight_norm(nn.Linear(256, 128))), (256,)),
    "weight-normed convolution": lambda: (
        nn.Sequential(weight_norm(nn.Conv2d(16, 128, 3))),
        (16, 8, 8),
    ),
    "lstm": lambda: recurrent(nn.LSTM),
    "gru": lambda: recurrent(nn.GRU),
    "tied linear": tied,
    "linear": lambda: (nn.Linear(256, 128), (256,)),
}


@pytest.mark.parametrize("case", BIASED)
def test_biases_have_the_bounds_of_torch(case: str) -> None:
    model, shape = BIASED[case]()
    drawn = initial(model, *shape)
    biases = [name for name in drawn if "bias" in name]
    assert biases == [name for name, _ in model.named_parameters() if "bias" in name]
    for name in biases:
        theirs = dict(model.named_parameters())[name].abs().max().item()
        # Both use most of their range.
        assert 0.9 * theirs < drawn[name].abs().max().item() < 1.1 * theirs, name


def test_a_recurrent_layer_has_the_bounds_of_torch() -> None:
    model = Applied(lambda x, part: part(x)[0], nn.LSTM(16, 64, batch_first=True))
    shape = (3, 16)
    drawn = initial(model, *shape)
    for name, fan_in in (("ih", 64), ("hh", 64)):
        for tensor in (drawn[f"part0.weight_{name}_l0"], drawn[f"part0.bias_{name}_l0"]):
            assert 0.9 * fan_in**-0.5 < tensor.abs().max() <= fan_in**-0.5


def test_weights_of_a_weight_norm_are_as_large_as_their_fan_in_wants() -> None:
    drawn = initial(nn.Sequential(weight_norm(nn.Linear(256, 128))), 256)
    (scale, direction) = (drawn[f"0.parametrizations.weight.original{at}"] for at in (0, 1))
    weight = scale * direction / direction.norm(dim=1, keepdim=True)
    torch.testing.assert_close(weight.std(), torch.tensor(256**-0.5), rtol=0.05, atol=0)


def test_the_bias_of_a_tied_head_has_the_fan_in_of_the_embedding() -> None:
    table = nn.Embedding(32, 64)
    head = nn.Linear(64, 32)
    head.weight = table.weight
    model = Applied(lambda i, table, head: head(table(i)), table, head)
    drawn = initial(model, 3, dtype="int64")
    assert 0.6 / 8 < drawn["part1.bias"].abs().max() <= 1 / 8


def test_a_matrix_given_as_inputs_by_outputs_has_its_fan_in() -> None:
    shared = nn.Parameter(torch.ones(64, 256))
    model = Applied(
        lambda x, w, b: torch.addmm(b, torch.mm(x, w.t()).relu(), w),
        shared,
        nn.Parameter(torch.ones(256)),
    )
    drawn = initial(model, 256)
    # The first use has the transpose: 256 inputs. The bias is that of the second, which has 64.
    assert 0.9 / 16 < drawn["part0"].abs().max() <= 1 / 16
    assert 0.9 / 8 < drawn["part1"].abs().max() <= 1 / 8


PARAMETERS: dict[
    str, tuple[Callable[[Tensor, nn.Parameter], Tensor], tuple[int, ...], float, float]
] = {
    "table of positions": (lambda x, p: x + p, (1, 32, 16), 0.0, 0.02),
    "part of a table": (lambda x, p: x + p[:, 1:], (1, 33, 16), 0.0, 0.02),
    "added vector": (lambda x, p: x + p, (16,), 0.0, 0.0),
    "added to channels": (lambda x, p: p + x, (1, 32, 1), 0.0, 0.0),
    "subtracted vector": (lambda x, p: x - p, (16,), 0.0, 0.0),
    "factor": (lambda x, p: x * p, (16,), 1.0, 0.0),
    "divisor": (lambda x, p: x / p, (1,), 1.0, 0.0),
    "token": (lambda x, p: torch.cat([p.expand(x.shape[0], -1, -1), x], 1), (1, 20, 16), 0.0, 0.02),
    "exponent of a scale": (lambda x, p: F.normalize(x, dim=-1) * p.exp(), (32, 16), 0.0, 0.02),
}


@pytest.mark.parametrize("case", PARAMETERS)
def test_parameters_begin_as_what_they_are_used_for(case: str) -> None:
    call, shape, mean, deviation = PARAMETERS[case]
    drawn = initial(Applied(call, nn.Parameter(torch.ones(shape))), 32, 16)["part0"]
    assert drawn.mean().item() == pytest.approx(mean, abs=0.005)
    assert drawn.std(correction=0).item() == pytest.approx(deviation, rel=0.1)
