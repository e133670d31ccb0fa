"""The ensemble against automatic differentiation, and as a surrogate."""

from __future__ import annotations

import itertools
from typing import ClassVar

import numpy as np
import pytest

from archive import spaces
from archive.agents.surrogates.ensemble import descent
from archive.agents.surrogates.ensemble import model as training
from archive.agents.surrogates.ensemble.inputs import SparseInputs
from archive.agents.surrogates.ensemble.model import Ensemble
from archive.errors import InvalidArchitectureError, NumericalError, UsageError
from archive.kernels.features.embedding import EmbeddedDistance


class Counts(EmbeddedDistance):
    """Counts of layers and edges by kind, features that determine the score."""

    name = "counts"
    norm: ClassVar = "l1"
    components = ("labels", "pairs")

    def features(self, architecture):
        labels: dict[str, float] = {}
        pairs: dict[str, float] = {}
        ops = [layer.op for layer in architecture.layers]
        for op in ops:
            labels[op] = labels.get(op, 0.0) + 1.0

        for tail, head in architecture.edges:
            pair = f"{ops[tail]}-{ops[head]}"
            pairs[pair] = pairs.get(pair, 0.0) + 1.0

        return labels, pairs


class Nothing(EmbeddedDistance):
    name = "nothing"
    norm: ClassVar = "l1"
    components = ("nothing",)

    def features(self, architecture):
        return ({},)


def drawn(count, seed=0, space="nasbench201"):
    rng = np.random.default_rng(seed)
    return [spaces.get(space).sample(rng) for _ in range(count)]


def score(architecture):
    return (
        90.0
        + sum(layer.op.startswith("nor_conv") for layer in architecture.layers)
        - len(architecture.edges) / 4
    )


def fitted(count=30, seed=0, **settings):
    networks = drawn(count)
    scores = np.array([score(network) for network in networks])
    return (
        Ensemble(Counts(), **settings).fit(networks, scores, np.random.default_rng(seed)),
        networks,
        scores,
    )


SHAPE = training.NetworkShape(6, 3, 4)


def problem(members=3, epochs=4, n=11):
    rng = np.random.default_rng(5)
    inputs = (rng.random((n, SHAPE.features)) < 0.4) * rng.normal(size=(n, SHAPE.features))
    targets = rng.normal(size=n)
    drawn = training.plan(SHAPE, members, epochs, n, rng)
    return drawn, inputs.astype(np.float32), targets.astype(np.float32)


def by_automatic_differentiation(shape, theta, orders, inputs, targets, batch, rate):
    """One member as torch users write it: double precision, autograd, torch's Adam."""
    import torch

    sizes = [shape.features, *[shape.width] * shape.layers, 1]
    net = torch.nn.Sequential()
    for fan_in, fan_out in itertools.pairwise(sizes):
        net.append(torch.nn.Linear(fan_in, fan_out))
        net.append(torch.nn.ReLU())

    del net[-1]
    net.double()
    linear = [layer for layer in net if isinstance(layer, torch.nn.Linear)]
    first, hidden, last, biases, bias = (
        torch.tensor(p[0]).double() for p in training.split(shape, theta[None])
    )
    with torch.no_grad():
        for layer, weights in zip(linear, [first, *hidden, last[:, None]], strict=True):
            layer.weight.copy_(weights.T)

        for layer, values in zip(linear, [*biases, bias], strict=True):
            layer.bias.copy_(values)

    adam = torch.optim.Adam(net.parameters(), lr=rate, betas=(0.9, 0.99), eps=1e-7)
    x = torch.tensor(inputs).double()
    y = torch.tensor(targets).double()
    for order in orders:
        for start in range(0, len(y), batch):
            chosen = order[start : start + batch].tolist()
            adam.zero_grad()
            (net(x[chosen])[:, 0] - y[chosen]).abs().mean().backward()
            adam.step()

    with torch.no_grad():
        return net(x)[:, 0].numpy()


def test_training_agrees_with_automatic_differentiation():
    plan, inputs, targets = problem()
    rows = SparseInputs.of(inputs)
    thetas = training.train(SHAPE, plan, rows, targets, 4, 0.01, threads=2)
    outputs = training.predict(SHAPE, thetas, rows)
    for member in range(3):
        expected = by_automatic_differentiation(
            SHAPE, plan.thetas[member], plan.orders[member], inputs, targets, 4, 0.01
        )
        np.testing.assert_allclose(outputs[member], expected, atol=2e-5)

    assert np.abs(outputs - training.predict(SHAPE, plan.thetas, rows)).max() > 0.01


