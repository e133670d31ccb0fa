"""Networks that are built again from imported architectures: the functions of the models, and what
is refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from archive.architecture.aten.wiring import Input
from archive.architecture.graph import Architecture
from archive.errors import InvalidArchitectureError
from archive.trainer.fit.train import train
from archive.trainer.intake.models import import_model
from archive.trainer.nn import builders
from archive.trainer.nn.aten import network
from archive.trainer.nn.base import weighted_layers
from archive.trainer.protocols.networks import NetworkForm
from archive.trainer.tasks.builtin import DIGITS
from tests.support.networks.torch_nets import chain, classifiers, layer
from tests.support.networks.torch_nets import network as network_of
from tests.support.strategies import relabelled

FORM = NetworkForm((1, 8, 8), 10, "classification")


class Mixed(nn.Module):
    """Operations that a graph can get wrong: two modes, a shared weight, constants, sizes of the
    batch, lists."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 4, (3, 5), (2, 1), padding=(1, 2), bias=False)
        self.norm = nn.BatchNorm2d(4, momentum=0.3, eps=1e-3)
        self.up = nn.ConvTranspose2d(4, 4, 2, 2, groups=2)
        self.shared = nn.Linear(6, 6)
        self.heads = nn.MultiheadAttention(6, 2, batch_first=True)
        self.table = nn.Parameter(torch.randn(1, 4, 6))
        self.register_buffer("order", torch.tensor([2, 0, 3, 1]))

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[0]
        x = F.max_pool2d(self.up(F.relu6(self.norm(self.conv(x)))), 2)
        x = F.interpolate(x, (4, 6))[:, self.order] - 1.5
        low, high = x.flatten(1, 2).view(n, 4, 4, 6).chunk(2, 2)
        x = torch.cat([high, low], 2).mean(2) / (1 + self.table.abs())
        x = self.heads(x, x, x, need_weights=False)[0] + x.new_full((n, 1, 1), 0.5)
        return self.shared(torch.where(x > 0, self.shared(x), 2 - x)).amax(1)


def test_a_rebuilt_network_computes_what_the_model_does() -> None:
    torch.manual_seed(0)
    model = Mixed()
    x = torch.randn(3, 2, 8, 6)
    imported = import_model(model, [Input((2, 8, 6))])
    again = network.rebuilt(imported.architecture, seed=1)
    again.load_state_dict(imported.state_dict(model), strict=True)
    for mode in (False, True):
        ours = again.train(mode)
        theirs = model.train(mode)
        torch.testing.assert_close(ours(x), theirs(x))

    # The statistics of the batch of the second pass.
    assert set(imported.names.values()) == {*model.state_dict()} - {
        "norm.num_batches_tracked",
        "order",
    }
    found = imported.state_dict(model)
    expected = again.state_dict()
    for name in found:
        torch.testing.assert_close(found[name], expected[name])


@pytest.mark.whole
@pytest.mark.lasts(8)
def test_an_imported_resnet_is_the_model_and_trains() -> None:
    from torchvision import models

    model = models.resnet18(num_classes=10)
    imported = import_model(model, [Input((3, 32, 32))])
    again = network.rebuilt(imported.architecture)
    again.load_state_dict(imported.state_dict(model), strict=True)
    x = torch.randn(2, 3, 32, 32)
    torch.testing.assert_close(again.eval()(x), model.eval()(x))
    # Images of digits are grey, and smaller than those that the network was imported for.
    protocol = dataclasses.replace(DIGITS.protocol("digits/small"), epochs=1)
    outcome = train(imported.architecture, DIGITS, protocol, seed=1)
    assert outcome.metrics["params"] == imported.params == 11_181_642
    assert outcome.weights.keys() == again.state_dict().keys()
    assert outcome.metrics["train_loss"] > 0


def test_modules_of_modes_follow_the_mode() -> None:
    net = builders.build(
        chain(layer("dropout", p=0.9), layer("view", size=[-1, 64]), given="1x8x8"), _form(64)
    )
    x = torch.ones(5, 1, 8, 8)
    assert torch.equal(net.eval()(x), torch.ones(5, 64))
    torch.testing.assert_close(net.train()(x).unique(), torch.tensor([0.0, 10.0]))


def test_every_channel_gets_a_grey_image() -> None:
    inner = [layer("sum", dim=[2, 3]), layer("cat", dim=1)]
    net = builders.build(chain(*inner, given="3x4x4"), _form(3))
    assert net(torch.ones(2, 1, 8, 8)).tolist() == [[64.0] * 3] * 2


