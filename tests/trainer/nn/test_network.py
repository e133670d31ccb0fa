"""Networks from architectures: every operation of both spaces, concatenation, the average of the
decision layers."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from archive.architecture.graph import Architecture, Layer
from archive.architecture.operations import vocabulary
from archive.errors import InvalidArchitectureError
from archive.trainer.nn import builders, costs
from archive.trainer.nn.layers import Network
from archive.trainer.protocols.networks import NetworkForm
from tests.support import examples
from tests.support.networks.nets import TINY_CNN, TINY_MLP, net
from tests.support.strategies import members, relabelled


def images(architecture: Architecture, side: int = 8, seed: int = 0, **kwargs) -> Network:
    return Network(
        architecture, NetworkForm((1, side, side), 10, "classification", **kwargs), seed=seed
    )


def vectors(architecture: Architecture, features: int, **kwargs) -> Network:
    return Network(architecture, NetworkForm((features,), 1, "regression", **kwargs))


def hidden(space: str) -> list[str]:
    groups = ("input", "output", "decision")
    return [name for name, op in vocabulary(space).operations.items() if op.group not in groups]


@pytest.mark.parametrize("op", hidden("cnn"))
@pytest.mark.parametrize("side", [1, 2, 7, 8])
def test_every_operation_of_cnn_builds(op, side):
    for stride in vocabulary("cnn")[op].strides:
        units = 6 if vocabulary("cnn")[op].has_units else None
        chain = [Layer("ip"), Layer(op, units, stride), Layer("softmax"), Layer("op")]
        network = images(Architecture("cnn", chain, [(0, 1), (1, 2), (2, 3)]), side)
        assert network(torch.randn(4, 1, side, side)).shape == (4, 10)


@pytest.mark.parametrize("op", hidden("mlp"))
def test_every_operation_of_mlp_builds(op):
    network = vectors(net("mlp", f"{op}/6 {op}/3 linear"), 5)
    assert network(torch.randn(4, 5)).shape == (4, 1)


def test_an_mlp_takes_images_as_vectors():
    with_skip = net("mlp", "relu/6 tanh/4 linear", [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)])
    assert images(with_skip)(torch.randn(4, 1, 8, 8)).shape == (4, 10)


def test_parents_are_concatenated_in_the_order_of_their_positions():
    two = net("mlp", "relu/2 tanh/3 linear", [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)])
    network = vectors(two, 4, normalise=False)
    x = torch.randn(5, 4)
    left, right, last = (network.layers[u] for u in (1, 2, 3))
    a = F.relu(F.linear(x, left.affine.weight))
    b = torch.tanh(F.linear(x, right.affine.weight))
    torch.testing.assert_close(network(x), F.linear(torch.cat((a, b), 1), last.weight))


def test_probabilities_of_decision_layers_are_averaged():
    two = net("cnn", "softmax softmax", [(0, 1), (0, 2), (1, 3), (2, 3)])
    network = Network(two, NetworkForm((1, 1, 1), 2, "classification"))
    with torch.no_grad():
        for u, logits in ((1, [0.0, math.log(3.0)]), (2, [math.log(4.0), 0.0])):
            network.layers[u].weight.zero_()
            network.layers[u].bias.copy_(torch.tensor(logits))

    # (1/4 + 4/5) / 2 and (3/4 + 1/5) / 2
    torch.testing.assert_close(
        network(torch.zeros(1, 1, 1, 1)).exp(), torch.tensor([[0.525, 0.475]])
    )


def test_average_of_tiny_probabilities_stays_finite():
    two = net("cnn", "softmax softmax", [(0, 1), (0, 2), (1, 3), (2, 3)])
    network = Network(two, NetworkForm((1, 1, 1), 2, "classification"))
    with torch.no_grad():
        for u in (1, 2):
            network.layers[u].bias.copy_(torch.tensor([0.0, 500.0]))

    loss = F.cross_entropy(network(torch.zeros(1, 1, 1, 1)), torch.tensor([0]))
    loss.backward()
    assert loss.item() == pytest.approx(500.0)
    assert network.layers[1].bias.grad.tolist() == pytest.approx([-0.5, 0.5], rel=1e-4)


def test_predictions_of_decision_layers_are_averaged():
    two = net("mlp", "relu/3 linear linear", [(0, 1), (1, 2), (0, 3), (2, 4), (3, 4)])
    network = vectors(two, 2, normalise=False)
    x = torch.randn(3, 2)
    deep = network.layers[2](F.relu(F.linear(x, network.layers[1].affine.weight)))
    torch.testing.assert_close(network(x), (deep + network.layers[3](x)) / 2)


def test_parameters_and_operations_are_counted():
    network = images(TINY_CNN, normalise=False)
    # conv3: 8 kernels of 9, 8 biases on 64 pixels; fc: 8 * 16 inputs; softmax: 16 inputs
    params = (8 * 9 + 8) + (16 * 128 + 16) + (10 * 16 + 10)
    macs = 8 * 9 * 64 + 16 * 128 + 10 * 16
    assert costs.measure(network, (1, 8, 8)) == (params, macs + 8 * 64 + 16 + 10)
    assert costs.measure(images(TINY_CNN), (1, 8, 8)) == (params + 8 + 16, macs + 10)


def test_one_seed_gives_one_network():
    first = images(TINY_CNN, seed=3)
    again = images(TINY_CNN, seed=3)
    other = images(TINY_CNN, seed=4)
    assert all(
        torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True)
    )
    assert not torch.equal(first.layers[1].filter.weight, other.layers[1].filter.weight)


def test_building_leaves_the_global_generator_alone():
    state = torch.get_rng_state()
    images(TINY_CNN)
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize(
    ("architecture", "shape", "kind", "reason"),
    [
        (TINY_CNN, (5,), "classification", "needs images"),
        (TINY_CNN, (1, 8, 8), "regression", "softmax"),
    ],
)
def test_unsuitable_networks_are_refused(architecture, shape, kind, reason):
    with pytest.raises(InvalidArchitectureError, match=reason):
        builders.build(architecture, NetworkForm(shape, 1, kind))


@given(members("cnn"), st.integers(1, 9))
@settings(examples(0.5), suppress_health_check=[HealthCheck.too_slow])
def test_any_member_of_cnn_takes_a_training_step(architecture, side):
    network = images(architecture, side)
    network.train()
    loss = F.cross_entropy(network(torch.randn(3, 1, side, side)), torch.tensor([0, 5, 9]))
    loss.backward()
    assert loss.isfinite()
    assert all(parameter.grad is not None for parameter in network.parameters())


@given(members("mlp"))
@settings(examples(0.5), suppress_health_check=[HealthCheck.too_slow])
def test_any_member_of_mlp_takes_a_training_step(architecture):
    network = vectors(architecture, 4, normalise=False)
    loss = F.mse_loss(network(torch.randn(8, 4)), torch.randn(8, 1))
    loss.backward()
    assert loss.isfinite()
    assert all(parameter.grad is not None for parameter in network.parameters())


def test_relabelled_networks_have_one_canonical_build():
    shuffled = relabelled(TINY_MLP, 5)
    a = vectors(TINY_MLP.canonical, 4)
    b = vectors(shuffled.canonical, 4)
    x = torch.randn(3, 4)
    a.eval(), b.eval()
    assert torch.equal(a(x), b(x))
