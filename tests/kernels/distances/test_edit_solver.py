"""The compiled solver against direct implementations of equations (6) and (7), with scipy's
Hungarian method."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linear_sum_assignment

from archive.kernels.distances import edit_solver as solver
from archive.kernels.distances.edit import EditDistance, sequence
from tests.support import examples
from tests.support.strategies import cells, members


def layer_distance(x, y):
    """Eq. (5); input, output and all else without units cost nothing when they are equal."""
    if (x.op, x.stride) != (y.op, y.stride):
        return 1.0

    return abs(x.units - y.units) / max(x.units, y.units) if x.units else 0.0


def layers_distance(first, second):
    """Eq. (6), over the whole sequences, ends included."""
    table = np.zeros((len(first) + 1, len(second) + 1))
    table[:, 0], table[0] = range(len(first) + 1), range(len(second) + 1)
    for i, x in enumerate(first, 1):
        for j, y in enumerate(second, 1):
            table[i, j] = min(
                table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + layer_distance(x, y)
            )

    return table[-1, -1]


def skips_of(architecture):
    """Kind, u and delta of every skip and break."""
    order = sequence(architecture)
    edges = {(order.index(tail), order.index(head)) for tail, head in architecture.edges}
    chain = {(u, u + 1) for u in range(len(order) - 1)}
    return [("skip", u, v - u - 1) for u, v in edges - chain] + [
        ("break", u, 0) for u, _ in chain - edges
    ]


def skip_distance(a, b):
    """Eq. (8)."""
    if a[0] != b[0]:
        return 1.0

    below = max(a[1], b[1]) + max(a[2], b[2])
    return (abs(a[1] - b[1]) + abs(a[2] - b[2])) / below if below else 0.0


def skips_distance(first, second):
    """Eq. (7)."""
    cost = np.array([[skip_distance(a, b) for b in second] for a in first]).reshape(
        len(first), len(second)
    )
    return cost[linear_sum_assignment(cost)].sum() + abs(len(first) - len(second))


def edit_distance(first, second, lam):
    ordered = [[network.layers[u] for u in sequence(network)] for network in (first, second)]
    return layers_distance(*ordered) + lam * skips_distance(skips_of(first), skips_of(second))


@given(st.data())
def test_equation_3(data):
    name = data.draw(st.sampled_from(["cnn", "darts", "mlp", "nasbench101", "nasbench201"]))
    strategy = cells() if name == "nasbench101" else members(name)
    one = data.draw(strategy)
    two = data.draw(strategy)
    lam = data.draw(st.sampled_from([0.0, 0.3, 1.0]))
    distances = EditDistance(lam).distances([one], [two]).stack[0, 0, 0]
    assert distances == pytest.approx(edit_distance(one, two, lam), rel=1e-12, abs=1e-12)


skip_sets = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 12), st.integers(0, 6)), unique=True, max_size=25
)


@examples(5)
@given(skip_sets, skip_sets)
def test_skips_in_common_need_no_matching(first, second):
    table = np.array(sorted(first) + sorted(second), np.int64).reshape(-1, 3)
    room = solver.workspace(0, max(len(first), len(second)))
    m = len(first)
    n = len(table)
    expected = pytest.approx(skips_distance(first, second), rel=1e-12, abs=1e-12)
    assert solver._skips(0, m, m, n, table, room) == expected
    assert solver._skips(m, n, 0, m, table, room) == expected


@st.composite
def costs(draw):
    rows = draw(st.integers(0, 7))
    columns = draw(st.integers(rows, 9))
    # Few distinct values make ties.
    entry = draw(st.sampled_from([st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 1)]))
    return draw(arrays(float, (rows, columns), elements=entry))


@examples(5)
@given(costs())
def test_assignment(cost):
    rows, columns = cost.shape
    room = solver.workspace(0, columns)
    room.cost[:rows, :columns] = cost
    actual = solver._assign(rows, columns, room)
    assert actual == pytest.approx(cost[linear_sum_assignment(cost)].sum(), rel=1e-12, abs=1e-12)
    assert sorted(set(room.match[1:]) - {0}) == list(range(1, rows + 1))


def test_large_assignment():
    rng = np.random.default_rng(0)
    room = solver.workspace(0, 120)
    room.cost[:] = rng.integers(0, 30, (120, 120)) / 30
    expected = room.cost[linear_sum_assignment(room.cost)].sum()
    assert solver._assign(120, 120, room) == pytest.approx(expected, rel=1e-12)


sequences = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from([0.0, 1.0, 2.0, 5.0])), max_size=14
)


@examples(5)
@given(sequences, sequences)
def test_common_ends_need_no_programme(first, second):
    class Plain:
        def __init__(self, op, units):
            self.op = op
            self.units = units
            self.stride = 1

    rows = first + second
    kinds = np.array([kind for kind, _ in rows], np.int64)
    attributes = np.array([width for _, width in rows], float).reshape(-1, 1)
    # Widths of 0 are absent ones: equal to each other, and 1 apart from all others.
    expected = layers_distance(
        *([Plain((kind, width == 0), width) for kind, width in one] for one in (first, second))
    )
    m = len(first)
    n = len(rows)
    actual = solver._layers(0, m, m, n, kinds, np.ones(n), attributes, np.empty(15))
    assert actual == pytest.approx(expected, rel=1e-12, abs=1e-12)
