"""The edit distance of network morphism: worked examples, the axioms of a metric, bad input."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.architecture import operations
from archive.architecture.graph import Architecture, Layer
from archive.architecture.operations import Operation
from archive.errors import InvalidArchitectureError, UsageError
from archive.kernels.distances.edit import (
    BREAK,
    MAX_SKIPS,
    SKIP,
    EditDistance,
    prepare_sequence,
    sequence,
)
from tests.support import kernel_oracle
from tests.support.strategies import cells, members, relabelled

networks = st.sampled_from(["cnn", "mlp"])
versions = pytest.mark.parametrize("layers", ["width", "attributes"])


def distance(first, second, **config):
    return float(EditDistance(**config).distances([first], [second]).stack[0, 0, 0])


def mlp(*body, skips=()):
    return kernel_oracle.chain("mlp", *body, skips=skips)


def cnn(*body, skips=()):
    return kernel_oracle.chain("cnn", *body, skips=skips)


def cell(ops, edges):
    return Architecture("nasbench101", [Layer("ip"), *map(Layer, ops), Layer("op")], edges)


RELU = ("relu", 8)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (mlp(("relu", 10)), mlp(("relu", 40)), 30 / 40),
        (mlp(("relu", 10)), mlp(("tanh", 10)), 1.0),
        (mlp(("relu", 10), ("relu", 20)), mlp(("relu", 10), ("relu", 99), ("relu", 20)), 1.0),
        # Three layers are widened and one of width 20 is inserted after the first, as in the
        # paper's figure.
        (
            mlp(("relu", 10), ("relu", 10), ("relu", 40)),
            mlp(("relu", 20), ("relu", 20), ("relu", 40), ("relu", 50)),
            0.5 + 0.5 + 1 + 0.2 - 0.2,
        ),
        # Eq. (6): one layer of each network is left out, where eq. (4) would match all three at
        # cost 1.
        (mlp(("relu", 8), ("tanh", 8), ("elu", 8)), mlp(("tanh", 8), ("elu", 8), ("relu", 8)), 2.0),
        (cnn(("conv3", 16), ("fc", 16)), cnn(("res3", 16), ("fc", 64)), 1.75),
        (cnn(("max-pool", None), ("conv3", 8)), cnn(("avg-pool", None), ("conv3", 8)), 1.0),
    ],
)
def test_layers_by_hand(first, second, expected):
    assert distance(first, second) == pytest.approx(expected, rel=1e-12)


def test_a_stride_sets_layers_apart():
    def strided(stride):
        layers = [Layer("ip"), Layer("conv3", 8, stride), Layer("softmax"), Layer("op")]
        return Architecture("cnn", layers, [(0, 1), (1, 2), (2, 3)])

    assert distance(strided(1), strided(2)) == 1.0
    assert distance(strided(1), strided(2), layers="attributes") == pytest.approx(0.5 / 3)


def test_strides_beyond_two_set_layers_apart():
    conv = Operation("conv", "conv", True, strides=(1, 2, 3, 4), kernel=3)
    wide = Operation("wide", "conv", True, strides=(1, 2), kernel=5)
    end = Operation("end", "decision", flat=True)
    operations.define("long-strides", [conv, wide, end])

    def chained(op, stride):
        layers = [Layer("ip"), Layer(op, 8, stride), Layer("end"), Layer("op")]
        return Architecture("long-strides", layers, [(0, 1), (1, 2), (2, 3)])

    networks = [chained("conv", stride) for stride in (1, 2, 3, 4)] + [
        chained("wide", stride) for stride in (1, 2)
    ]
    for at, first in enumerate(networks):
        assert [distance(first, other) for other in networks] == [
            float(other is not first) for other in networks
        ], at


def test_attributes_by_hand():
    def attributes(first, second):
        return distance(cnn(first), cnn(second), layers="attributes")

    assert attributes(("conv3", 10), ("conv5", 40)) == pytest.approx((0.75 + 0.4) / 3)
    assert attributes(("conv3", 10), ("res3", 10)) == 1.0
    assert attributes(("fc", 10), ("fc", 40)) == pytest.approx(0.75)
    one, two = (cell([op], [(0, 1), (1, 2)]) for op in ("conv3x3-bn-relu", "conv1x1-bn-relu"))
    assert distance(one, two, layers="attributes") == pytest.approx((2 / 3) / 2)
    assert distance(one, cell(["maxpool3x3"], [(0, 1), (1, 2)]), layers="attributes") == 1.0


def test_skips_by_hand():
    plain, short, long, both = (
        mlp(*[RELU] * 5, skips=skips) for skips in ([], [(1, 3)], [(2, 5)], [(1, 3), (2, 5)])
    )
    assert [tuple(skip) for skip in prepare_sequence(both, "width").skips] == [
        (SKIP, 1, 1),
        (SKIP, 2, 2),
    ]
    assert distance(plain, short) == distance(short, both) == 1.0
    assert distance(short, long) == pytest.approx((1 + 1) / (2 + 2))
    assert distance(plain, both, lam=0.25) == pytest.approx(0.5)
    assert distance(plain, both, lam=0) == 0.0


def test_where_the_chain_is_broken():
    ops = ["conv3x3-bn-relu", "conv3x3-bn-relu"]
    parallel = [(0, 1), (0, 2), (1, 3), (2, 3)]
    chained = [(0, 1), (0, 2), (1, 3), (2, 3), (1, 2)]
    assert [tuple(skip) for skip in prepare_sequence(cell(ops, parallel), "width").skips] == [
        (SKIP, 0, 1),
        (SKIP, 1, 1),
        (BREAK, 1, 0),
    ]
    assert distance(cell(ops, parallel), cell(ops, chained)) == 1.0
    # A skip and a break are never alike, two breaks are as far apart as two skips.
    ops.append("conv3x3-bn-relu")
    early = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)]
    late = [(0, 1), (1, 2), (1, 3), (2, 4), (3, 4)]
    assert distance(cell(ops, early), cell(ops, late)) == pytest.approx(2 / 3 + 1 / 2)
    assert distance(cell([], []), cell([], [(0, 1)])) == 1.0


@given(cells(), st.integers(0, 2**32 - 1))
def test_the_sequence_is_topological_and_survives_relabelling(network, seed):
    order = sequence(network)
    rank = {u: place for place, u in enumerate(order)}
    assert order[0] == 0
    assert order[-1] == len(order) - 1
    assert all(rank[tail] < rank[head] for tail, head in network.edges)
    mine = prepare_sequence(network, "width")
    other = prepare_sequence(relabelled(network, seed), "width")
    for part in ("kinds", "attributes", "skips"):
        np.testing.assert_array_equal(getattr(mine, part), getattr(other, part))


@versions
@given(st.data())
def test_it_is_a_metric(layers, data):
    name = data.draw(st.sampled_from(["cnn", "mlp", "nasbench101"]))
    three = [data.draw(cells() if name == "nasbench101" else members(name)) for _ in range(3)]
    lam = data.draw(st.sampled_from([0.1, 1.0, 3.0]))
    kernel = EditDistance(lam, layers)
    distances = kernel.distances(three).stack[0]
    np.testing.assert_allclose(
        kernel.distances(three[::-1]).stack[0, ::-1, ::-1], distances, rtol=1e-12
    )
    for i in range(3):
        for j in range(3):
            assert (distances[i, j] > 0) == (three[i].key != three[j].key)
            for k in range(3):
                assert distances[i, j] <= distances[i, k] + distances[k, j] + 1e-9


@given(cells(max_inner=3), cells(max_inner=3), cells(max_inner=3))
def test_triangle_of_small_cells(x, y, z):
    distances = EditDistance().distances([x, y, z]).stack[0]
    assert distances[0, 1] <= distances[0, 2] + distances[2, 1] + 1e-9
    assert (distances[0, 1] > 0) == (x.key != y.key)


def test_threads_change_nothing():
    sample = [kernel_oracle.long_chain(8 + at, at) for at in range(48)]
    one, two = (EditDistance(threads=threads).distances(sample).stack for threads in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_thousand_layers():
    network = kernel_oracle.long_chain(1000, 0)
    shorter = kernel_oracle.long_chain(990, 1)
    distances = EditDistance().distances([network, relabelled(network, 3), shorter]).stack[0]
    assert distances[0, 1] == 0
    assert 10 <= distances[0, 2] <= 1000 + 200
    assert distances[0, 2] == distances[1, 2]


def test_more_skips_than_can_be_matched():
    n = 70
    skips = [(u, v) for u in range(n) for v in range(u + 2, n)]
    with pytest.raises(
        InvalidArchitectureError, match=f"at most {MAX_SKIPS} skips, got {len(skips)}"
    ):
        EditDistance().prepare(mlp(*[RELU] * n, skips=skips))


def test_a_width_beyond_floating_point():
    with pytest.raises(InvalidArchitectureError, match="beyond 1e308") as caught:
        EditDistance().prepare(mlp(RELU, ("relu", 10**400)))

    assert caught.value.layer == 2


def test_blocks_empty_sets_and_spaces():
    kernel = EditDistance()
    sample = [mlp(*[RELU] * at) for at in range(1, 5)]
    block = kernel.distances([sample[3], sample[0]], [kernel.prepare(one) for one in sample[1:]])
    np.testing.assert_array_equal(block.stack[0], [[2, 1, 0], [1, 2, 3]])
    assert kernel.distances([]).stack.shape == (1, 0, 0)
    assert kernel.distances(sample, []).stack.shape == (1, 4, 0)
    assert kernel.pairs([], np.zeros((0, 2), np.int64)).shape == (1, 0)
    with pytest.raises(InvalidArchitectureError, match=r"one space .* got cnn and mlp"):
        kernel.distances(sample, [cnn(("conv3", 8))])


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"lam": -1}, "lam must be a finite number >= 0, got -1"),
        ({"lam": float("nan")}, "lam must be a finite number >= 0, got nan"),
        ({"layers": "labels"}, "layers must be one of width, attributes, got 'labels'"),
        ({"threads": 0}, "threads must be >= 1, got 0"),
    ],
)
def test_settings_out_of_range_are_refused(config, reason):
    with pytest.raises(UsageError, match=reason):
        EditDistance(**config)


def test_instances_and_prepared_networks_travel():
    kernel = pickle.loads(pickle.dumps(EditDistance(0.5)))
    assert (kernel.components, kernel.unnormalised) == (("edit",), 1)
    prepared = kernel.prepare(mlp(RELU, ("tanh", 8)))
    again = pickle.loads(pickle.dumps(prepared))
    assert not kernel.pairs([prepared, again], np.array([[0, 1]])).any()