@pytest.mark.parametrize("layers", [1, 2])
def test_few_layers(layers):
    shape = training.NetworkShape(6, layers, 4)
    _, inputs, targets = problem()
    plan = training.plan(shape, 1, 3, len(targets), np.random.default_rng(1))
    rows = SparseInputs.of(inputs)
    outputs = training.predict(shape, training.train(shape, plan, rows, targets, 5, 0.02, 1), rows)
    expected = by_automatic_differentiation(
        shape, plan.thetas[0], plan.orders[0], inputs, targets, 5, 0.02
    )
    np.testing.assert_allclose(outputs[0], expected, atol=2e-5)


def test_moments_without_a_gradient_end_at_zero():
    # The weights of a unit that is 0 for all observations; subnormal numbers take a hundred times
    # as long.
    theta = np.array([1.0, -1e-3, 0.5], np.float32)
    moments = np.array([1e-30, -1e-33, 0.25], np.float32), np.array([1e-34, 1e-36, 0.5], np.float32)
    first, second = (moment.copy() for moment in moments)
    for _ in range(600):
        descent._adam(
            theta, np.zeros(3, np.float32), first, second, np.float32(0.01), np.float32(1e-7)
        )

    least = np.finfo(np.float32).tiny
    for moment in (first, second):
        assert (moment[:2] == 0).all()
        assert (np.abs(moment[moment != 0]) >= least).all()

    np.testing.assert_allclose(first[2], 0.25 * 0.9**600, rtol=1e-3)
    np.testing.assert_allclose(second[2], 0.5 * 0.99**600, rtol=1e-3)
    np.testing.assert_array_equal(theta[:2], np.array([1.0, -1e-3], np.float32))


def test_members_differ_in_weights_and_order():
    plan, _, _ = problem()
    assert len(np.unique(plan.thetas[:, 0])) == 3
    assert len({tuple(order) for order in plan.orders[:, 0]}) == 3
    assert len({tuple(order) for order in plan.orders[0]}) == 4
    assert (np.sort(plan.orders, axis=-1) == np.arange(11)).all()
    # Glorot's bounds for each layer; biases begin at 0.
    first, hidden, last, biases, bias = training.split(SHAPE, plan.thetas)
    for part, fans in ((first, 10), (hidden, 8), (last, 5)):
        assert 0.5 * np.sqrt(6 / fans) < np.abs(part).max() <= np.sqrt(6 / fans)

    assert not biases.any() and not bias.any()


def test_learns():
    model, networks, scores = fitted(60)
    unseen = drawn(80, seed=1)
    truth = np.array([score(network) for network in unseen])
    posterior = model.posterior(unseen)
    constant = np.abs(truth - np.median(scores)).mean()
    assert np.abs(posterior.mean - truth).mean() < 0.5 * constant
    assert posterior.best[0] == scores.max()
    assert np.abs(model.posterior(networks).mean - scores).mean() < 0.5 * constant


def test_the_generator_decides_and_threads_do_not():
    unseen = drawn(10, seed=2)
    means = [
        fitted(seed=seed, threads=threads, epochs=5)[0].posterior(unseen).means
        for seed, threads in ((1, 1), (1, 2), (2, 2))
    ]
    np.testing.assert_array_equal(means[0], means[1])
    assert np.abs(means[0] - means[2]).max() > 0


def test_the_posterior_is_the_members_gaussian():
    model, *_ = fitted(epochs=5, members=4)
    unseen = drawn(9, seed=3)
    outputs = model.members(unseen)
    posterior = model.posterior(unseen, joint=True)
    assert posterior.covariances is not None
    np.testing.assert_allclose(posterior.mean, outputs.mean(axis=0))
    np.testing.assert_allclose(posterior.variances[0], outputs.var(axis=0, ddof=1), atol=1e-12)
    np.testing.assert_allclose(posterior.covariances[0], np.cov(outputs.T), atol=1e-9)
    assert model.posterior([]).means.shape == (1, 0)


