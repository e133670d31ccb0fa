"""TreeBO: its covariance on trees, its gradient, and searches for depth and operations."""

from __future__ import annotations

import numpy as np
import pytest

from archive import spaces
from archive.agents.base import History, Pending
from archive.agents.baselines.treebo import TreeBO
from archive.agents.encodings import ABSENT, decisions_of
from archive.agents.surrogates.gp import tree
from archive.errors import UsageError
from tests.support.histories import observed


@pytest.fixture
def decisions():
    return decisions_of(spaces.get("mlp", max_layers=8), "treebo")


def drawn(decisions, count, seed=0):
    rng = np.random.default_rng(seed)
    return [decisions.complete([ABSENT] * len(decisions.decisions), rng) for _ in range(count)]


def covariance_by_hand(decisions, x, y, theta):
    """One pair, decision by decision."""
    a_c, a_g, s, _ = np.exp(theta)
    linear = 0.0
    apart = 0.0
    made = 0
    for d, (decision, p, q) in enumerate(zip(decisions.decisions, x, y, strict=True)):
        both = p != ABSENT and q != ABSENT
        steps = len(decision.choices) - 1
        if both and decision.ordered:
            linear += 1 + (2 * p / steps - 1) * (2 * q / steps - 1)
        elif both:
            linear += p == q

        if d >= decisions.roots and (p, q) != (ABSENT, ABSENT):
            made += 1
            apart += abs(p - q) / steps if both and decision.ordered else p != q

    lengths = [sum(choice != ABSENT for choice in one) for one in (x, y)]
    leaf = np.exp(-apart / made / s) if x[: decisions.roots] == y[: decisions.roots] else 0.0
    return a_c * linear / np.sqrt(lengths[0] * lengths[1]) + a_g * leaf


def test_covariance_by_hand(decisions):
    vectors = drawn(decisions, 12)
    theta = np.log([0.7, 1.3, 0.4, 0.1])
    features = tree.TreeFeatures(decisions)
    value = features.blocks(vectors, vectors).value(theta)
    expected = [[covariance_by_hand(decisions, x, y, theta) for y in vectors] for x in vectors]
    assert value == pytest.approx(np.array(expected))
    assert features.variance(vectors, theta) == pytest.approx(np.diagonal(value))
    assert np.linalg.eigvalsh(value).min() > -1e-9


def test_leaves_share_the_linear_part_only(decisions):
    vectors = drawn(decisions, 30)
    blocks = tree.TreeFeatures(decisions).blocks(vectors, vectors)
    depth = np.array([made[0] for made in vectors])
    assert np.array_equal(blocks.same == 1.0, depth[:, None] == depth[None, :])
    assert (blocks.linear[blocks.same == 0.0] != 0.0).any()


def test_gradient_of_the_objective(decisions):
    vectors = drawn(decisions, 15)
    rng = np.random.default_rng(0)
    blocks = tree.TreeFeatures(decisions).blocks(vectors, vectors)
    values = rng.standard_normal(15)
    theta = np.log([0.5, 0.8, 0.3, 0.2])
    _, gradient = tree.objective(theta, blocks, values)
    for at in range(4):
        shift = 1e-5 * np.eye(4)[at]
        sides = [tree.objective(theta + sign * shift, blocks, values)[0] for sign in (1, -1)]
        assert gradient[at] == pytest.approx((sides[0] - sides[1]) / 2e-5, rel=1e-5, abs=1e-6)


def test_hallucination_keeps_the_mean_and_shrinks_the_deviation(decisions):
    vectors = drawn(decisions, 20)
    rng = np.random.default_rng(0)
    model = tree.fit(tree.TreeFeatures(decisions), vectors[:15], rng.standard_normal(15), rng)
    before = model.posterior(vectors[15:])
    after = model.hallucinate(vectors[15:17]).posterior(vectors[15:])
    assert after.mean == pytest.approx(before.mean)
    assert (after.std[:2] < before.std[:2]).all()


def test_learns_depth_and_operations():
    """The score counts layers of relu: deep networks of relu only are best."""
    space = spaces.get("mlp", max_layers=9)
    decisions = decisions_of(space, "treebo")

    def score(architecture):
        return sum(layer.op == "relu" for layer in architecture.layers)

    every = [decisions.decode(made) for made in drawn(decisions, 40)]
    scores = [score(architecture) for architecture in every]
    (suggestion,) = TreeBO(space).propose(
        History(observed(every, scores)), 1, np.random.default_rng(0)
    )
    assert score(suggestion.architecture) > max(scores)
    assert suggestion.acquisition > 0
    assert suggestion.mean > np.mean(scores)


def test_branched_networks_are_left_out():
    space = spaces.get("mlp")
    rng = np.random.default_rng(0)
    decisions = decisions_of(space, "treebo")
    every = [space.sample(rng) for _ in range(40)]
    branched = [architecture for architecture in every if decisions.encode(architecture) is None][
        :11
    ]
    history = History(observed(branched, np.linspace(0, 1, 11)), (Pending(every[-1]),))
    (suggestion,) = TreeBO(space).propose(history, 1, rng)
    assert suggestion.acquisition is None


def test_settings_are_checked():
    space = spaces.get("mlp")
    with pytest.raises(UsageError, match="n_initial must be >= 0, got -1"):
        TreeBO(space, n_initial=-1)

    with pytest.raises(UsageError, match="climbs must be >= 1, got 0"):
        TreeBO(space, climbs=0)

    with pytest.raises(
        UsageError,
        match="ts must rank all candidates at once, and agent treebo ranks them in several",
    ):
        TreeBO(space, acquisition="ts")


def test_hyperparameters_of_many_observations_are_those_of_some(decisions, monkeypatch):
    vectors = drawn(decisions, 40)
    rng = np.random.default_rng(0)
    monkeypatch.setattr(tree, "OBSERVATIONS", 15)
    sizes = []
    objective = tree.objective
    monkeypatch.setattr(
        tree,
        "objective",
        lambda theta, blocks, y: sizes.append(len(y)) or objective(theta, blocks, y),
    )
    model = tree.fit(tree.TreeFeatures(decisions), vectors, rng.standard_normal(40), rng)
    assert set(sizes) == {15}
    assert len(model.process.values) == 40
