"""The proxies: each against its formula on a network small enough to compute by hand, and on
networks of spaces."""

from __future__ import annotations

import math
from unittest import mock

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from archive import spaces
from archive.errors import UsageError
from archive.trainer.nn import builders
from archive.trainer.protocols.networks import NetworkForm
from archive.trainer.proxies import registry
from archive.trainer.proxies.measurement import ProxyMeasurement
from archive.trainer.proxies.probe import NetworkProbe
from archive.trainer.tasks import registry as tasks


def probe(network, inputs=5, batch=4, classes=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shape = (inputs,) if isinstance(inputs, int) else inputs
    x = torch.randn((batch, *shape), generator=generator)
    return NetworkProbe(network, x, torch.randint(classes, (batch,), generator=generator))


def plain(normalise=False):
    torch.manual_seed(1)
    norm = nn.BatchNorm1d(6) if normalise else nn.Identity()
    return nn.Sequential(nn.Linear(5, 6), norm, nn.ReLU(), nn.Linear(6, 3))


class Functional(nn.Module):
    """The network of `plain(True)`, written with functions that overwrite their input."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, _, self.last = plain(True)

    def forward(self, x):
        return F.linear(
            F.relu_(self.norm(F.linear(x, self.first.weight, self.first.bias))),
            self.last.weight,
            self.last.bias,
        )


def score(name, *arguments, **options):
    return registry.get(name)(probe(*arguments, **options))


def test_gradients_and_saliencies_follow_their_formulas():
    network = plain()
    case = probe(network)
    hidden = network[0](case.inputs)
    outputs = network[3](hidden.relu())
    loss = F.cross_entropy(outputs, case.targets)
    weights = [network[0].weight, network[3].weight]
    gradients = torch.autograd.grad(loss, [*weights, hidden, outputs], retain_graph=True)
    assert registry.get("grad_norm")(case) == pytest.approx(
        float(sum(g.norm() for g in gradients[:2]))
    )
    expected = sum((w * g).detach().abs().sum() for w, g in zip(weights, gradients, strict=False))
    assert registry.get("snip")(case) == pytest.approx(float(expected.detach()))
    channels = zip((hidden, outputs), gradients[2:], (5, 6), strict=True)
    expected = sum(0.5 * count * (a * g).square().mean(0).sum() for a, g, count in channels)
    assert registry.get("fisher")(case) == pytest.approx(float(expected.detach()))


def test_synflow_is_the_sum_of_all_paths_whatever_the_normalisation():
    network = plain(normalise=True)
    first, last = (network[at].weight.detach().double().abs() for at in (0, 3))
    bias = network[0].bias.detach().double().abs()
    # Both layers carry the same flow, but paths from the offsets of the first layer begin at the
    # second.
    flow = (last @ first).sum() + (last @ (first.sum(1) + bias)).sum()
    assert score("synflow", network) == pytest.approx(math.log(float(flow)))


def test_synflow_of_two_decisions_is_that_of_their_mean():
    rng = np.random.default_rng(0)
    sampled = (spaces.get("cnn").sample(rng) for _ in range(100))
    network = next(each for each in sampled if len(each.parents[-1]) == 2)
    deciding = builders.build(network, NetworkForm((1, 8, 8), 10, "classification"))
    with mock.patch.object(deciding, "classifies", False):
        expected = score("synflow", deciding, inputs=(1, 8, 8))

    assert math.isfinite(expected)
    assert score("synflow", deciding, inputs=(1, 8, 8)) == pytest.approx(expected)


def rectified(units):
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, units), nn.ReLU(), nn.Linear(units, 3))


def test_naswot_counts_units_in_the_same_state():
    network = rectified(32)
    case = probe(network)
    states = (network[0](case.inputs) > 0).numpy()
    agreement = np.array([[float((a == b).sum()) for b in states] for a in states])
    assert math.isfinite(registry.get("naswot")(case))
    assert registry.get("naswot")(case) == pytest.approx(np.linalg.slogdet(agreement)[1])


@pytest.mark.parametrize("units", [2, 8, 16])
def test_naswot_is_unknown_for_a_singular_matrix(units):
    # K has rank 2 * units at most; its computed determinant is a product of rounding errors.
    assert math.isnan(registry.get("naswot")(probe(rectified(units), batch=64)))


def test_jacov_is_largest_for_gradients_that_are_not_correlated():
    # The gradient of a sum of squares is the input itself, times two.
    class Squares(nn.Module):
        def forward(self, x):
            return x.square()

    independent = NetworkProbe(
        Squares(), torch.tensor([[1.0, -1, 1, -1], [1, 1, -1, -1]]), torch.zeros(2).long()
    )
    equal = NetworkProbe(
        Squares(), torch.tensor([[1.0, -1, 1, -1], [1, -1, 1, -1]]), torch.zeros(2).long()
    )
    k = 1e-5
    jacov = registry.get("jacov")
    assert jacov(independent) == pytest.approx(-2 * (math.log(1 + k) + 1 / (1 + k)))
    assert jacov(equal) == pytest.approx(-(math.log(2 + k) + 1 / (2 + k) + math.log(k) + 1 / k))


def test_expressivity_is_the_entropy_of_the_principal_components():
    x = torch.cat([torch.eye(4), -torch.eye(4)])
    case = NetworkProbe(nn.Linear(4, 2), x, torch.zeros(8).long())
    assert registry.get("expressivity")(case) == pytest.approx(math.log(4))
    narrow = NetworkProbe(nn.Linear(4, 2), x[:, :1].repeat(1, 4), torch.zeros(8).long())
    assert registry.get("expressivity")(narrow) == pytest.approx(0.0, abs=1e-6)


def test_zen_restores_the_scale_that_normalisation_removes():
    linear = nn.Sequential(nn.Conv2d(2, 3, 1, bias=False), nn.Flatten(), nn.Linear(48, 2))
    normalised = nn.Sequential(linear[0], nn.BatchNorm2d(3, affine=False), *linear[1:])
    plain_score, restored = (score("zen", each, inputs=(2, 4, 4)) for each in (linear, normalised))
    # Channels of different variances share one factor.
    assert restored == pytest.approx(plain_score, abs=0.5)
    with torch.no_grad():
        linear[0].weight.mul_(100.0)

    assert score("zen", linear, inputs=(2, 4, 4)) == plain_score


@pytest.mark.parametrize("name", registry.names())
def test_modules_and_functions_have_the_same_score_and_are_left_as_they_were(name):
    network = plain(normalise=True)
    before = {key: tensor.clone() for key, tensor in network.state_dict().items()}
    first = score(name, network)
    assert first == score(name, network)
    assert first == pytest.approx(score(name, Functional()))
    assert all(torch.equal(before[key], tensor) for key, tensor in network.state_dict().items())


def test_a_network_without_the_parts_of_a_proxy_has_no_score():
    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = nn.Parameter(torch.ones(1))

        def forward(self, x):
            return x * self.factor

    for name in ("synflow", "naswot", "fisher", "expressivity", "zen"):
        assert registry.get(name).needs
        assert math.isnan(score(name, Scale()))


def test_every_space_of_a_task_has_scores_that_depend_on_the_seed_alone():
    task = tasks.get("digits")
    measure = ProxyMeasurement(task, task.protocol("digits/1"))
    networks = [
        spaces.get(name).sample(np.random.default_rng(3)) for name in ("mlp", "cnn", "nasbench201")
    ]
    for network in networks[:2]:
        scores = measure(network)
        assert scores.keys() == {*registry.names(), "params", "flops"}
        assert all(map(math.isfinite, scores.values()))
        assert scores == ProxyMeasurement(task, task.protocol("digits/1"))(network)


def test_a_recipe_may_train_other_networks():
    task = tasks.get("digits")
    with pytest.raises(UsageError, match="recipe"):
        ProxyMeasurement(task, task.protocol("digits/1+recipe:mine"))
