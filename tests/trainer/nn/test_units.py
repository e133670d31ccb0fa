"""Units of weights: output features and channels, in whichever axis they lie, of own and of shared
weights."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from archive.architecture.aten.wiring import Input
from archive.trainer.fit.hyperparameters import Hyperparameters
from archive.trainer.fit.steps import Steps
from archive.trainer.fit.train import train
from archive.trainer.intake.models import import_model
from archive.trainer.nn.aten import network
from archive.trainer.nn.base import applied_layers, weighted_layers
from archive.trainer.nn.dropout import InputDropout
from archive.trainer.nn.units import Units, UnitWeights, unit_weights
from archive.trainer.tasks.builtin import DIGITS
from tests.support.networks.torch_nets import chain, layer

BOUND = 0.3


def rebuilt(model: nn.Module, shape: tuple[int, ...]) -> nn.Module:
    return network.rebuilt(import_model(model, [Input(shape)]).architecture)


def norms(response: Callable[[Tensor], Tensor], shape: tuple[int, ...]) -> Tensor:
    """Norms of the units, an oracle: an output of a linear function is the sum of its weights times
    the inputs."""
    jacobian = torch.autograd.functional.jacobian(response, torch.zeros(1, *shape))
    return jacobian.flatten(4 if len(shape) == 3 else 2).squeeze(0).norm(dim=-1)


class Functions(nn.Module):
    """Matrices in the order that functions take them: inputs, outputs."""

    def __init__(self, bias: bool) -> None:
        super().__init__()
        self.matrix = nn.Parameter(torch.randn(4, 6))
        self.bias = nn.Parameter(torch.zeros(6)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.matrix if self.bias is None else torch.addmm(self.bias, x, self.matrix)


class Transposed(Functions):
    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.matrix.T)


@pytest.mark.parametrize(
    "model", [Functions(False), Functions(True), Transposed(False), nn.Linear(4, 6)]
)
def test_units_of_a_matrix_are_its_outputs(model: nn.Module) -> None:
    net = rebuilt(model, (4,))
    (one,) = weighted_layers(net)
    (weights,) = unit_weights(one)
    before = norms(net, (4,))
    bound = float(before.median())
    weights.bound(bound)
    assert before.shape == (6,) and before.max() > bound
    torch.testing.assert_close(norms(net, (4,)), before.clamp(max=bound))


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("imported", [True, False])
def test_units_of_a_transposed_convolution_are_its_channels(imported: bool, groups: int) -> None:
    model = nn.ConvTranspose2d(4, 6, 3, padding=1, groups=groups)
    net = rebuilt(model, (4, 1, 1)) if imported else model
    # The middle of the kernel alone reaches the one output.
    (weights,) = unit_weights(weighted_layers(net)[0])
    with torch.no_grad():
        kernel = torch.zeros_like(weights.parameter)
        kernel[:, :, 1, 1] = torch.arange(1.0, 1 + kernel[:, :, 1, 1].numel()).reshape(
            kernel.shape[:2]
        )
        weights.parameter.copy_(kernel)

    before = norms(net, (4, 1, 1)).flatten()
    bound = float(before.median())
    weights.bound(bound)
    assert before.shape == (6,) and before.max() > bound
    torch.testing.assert_close(norms(net, (4, 1, 1)).flatten(), before.clamp(max=bound))


def test_all_numbers_of_a_unit_count() -> None:
    """A slow oracle: unit by unit."""
    parameter = nn.Parameter(torch.randn(6, 4, 3, 2))
    before = parameter.detach().clone()
    UnitWeights(parameter, Units(1, 3)).bound(2.0)
    for group in range(3):
        for unit in range(4):
            found, start = (
                tensor[2 * group : 2 * group + 2, unit] for tensor in (parameter, before)
            )
            torch.testing.assert_close(found, start * min(1.0, 2.0 / float(start.norm())))


class Sharing(nn.Module):
    """A layer that is used twice, and one matrix in two directions."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(64, 8)
        self.shared = nn.Linear(8, 8)
        self.both = nn.Parameter(torch.randn(8, 5))
        self.last = nn.Linear(8, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.first(x.flatten(1)))
        x = self.shared(F.relu(self.shared(x)))
        return self.last(F.linear(F.relu(x @ self.both), self.both))


def test_a_shared_weight_is_one_layer() -> None:
    net = rebuilt(Sharing(), (1, 8, 8))
    shapes = [
        [tuple(one.shape) for one in part.parameters() if one.ndim > 1]
        for part in weighted_layers(net)
    ]
    assert sorted(shapes) == [[(8, 5)], [(8, 8)], [(8, 64)], [(10, 8)]]
    units = {
        weights.parameter.shape: weights.units
        for part in weighted_layers(net)
        for weights in unit_weights(part)
    }
    assert units[8, 8] == Units(0)
    both = next(part for part in weighted_layers(net) if next(part.parameters()).shape == (8, 5))
    assert [weights.units for weights in unit_weights(both)] == [Units(0), Units(1)]


