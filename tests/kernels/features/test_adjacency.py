"""The adjacency encodings against matrices of the canonical order, and their sizes against
BANANAS."""

from __future__ import annotations

from itertools import combinations
from urllib.parse import quote

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.architecture.codec import from_nasbench201, to_nasbench101
from archive.architecture.graph import Architecture, Layer
from archive.errors import InvalidArchitectureError, UsageError
from archive.kernels.features.adjacency import AdjacencyEncoding, ContinuousAdjacencyEncoding
from archive.kernels.features.embedding import matrix, vocabulary
from tests.support import kernel_oracle
from tests.support.strategies import CELL_LABELS, cells, members, relabelled, space_of

networks = st.sampled_from(
    [cells(), *map(members, ("cnn", "darts", "mlp", "nasbench201"))]
).flatmap(lambda one: one)
both = pytest.mark.parametrize("kind", [AdjacencyEncoding, ContinuousAdjacencyEncoding])


PLACES = ("ip", "1", "2", "3", "4", "5", "op")
# The entries of a cell of seven vertices: 21 of its matrix and 5 x 3 of its operations.
ENTRIES = (
    *(f"{u}→{v}" for u, v in combinations(PLACES, 2)),
    *(f"{u}={quote(op, safe='')}" for u in PLACES[1:-1] for op in CELL_LABELS),
)


def padded(architecture, n=7):
    """A matrix of n vertices and one-hot operations, the missing ones before the output and without
    operation."""
    small, ops = to_nasbench101(architecture.canonical)
    place = [*range(len(ops) - 1), n - 1]
    full = np.zeros((n, n))
    full[np.ix_(place, place)] = small
    hot = np.zeros((n, len(CELL_LABELS)))
    for u, op in zip(place[1:-1], ops[1:-1], strict=True):
        hot[u, CELL_LABELS.index(op)] = 1

    return full[np.triu_indices(n, 1)], hot[1:-1].ravel()


@given(cells())
def test_is_the_matrix_and_one_hot_operations(network):
    actual = matrix([AdjacencyEncoding().prepare(network)], ENTRIES)[0]
    np.testing.assert_array_equal(actual, np.concatenate(padded(network)))
    continuous = ContinuousAdjacencyEncoding().prepare(network)
    np.testing.assert_array_equal(matrix([continuous], ENTRIES)[0], actual)
    assert continuous.features[0].get("edges", 0) == len(network.edges)


@given(cells(), cells())
def test_distances_are_euclidean(first, second):
    x, y = (np.concatenate(padded(one)) for one in (first, second))
    plain = AdjacencyEncoding().distances([first], [second]).stack.item()
    np.testing.assert_allclose(plain, np.linalg.norm(x - y), rtol=1e-12)
    more = len(first.edges) - len(second.edges)
    continuous = ContinuousAdjacencyEncoding().distances([first], [second]).stack.item()
    np.testing.assert_allclose(continuous, np.hypot(plain, more), rtol=1e-12)
    assert (plain == 0) == (first.key == second.key), "it is a metric of cells"


@both
@given(networks, st.integers(0, 99), st.booleans())
def test_relabellings_have_equal_features(kind, network, seed, attributes):
    kernel = kind(attributes)
    assert kernel.features(network) == kernel.features(relabelled(network, seed))


def test_no_cell_has_other_entries():
    rng = np.random.default_rng(1)
    sample = [AdjacencyEncoding().prepare(space_of("nasbench101").sample(rng)) for _ in range(150)]
    # Some entries no member fills in canonical order: the first vertex is fed by the input.
    assert set(vocabulary(sample)) <= set(ENTRIES)
    slots = [AdjacencyEncoding().prepare(space_of("nasbench201").sample(rng)) for _ in range(150)]
    assert len(vocabulary(slots)) == 6 * 5
    assert all(len(one.features[0]) == 6 for one in slots)


def test_edges_into_the_output_are_the_same_in_networks_of_any_size():
    small, large = (
        Architecture(
            "nasbench101", [Layer("ip"), *[Layer(CELL_LABELS[0])] * inner, Layer("op")], edges
        )
        for inner, edges in ((1, [(0, 1), (1, 2)]), (2, [(0, 1), (1, 2), (1, 3), (2, 3)]))
    )
    # The larger one has the edges 1→2 and 2→op and the operation of 2 besides.
    assert AdjacencyEncoding().distances([small], [large]).stack.item() == np.sqrt(3)


def test_nasbench201_has_one_operation_an_edge():
    text = "|nor_conv_3x3~0|+|none~0|skip_connect~1|+|nor_conv_1x1~0|none~1|avg_pool_3x3~2|"
    network = from_nasbench201(text)
    assert ContinuousAdjacencyEncoding().features(network) == (
        {
            **dict.fromkeys(("0-1=nor_conv_3x3", "0-2=none", "1-2=skip_connect"), 1.0),
            **dict.fromkeys(("0-3=nor_conv_1x1", "1-3=none", "2-3=avg_pool_3x3"), 1.0),
            "edges": 4.0,
        },
    )
    no_cell = Architecture("nasbench201", [Layer("ip"), Layer("op")], [(0, 1)])
    with pytest.raises(InvalidArchitectureError, match="no NAS-Bench-201 string"):
        AdjacencyEncoding().prepare(no_cell)


def test_attributes_tell_units_in_bins():
    nets = [kernel_oracle.chain("mlp", ("relu", units)) for units in (64, 70, 128)]
    assert not AdjacencyEncoding().distances(nets).stack.any()
    np.testing.assert_allclose(
        AdjacencyEncoding(True).distances(nets).stack[0, 0], [0, 0, np.sqrt(2)]
    )


@both
def test_thousand_layers(kind):
    distances = kind().distances([kernel_oracle.long_chain(1000, seed) for seed in (1, 2)]).stack
    assert np.isfinite(distances).all()
    assert distances[0, 0, 1] > 0


@both
def test_settings_out_of_range_are_refused(kind):
    with pytest.raises(UsageError, match="attributes must be true or false, got 'no'"):
        kind(attributes="no")