def test_scores_may_be_shifted_and_scaled():
    networks = drawn(20)
    unseen = drawn(5, seed=4)
    scores = np.array([score(network) for network in networks])
    plain, other = (
        Ensemble(Counts(), epochs=3)
        .fit(networks, given, np.random.default_rng(0))
        .posterior(unseen)
        for given in (scores, 1e-3 * scores - 7.0)
    )
    np.testing.assert_allclose(other.mean, 1e-3 * plain.mean - 7.0, rtol=1e-5)
    np.testing.assert_allclose(other.std, 1e-3 * plain.std, rtol=1e-3)


def test_believing_is_conditioning_the_gaussian():
    model, *_ = fitted(epochs=5)
    pending = drawn(3, seed=5)
    unseen = drawn(6, seed=6)
    joint = model.posterior([*pending, *unseen], joint=True).covariances[0]
    noisy = joint[:3, :3] + model.noise * np.eye(3)
    expected = joint[3:, 3:] - joint[3:, :3] @ np.linalg.solve(noisy, joint[:3, 3:])
    one_by_one = model.hallucinate(pending[:1]).hallucinate(pending[1:])
    for believing in (model.hallucinate(pending), one_by_one):
        after = believing.posterior(unseen, joint=True)
        np.testing.assert_allclose(after.covariances[0], expected, atol=1e-6 * joint.max())
        np.testing.assert_array_equal(after.mean, model.posterior(unseen).mean)
        assert believing.best >= model.posterior(pending).mean.max()

    assert (expected.diagonal() < joint[3:, 3:].diagonal()).all()
    assert model.hallucinate([]) is model


def test_features_that_no_observation_has_are_left_out():
    model, networks, _ = fitted(2, epochs=2)
    model.posterior(drawn(20, seed=1))
    names = {name for network in networks for part in Counts().features(network) for name in part}
    assert model.inputs.size == len(names) < model.inputs.features.count
    assert model.inputs.read(networks).max() == 1.0
    dense = SparseInputs.of(model.inputs.read(drawn(20, seed=1)))
    rows = model.inputs.rows(drawn(20, seed=1))
    np.testing.assert_array_equal(rows.starts, dense.starts)
    assert set(zip(rows.columns, rows.values, strict=True)) == set(
        zip(dense.columns, dense.values, strict=True)
    )


def test_little_to_learn_from():
    (network,) = drawn(1)
    rng = np.random.default_rng(0)
    one = Ensemble(Counts()).fit([network], np.array([3.0]), rng).posterior(drawn(4, seed=1))
    assert np.isfinite(one.mean).all() and np.isfinite(one.std).all()
    same = Ensemble(Counts()).fit([network] * 3, np.full(3, 0.5), rng)
    assert same.posterior([network]).mean[0] == pytest.approx(0.5, abs=0.5)
    mean = (
        Ensemble(Nothing())
        .fit(drawn(3), np.array([1.0, 2.0, 9.0]), rng)
        .posterior(drawn(2, seed=1))
        .mean
    )
    assert mean[0] == mean[1]
    with pytest.raises(NumericalError, match="at least one observation"):
        Ensemble(Counts()).fit([], np.zeros(0), rng)

    with pytest.raises(NumericalError, match="scores must be finite, got nan"):
        Ensemble(Counts()).fit([network], np.array([np.nan]), rng)


def test_weights_without_bound():
    with pytest.raises(NumericalError, match=r"lower its learning rate, got 1e\+30"):
        fitted(rate=1e30, epochs=3)


def test_networks_of_another_space():
    model, networks, _ = fitted(3, epochs=1)
    foreign = drawn(1, space="mlp")
    with pytest.raises(InvalidArchitectureError, match="space nasbench201, got one of mlp"):
        model.posterior(foreign)

    with pytest.raises(InvalidArchitectureError, match="one space"):
        Ensemble(Counts()).fit([*networks, *foreign], np.zeros(4), np.random.default_rng(0))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"members": 1}, "members must be >= 2, got 1"),
        ({"layers": 0}, "layers must be >= 1, got 0"),
        ({"batch": 0}, "batch must be >= 1, got 0"),
        ({"threads": 0}, "threads must be >= 1, got 0"),
        ({"rate": 0.0}, "rate must be > 0 and finite, got 0"),
        ({"rate": np.nan}, "rate must be > 0 and finite, got nan"),
    ],
)
def test_settings_out_of_range(settings, message):
    with pytest.raises(UsageError, match=message):
        Ensemble(Counts(), **settings)


def test_a_kernel_without_features():
    with pytest.raises(UsageError, match="encoding must be a kernel with features, got 'otmann'"):
        Ensemble("otmann")