def test_a_shared_weight_takes_hyperparameters() -> None:
    architecture = import_model(Sharing(), [Input((1, 8, 8))]).architecture
    start = network.rebuilt(architecture, seed=1)
    shapes = [
        next(one.shape for one in part.parameters() if one.ndim > 1)
        for part in weighted_layers(start)
    ]
    protocol = dataclasses.replace(DIGITS.protocol("digits/small"), epochs=1)
    rates = [0.01 if shape != (8, 8) else 1e-12 for shape in shapes]
    found = train(
        architecture,
        DIGITS,
        protocol,
        seed=1,
        hyperparameters={"learning_rate": rates, "max_norm": BOUND},
    )
    both = next(tensor for tensor in found.weights.values() if tensor.shape == (8, 5))
    assert max(both.norm(dim=0).max(), both.norm(dim=1).max()) <= BOUND * (1 + 1e-5)
    slow = {"learning_rate": rates, "weight_decay": 0.0}
    found = train(architecture, DIGITS, protocol, seed=1, hyperparameters=slow)
    for name, tensor in start.state_dict().items():
        if tensor.ndim > 1:
            same = torch.allclose(found.weights[name], tensor, atol=1e-7)
            assert same == (tensor.shape == (8, 8)), name


def test_dropout_of_a_shared_weight_is_that_of_each_layer() -> None:
    net = copy.deepcopy(rebuilt(Sharing(), (1, 8, 8)))
    layers = weighted_layers(net)
    rates = [1 - 1e-6 if next(part.parameters()).shape == (8, 8) else 0.0 for part in layers]
    InputDropout(applied_layers(net), rates, seed=0)
    seen: list[Tensor] = []
    (shared,) = (part for part, rate in zip(layers, rates, strict=True) if rate)
    for part in net.modules():
        if part in shared.applied_in:
            part.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0]))

    net.train()(torch.randn(5, 1, 8, 8))
    assert [int(inputs.count_nonzero()) for inputs in seen] == [0, 0]


class Tied(nn.Module):
    """An embedding whose table is the last matrix as well, given before its input."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(7, 4)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(self.table(x).mean(1), self.table.weight)


def test_the_table_of_tied_embeddings_is_one_layer() -> None:
    model = Tied()
    imported = import_model(model, [Input((3,), "int64")])
    net = network.rebuilt(imported.architecture)
    net.load_state_dict(imported.state_dict(model))
    x = torch.tensor([[0, 1, 6], [2, 2, 3]])
    torch.testing.assert_close(net(x), model(x))
    (weights,) = (weights for part in weighted_layers(net) for weights in unit_weights(part))
    assert weights.units == Units(0) and weights.parameter.shape == (7, 4)


def test_scales_of_several_axes_are_no_matrix() -> None:
    net = network.rebuilt(
        chain(layer("native_layer_norm", normalized_shape=[3, 4], weight=[3, 4]), given="3x4")
    )
    assert weighted_layers(net) == []


class Placed(nn.Module):
    """A table of positions, whose indices are a constant."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(8, 8)
        self.last = nn.Linear(8, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(F.relu(x.flatten(1, 2) + self.table(torch.arange(8))).mean(1))


def test_dropout_leaves_indices_alone() -> None:
    net = rebuilt(Placed(), (1, 8, 8))
    layers = weighted_layers(net)
    x = torch.randn(2, 1, 8, 8)
    before = net.train()(x)
    InputDropout(applied_layers(net), [0.5] * 2, seed=0)
    assert len(layers) == 2 and net(x).isfinite().all()
    assert not torch.equal(net(x), before)


class Written(nn.Module):
    """Modules of a builder, three of which share a matrix; the last has one of its own as well."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = (nn.Linear(6, 6) for _ in range(3))
        self.second.weight = self.third.weight
        self.mixed = nn.Bilinear(6, 6, 2)
        self.mixed.register_parameter("square", self.third.weight)

    def forward(self, x: Tensor) -> Tensor:
        x = self.third(self.second(self.first(x)))
        return self.mixed(x @ self.mixed.square, x)


def test_a_shared_weight_of_written_modules_is_one_layer() -> None:
    net = Written()
    assert weighted_layers(net) == [net.first, net.second, net.mixed]
    assert applied_layers(net) == [[net.first], [net.second, net.third], [net.mixed]]
    seen: list[Tensor] = []
    InputDropout(applied_layers(net), [0.0, 1 - 1e-6, 0.0], seed=0)
    for part in (net.first, net.second, net.third):
        part.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0]))

    net(torch.randn(5, 6))
    assert [int(inputs.count_nonzero()) for inputs in seen] == [30, 0, 0]


def test_a_shared_weight_of_written_modules_takes_one_step() -> None:
    net = Written()
    protocol = DIGITS.protocol("digits/small")
    before = copy.deepcopy(net.state_dict())
    rates = Hyperparameters.of({"learning_rate": [0.1, 1e-12, 0.1], "weight_decay": 0.0})
    steps = Steps(net, DIGITS, protocol, 10, rates)
    steps.take(torch.randn(5, 6), torch.tensor([0, 1, 0, 1, 0]))
    same = {
        name
        for name, tensor in net.state_dict().items()
        if torch.allclose(tensor, before[name], atol=1e-9)
    }
    # A bias that follows no listed layer follows the protocol.
    assert same == {"second.weight", "second.bias", "third.weight", "mixed.square"}
