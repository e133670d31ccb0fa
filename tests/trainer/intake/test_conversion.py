"""Small models, each with one trait: what their architectures say."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from archive.architecture.aten.weights import parameters
from archive.architecture.aten.wiring import Input
from archive.errors import UsageError
from archive.spaces.aten import content
from archive.trainer.intake.models import import_model
from tests.support.networks.torch_nets import residual

pytestmark = pytest.mark.lasts(0.6)

IMAGE = [Input((3, 8, 8))]
VECTOR = [Input((6,))]


class Residual(nn.Module):
    """The model whose architecture is `tests.support.networks.torch_nets.residual`."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, 2, padding=1)
        self.scale = nn.Parameter(torch.ones(8, 1, 1))
        self.second = nn.Conv2d(8, 8, 3, padding=1, bias=False)
        self.head = nn.Linear(8, 10)

    def forward(self, x):
        x = torch.relu(self.first(x))
        return self.head((x + self.second(self.scale * x)).mean((-1, -2)))


def function(call, *parts):
    """A model that computes a function of its parts and inputs."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleList(parts)

        def forward(self, *inputs):
            return call(*self.parts, *inputs)

    return Model()


def layers(model, inputs=VECTOR):
    imported = import_model(model, inputs)
    assert (
        parameters(imported.architecture)
        == imported.params
        == sum(p.numel() for p in model.parameters())
    )
    return [(layer.op, dict(layer.attributes)) for layer in imported.architecture.layers[1:-1]]


def test_a_residual_network():
    imported = import_model(Residual(), IMAGE)
    assert imported.architecture.key == residual().key
    assert imported.flops == 16 * (8 * 27 + 8) + 16 * 8 * 72 + 10 * 8 + 10
    names = {
        (residual().canonical.layers[at].op, name): full
        for (at, name), full in imported.names.items()
    }
    assert names["convolution", "bias"] == "first.bias"
    assert names["parameter", "shape"] == "scale"
    assert set(imported.names.values()) == set(Residual().state_dict())


def test_sums_have_no_order_and_differences_have():
    def key(call):
        return import_model(function(call), VECTOR).architecture.key

    assert key(lambda x: x.relu() + x.tanh()) == key(lambda x: x.tanh() + x.relu())
    assert key(lambda x: x.relu() - x.tanh()) != key(lambda x: x.tanh() - x.relu())
    assert key(lambda x: 1 - x) != key(lambda x: x - 1)
    assert key(lambda x: x * x) != key(lambda x: x * x.relu())


def test_the_mode_of_a_model_does_not_matter_and_stays():
    model = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Dropout(0.0))
    model[2].eval()
    modes = [part.training for part in model.modules()]
    found = layers(model)
    assert [part.training for part in model.modules()] == modes
    assert found == layers(model.eval())
    norm = {"weight": (4,), "bias": (4,), "running_mean": (4,), "running_var": (4,)}
    assert found[1:] == [("batch_norm", norm), ("dropout", {"p": 0.5})]


@pytest.mark.parametrize(
    "activation", [nn.SiLU, nn.Hardswish, nn.Mish, nn.PReLU, nn.GELU, nn.ReLU6]
)
def test_an_activation_is_one_layer(activation):
    assert len(layers(activation())) == 1


def test_sizes_of_the_batch_and_of_the_network():
    def call(x):
        n = x.shape[0]
        return x.view(n, 2, 3).reshape(n * 2, 3).reshape(n, -1), x.new_ones(n, 1).expand(n, 5)

    found = layers(function(call))
    assert [attributes["size"] for op, attributes in found if op == "view"] == [
        (-1, 2, 3),
        (-1, 3),
        (-1, 6),
    ]
    assert ("full", {"size": ("batch", "1"), "fill_value": 1, "dtype": "float32"}) in found or (
        "full", {"size": ("batch", "1"), "fill_value": 1}) in found  # fmt: skip
    assert [attributes["size"] for op, attributes in found if op == "expand"] == [(-1, 5)]


def test_shared_weights_are_layers():
    shared = nn.Linear(6, 6, bias=False)
    found = layers(function(lambda part, x: part(part(x)), shared))
    assert found == [("parameter", {"shape": (6, 6)}), ("linear", {}), ("linear", {})]


def test_tied_weights_count_once():
    embedding = nn.Embedding(9, 6)
    head = nn.Linear(6, 9, bias=False)
    head.weight = embedding.weight
    found = layers(function(lambda e, h, i: h(e(i)), embedding, head), [Input((), "int64")])
    assert [op for op, _ in found] == ["parameter", "embedding", "linear"]


def test_buffers_are_constants_with_content():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("kept", torch.arange(6, dtype=torch.int64))
            self.register_buffer("passing", torch.tensor([0.5, -1, 2, 0, 1, 3]), persistent=False)

        def forward(self, x):
            return x[:, self.kept] * self.passing + torch.tensor([1.0])

    imported = import_model(Scaled(), VECTOR)
    constants = [layer for layer in imported.architecture.layers if layer.op == "constant"]
    types = [getattr(torch, one.attributes["dtype"]) for one in constants]
    values = [
        torch.frombuffer(bytearray(content(one)), dtype=each)
        for one, each in zip(constants, types, strict=True)
    ]
    assert sorted(tuple(value.tolist()) for value in values) == [
        (0, 1, 2, 3, 4, 5),
        (0.5, -1, 2, 0, 1, 3),
        (1.0,),
    ]


class Noisy(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.register_buffer("noise", torch.rand(6, size))

    def forward(self, x):
        return x @ self.noise


def test_buffers_that_an_architecture_cannot_hold_are_refused():
    with pytest.raises(
        UsageError, match="the buffer noise has values that matter, and none on the device meta"
    ):
        import_model(Noisy(2).to("meta"), VECTOR)

    with pytest.raises(
        UsageError,
        match=r"the buffer noise has .* an architecture holds 1048576 "
        r"at most",
    ):
        import_model(Noisy(2**18), VECTOR)


def test_several_inputs_and_outputs():
    def call(e, x, i):
        values, indices = (x + e(i)).topk(2)
        return values, indices, x

    imported = import_model(function(call, nn.Embedding(9, 6)), [Input((6,)), Input((), "int64")])
    assert imported.architecture.layers[0].attributes["input"] == "6 scalar:int64"
    items = [
        layer.attributes["item"] for layer in imported.architecture.layers if layer.op == "getitem"
    ]
    assert items == [0, 1, 1]
    last = len(imported.architecture.layers) - 1
    outputs = [
        used for (_, head), used in imported.architecture.argument_of.items() if head == last
    ]
    assert sorted(outputs) == [(0,), (1,), (2,)]
    assert imported.flops is None


def test_a_pool_of_channels_that_come_last_is_a_mean():
    pool = nn.AdaptiveAvgPool2d(1)
    first, second = layers(function(lambda x: pool(x.permute(0, 3, 1, 2))), IMAGE)
    assert [first[0], second[0]] == ["permute", "mean"]


class Cache:
    """A result of a language model that is no tensor."""


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.config = SimpleNamespace(use_cache=True)
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        logits = self.head(x)
        return (logits, Cache()) if self.config.use_cache else (logits,)


def test_a_language_model_is_imported_without_its_cache():
    model = Language()
    assert layers(model) == [("linear", {"weight": (3, 6), "bias": (3,)})]
    assert model.config.use_cache


def test_an_output_that_is_no_tensor_is_refused_with_a_way_out():
    with pytest.raises(UsageError, match="give a module whose forward returns these alone"):
        import_model(function(lambda x: (x + 1, Cache())), VECTOR)


def test_windows_are_short():
    model = nn.Sequential(
        nn.Conv2d(3, 4, (3, 5), (2, 1), padding=(1, 2)), nn.MaxPool2d(2), nn.AvgPool2d(2, 1)
    )
    (conv, pool, average) = import_model(model, IMAGE).architecture.layers[1:-1]
    assert dict(conv.attributes) == {
        "weight": (4, 3, 3, 5),
        "bias": (4,),
        "padding": (1, 2),
        "stride": (2, 1),
    }
    assert (conv.units, conv.stride) == (4, 1)
    assert (dict(pool.attributes), pool.stride) == ({"kernel_size": 2}, 2)
    assert (dict(average.attributes), average.stride) == ({"kernel_size": 2}, 1)


def test_what_does_not_reach_the_output_is_left_out():
    assert [op for op, _ in layers(function(lambda x: (x.exp(), x.relu())[1]))] == ["relu"]


class Branch(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x

        return -x


class Sized(nn.Module):
    def forward(self, x):
        return x[:, : int(x.max().item())]


class Stateful(nn.Module):
    def __init__(self, counts):
        super().__init__()
        self.counts = counts
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        self.calls += 1
        return x.relu() if self.counts else x * self.calls


def test_a_buffer_that_changes_may_not_matter():
    assert [op for op, _ in layers(Stateful(counts=True))] == ["relu"]


FAULTS = {
    "branch": (
        Branch(),
        (
            r"Branch cannot be exported at test_conversion.py:\d+ in forward \(if x.sum\(\) > "
            r"0:\).*torch.where"
        ),
    ),
    "size": (Sized(), r"Sized cannot be exported at .* in forward .*data-dependent.*torch.where"),
    "batch": (function(lambda x: x.view(2, 6)), r"must take a batch of any size: use x.shape\[0\]"),
    "input": (nn.Linear(7, 2), r"Linear cannot be exported.*\[s\d+, 6\] X \[7, 2\]"),
    "operation": (
        function(lambda x: torch.linalg.svdvals(x)),
        r"the operation "
        r"aten._linalg_svd.default is not one of",
    ),
    "output": (function(lambda x: 3), "must return tensors"),
    "state": (
        Stateful(counts=False),
        "changes its buffer calls in evaluation mode, .*: change it in training alone",
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_what_cannot_be_imported_says_where_and_why(case, capsys):
    model, reason = FAULTS[case]
    with pytest.raises(UsageError, match=reason) as caught:
        import_model(model, VECTOR)

    assert len(str(caught.value)) < 700
    assert "\n" not in str(caught.value)
    assert capsys.readouterr() == ("", "")
