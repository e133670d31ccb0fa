"""Gromov-Wasserstein: against all couplings of small networks, exact symmetry and invariance,
bounds, and limits."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.architecture.graph import Architecture, Layer
from archive.errors import InvalidArchitectureError, UsageError
from archive.kernels.distances import gromov_wasserstein as module
from archive.kernels.distances.gromov_wasserstein import GromovWasserstein, GromovWassersteinWarning
from tests.support import kernel_oracle
from tests.support.strategies import cells, members, relabelled

alphas = st.sampled_from([1.0, 0.5])
networks = st.one_of(cells(), members("nasbench201"))


def cell(size: int, *edges: tuple[int, int], op: str = "skip_connect") -> Architecture:
    layers = [Layer("ip"), *[Layer(op)] * (size - 2), Layer("op")]
    return Architecture("nasbench201", layers, edges)


def hops(architecture: Architecture) -> np.ndarray:
    """Shortest ways by Floyd and Warshall."""
    n = len(architecture.layers)
    lengths = np.full((n, n), np.inf)
    np.fill_diagonal(lengths, 0.0)
    for tail, head in architecture.edges:
        lengths[tail, head] = lengths[head, tail] = 1.0

    for k in range(n):
        lengths = np.minimum(lengths, lengths[:, k : k + 1] + lengths[k])

    return np.where(np.isfinite(lengths), lengths, n)


def best_permutation(first: Architecture, second: Architecture, alpha: float) -> float:
    """The least distance over couplings that match layers one to one, for networks of one size."""
    one = hops(first)
    two = hops(second)
    mismatch = np.array([[x.op != y.op for y in second.layers] for x in first.layers], float)
    rows = np.arange(len(one))
    orders = (list(order) for order in itertools.permutations(rows))
    losses = (
        alpha * ((one - two[np.ix_(order, order)]) ** 2).mean()
        + (1 - alpha) * mismatch[rows, order].mean()
        for order in orders
    )
    return float(np.sqrt(min(losses)))


@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_seldom_above_the_best_one_to_one_matching(alpha):
    rng = np.random.default_rng(2)
    pairs = [(random_cell(rng), random_cell(rng)) for _ in range(20)]
    best = np.array([best_permutation(*pair, alpha) for pair in pairs])
    distance = GromovWasserstein(alpha, starts=40)
    distances = np.array(
        [distance.distances([one], [other]).stack[0, 0, 0] for one, other in pairs]
    )
    # No guarantee, as the program is not convex: most are found, and none is missed by far.
    assert (distances <= best + 1e-6).mean() >= 0.8
    assert (distances <= 1.5 * best + 1e-6).all()


def random_cell(rng: np.random.Generator, size: int = 5) -> Architecture:
    ops = rng.choice(["conv3x3-bn-relu", "conv1x1-bn-relu", "maxpool3x3"], size - 2)
    pairs = [(u, v) for u in range(size) for v in range(u + 1, size) if rng.random() < 0.5]
    return Architecture(
        "nasbench101", [Layer("ip"), *(Layer(str(op)) for op in ops), Layer("op")], pairs
    )


@given(cells(2, 5), cells(2, 5), alphas)
def test_more_starts_are_never_worse(first, second, alpha):
    distances = [
        GromovWasserstein(alpha, starts=k).distances([first], [second]).stack[0, 0, 0]
        for k in (1, 2, 4, 8)
    ]
    assert (np.diff(distances) <= 1e-12).all()


@given(networks, cells(), alphas)
def test_never_below_the_third_lower_bound(first, second, alpha):
    distance = GromovWasserstein(alpha, starts=2)
    one, two = (
        distance.prepare(Architecture("nasbench101", *rename(network)))
        for network in (first, second)
    )
    mismatch = np.array([[float(x != y) for y in two.labels] for x in one.labels])
    bound, coupling = module._third_lower_bound(one.hops, two.hops, mismatch, alpha)
    assert distance.pairs([one, two], np.array([[0, 1]]))[0, 0] ** 2 >= bound - 1e-9
    np.testing.assert_allclose(coupling.sum(axis=1), 1 / len(one.hops))


def rename(network: Architecture) -> tuple[list[Layer], tuple[tuple[int, int], ...]]:
    names = {"nor_conv_3x3": "conv3x3-bn-relu", "nor_conv_1x1": "conv1x1-bn-relu"}
    plain = {"skip_connect", "avg_pool_3x3"}
    return [
        Layer("maxpool3x3" if la.op in plain else names.get(la.op, la.op)) for la in network.layers
    ], network.edges


def test_third_lower_bound_by_quantiles():
    first = np.array([[0.0, 1.0], [1.0, 0.0]])
    second = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
    bound, _ = module._third_lower_bound(first, second, np.zeros((2, 3)), 1.0)
    # A row of the first has quantiles 0 0 0 1 1 1 (in sixths), the second 0 0 1 1 2 2 at its ends
    # and 0 0 1 1 1 1.
    ends = (1 + 0 + 0 + 0 + 1 + 1) / 6
    middle = 1 / 6
    assert bound == pytest.approx((2 * ends + middle) / 3)


@given(networks, networks, alphas, st.integers(0, 99))
def test_symmetric_and_invariant_to_the_last_digit(first, second, alpha, seed):
    if first.space != second.space:
        second = first

    one = relabelled(first, seed)
    two = relabelled(second, seed + 1)
    forth = GromovWasserstein(alpha, starts=2).distances([first], [second]).stack
    back = GromovWasserstein(alpha, starts=2).distances([two], [one]).stack
    np.testing.assert_array_equal(forth[0, 0, 0], back[0, 0, 0])
    distance = GromovWasserstein(alpha, starts=1)
    assert not distance.pairs(
        [distance.prepare(first), distance.prepare(one)], np.array([[0, 1]])
    ).any()


def test_by_hand():
    # Two points a hop apart against two points that nothing joins, 2 apart: each coupling that
    # splits nothing changes two of the four distances by 1.
    joined = cell(2, (0, 1))
    apart = cell(2)
    distances = GromovWasserstein().distances([joined], [apart]).stack[0, 0, 0]
    assert distances == pytest.approx(np.sqrt(0.5))
    np.testing.assert_array_equal(GromovWasserstein().prepare(apart).hops, [[0, 2], [2, 0]])


def test_plain_is_blind_to_operations_and_direction_and_fused_is_not():
    path = ((0, 1), (1, 2), (0, 3), (2, 3))
    one = cell(4, *path)
    other = cell(4, *path, op="nor_conv_3x3")
    forked = cell(4, (0, 1), (0, 2), (1, 3), (2, 3))
    # Each layer of the cycle of four is alike, whichever way its edges point.
    assert not GromovWasserstein().distances([one], [other, forked]).stack.any()
    fused = GromovWasserstein(0.25).distances([one], [other]).stack[0, 0, 0]
    assert fused == pytest.approx(np.sqrt(0.75 * 2 / 4))


def test_networks_of_one_wiring_are_solved_once(monkeypatch):
    solved = []
    monkeypatch.setattr(
        module, "gromov_wasserstein", lambda first, second, *_: solved.append(first) or 1.5
    )
    distance = GromovWasserstein()
    chains = [
        cell(3, (0, 1), (1, 2), op=op) for op in ("skip_connect", "nor_conv_3x3", "nor_conv_1x1")
    ]
    distances = distance.distances([*chains, cell(2)]).stack[0]
    assert len(solved) == 1
    np.testing.assert_array_equal(distances, 1.5 * np.array([[0, 0, 0, 1]] * 3 + [[1, 1, 1, 0]]))
    distance.distances(chains, [cell(2)])
    assert len(solved) == 1
    pickle.loads(pickle.dumps(distance)).distances(chains, [cell(2)])
    assert len(solved) == 1


def test_stopping_early_is_a_typed_warning(monkeypatch):
    monkeypatch.setattr(module, "ITERATIONS", 1)
    # Nothing but the uniform coupling to start from, and one step away from it.
    pair = [
        cell(6, (0, 1), (1, 2), (2, 3), (3, 4), (4, 5)),
        cell(5, (0, 1), (0, 2), (0, 3), (1, 4)),
    ]
    with pytest.warns(
        GromovWassersteinWarning, match="between . and . layers stopped after 1 iterations"
    ):
        distances = GromovWasserstein(starts=1).distances(pair[:1], pair[1:]).stack

    assert distances[0, 0, 0] > 0


def test_wide_networks_are_put_in_order_quickly():
    wide = [
        Layer("ip"),
        *(Layer("conv3", 8 + at) for at in range(40)),
        Layer("fc", 8),
        Layer("softmax"),
        Layer("op"),
    ]
    edges = (
        [(0, at) for at in range(1, 41)] + [(at, 41) for at in range(1, 41)] + [(41, 42), (42, 43)]
    )
    network = Architecture("cnn", wide, edges)
    distance = GromovWasserstein()
    assert distance.prepare(network).shape == distance.prepare(relabelled(network, 3)).shape


def test_large_networks_are_refused():
    pair = [kernel_oracle.long_chain(60, seed) for seed in (1, 2)]
    assert GromovWasserstein(starts=2).distances(pair).stack[0, 0, 1] > 0
    with pytest.raises(InvalidArchitectureError, match="at most 128 layers, got 1003"):
        GromovWasserstein().prepare(kernel_oracle.long_chain(1000, 1))


def test_bad_input_and_travel():
    distance = pickle.loads(pickle.dumps(GromovWasserstein(0.5, 3, 20)))
    assert (distance.alpha, distance.starts, distance.max_layers) == (0.5, 3, 20)
    assert distance.components == ("gromov-wasserstein:0.5",)
    assert GromovWasserstein().components == ("gromov-wasserstein",)
    assert distance.distances([]).stack.shape == (1, 0, 0)
    with pytest.raises(InvalidArchitectureError, match="one space"):
        distance.distances(
            [kernel_oracle.chain("mlp", ("relu", 8))], [kernel_oracle.chain("cnn", ("conv3", 8))]
        )

    for config, reason in (
        ({"alpha": 0.0}, r"alpha must be in \(0, 1\], got 0.0"),
        ({"starts": 0}, "starts must be >= 1, got 0"),
        ({"max_layers": 1}, "max_layers must be >= 2, got 1"),
    ):
        with pytest.raises(UsageError, match=reason):
            GromovWasserstein(**config)