def test_initial_weights_are_those_of_torch() -> None:
    net = builders.build(_mobile(), FORM, 3)
    states = {
        name.split("_")[0] + name.rpartition(".")[2]: value
        for name, value in net.state_dict().items()
    }
    assert torch.equal(states["batchrunning_var"], torch.ones(8))
    assert torch.equal(states["batchbias"], torch.zeros(8))
    # Both within 1 / sqrt(fan in), and most of the range is used.
    assert 0.2 < states["linearweight"].abs().max() <= 1 / 8**0.5
    assert 0.2 < states["convolutionweight"].abs().max() <= 1 / 9**0.5


def _mobile() -> Architecture:
    return classifiers()[1]


def _form(outputs: int) -> NetworkForm:
    return dataclasses.replace(FORM, outputs=outputs)


REFUSED: dict[str, tuple[Callable[[], Architecture], str]] = {
    "outputs": (
        lambda: chain(layer("mean", dim=[2, 3]), given="3x8x8"),
        (
            r"outputs of the shape \(3,\), and the task needs \(10,\): import it with .* --set "
            r"num_classes=10"
        ),
    ),
    "two outputs": (
        lambda: network_of([layer("view", size=[-1, 64])], [(0, 1, 0), (1, 2, 0), (0, 2, 1)]),
        "the network has outputs of the shape 2 tensors",
    ),
    "size": (
        lambda: chain(
            layer("view", size=[-1, 300]), layer("linear", weight=[10, 300]), given="3x10x10"
        ),
        (
            r"imported for inputs 3x10x10 and takes none of the shape \(1, 8, 8\): shape '\[-1, "
            r"300\]' is invalid"
        ),
    ),
    "indices": (
        lambda: chain(layer("_to_copy", dtype="float32"), given="8:int64"),
        "the network takes 8:int64",
    ),
    "type": (
        lambda: chain(layer("_to_copy", dtype="load")),
        "dtype of _to_copy must be one of float32, .* got load",
    ),
    "memory": (
        lambda: chain(layer("linear", weight=[2**40, 2**40])),
        "PyTorch cannot build the network: .*overflow",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_built_says_why(case: str) -> None:
    make, reason = REFUSED[case]
    with pytest.raises(InvalidArchitectureError, match=reason) as caught:
        builders.build(make(), FORM)

    assert "\n" not in str(caught.value)


def test_blocks_have_weights_of_their_own_in_each_repeat() -> None:
    net = builders.build(classifiers()[3], FORM)
    kernels = [value for name, value in net.named_parameters() if value.shape == (4, 4, 3, 3)]
    assert len(kernels) == 3
    assert not torch.equal(kernels[0], kernels[1])
    assert relabelled(classifiers()[3], 2).key == classifiers()[3].key


class Tokens(nn.Module):
    """A class token and a table of positions, as vision transformers have them."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, 4, 4, 4)
        self.head = nn.Linear(4, 10)
        self.token = nn.Parameter(torch.zeros(1, 1, 4))
        self.positions = nn.Parameter(torch.ones(1, 5, 4))

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1)
        return self.head((x + self.positions).mean(1))


@pytest.mark.parametrize(
    "hyperparameters",
    [{"dropout": 0.1}, {"max_norm": 0.5}, {"learning_rate": [0.01, 0.02], "dropout": [0.0, 0.1]}],
)
def test_hyperparameters_of_layers_leave_tokens_out(hyperparameters):
    architecture = import_model(Tokens(), [Input((1, 8, 8))]).architecture
    assert len(weighted_layers(network.rebuilt(architecture))) == 2
    protocol = dataclasses.replace(DIGITS.protocol("digits/small"), epochs=1)
    assert (
        0.0 <= train(architecture, DIGITS, protocol, hyperparameters=hyperparameters).value <= 1.0
    )


def test_a_rate_is_that_of_a_network_without_layers_with_weights_too():
    model = nn.Sequential(nn.Flatten(), nn.utils.parametrizations.weight_norm(nn.Linear(64, 10)))
    architecture = import_model(model, [Input((1, 8, 8))]).architecture
    assert weighted_layers(network.rebuilt(architecture)) == []
    protocol = dataclasses.replace(DIGITS.protocol("digits/small"), epochs=1)
    slow, fast = (
        train(
            architecture, DIGITS, protocol, seed=1, hyperparameters={"learning_rate": rate}
        ).curve["train_loss"][-1]
        for rate in (1e-9, 0.05)
    )
    assert slow > fast + 0.1
