"""The Hamming distance against a comparison of padded matrices and lists, entry by entry."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.architecture.codec import from_nasbench201, to_nasbench101, to_nasbench201
from archive.errors import UsageError
from archive.kernels.features.adjacency import Hamming
from tests.support import kernel_oracle
from tests.support.strategies import cells, members, relabelled

networks = st.sampled_from(
    [cells(), *map(members, ("cnn", "darts", "mlp", "nasbench201"))]
).flatmap(lambda one: one)


def padded(architecture, n=7):
    """The matrix and the operations of n vertices, `absent` ones before the output."""
    matrix, ops = to_nasbench101(architecture.canonical)
    place = [*range(len(ops) - 1), n - 1]
    full = np.zeros((n, n))
    full[np.ix_(place, place)] = matrix
    return full, [*ops[:-1], *["absent"] * (n - len(ops)), ops[-1]]


@given(cells(), cells())
def test_counts_entries_and_operations_that_differ(first, second):
    (one, ops), (two, others) = padded(first), padded(second)
    expected = (one != two).sum() + sum(x != y for x, y in zip(ops, others, strict=True))
    assert Hamming().distances([first], [second]).unnormalised.item() == expected


@given(members("nasbench201"), members("nasbench201"))
def test_nasbench201_counts_edges_whose_operations_differ(first, second):
    one, two = (to_nasbench201(network).replace("+", "").split("|") for network in (first, second))
    distances = Hamming().distances([first], [second]).unnormalised.item()
    assert distances == sum(x != y for x, y in zip(one, two, strict=True))


def test_none_is_an_operation_of_nasbench201():
    cells = [
        f"|nor_conv_3x3~0|+|{op}~0|skip_connect~1|+|nor_conv_1x1~0|skip_connect~1|avg_pool_3x3~2|"
        for op in ("none", "nor_conv_1x1", "avg_pool_3x3")
    ]
    distances = Hamming().distances([from_nasbench201(text) for text in cells]).unnormalised[0]
    np.testing.assert_array_equal(distances, 1 - np.eye(3))


@given(networks, st.integers(0, 99), st.booleans())
def test_relabellings_have_equal_features(network, seed, attributes):
    assert Hamming(attributes).features(network) == Hamming(attributes).features(
        relabelled(network, seed)
    )


@given(st.lists(cells(), min_size=3, max_size=8))
def test_a_metric_with_a_positive_semi_definite_exponential(several):
    d = Hamming().distances(several).unnormalised[0]
    assert (d[0, 2] <= d[0, 1] + d[1, 2]).all()
    assert np.linalg.eigvalsh(np.exp(-0.3 * d)).min() > -1e-10
    keys = [one.key for one in several]
    np.testing.assert_array_equal(d == 0, [[x == y for x in keys] for y in keys])


def test_thousand_layers_and_attributes():
    long = (
        Hamming()
        .distances([kernel_oracle.long_chain(1000, seed, equal=True) for seed in (1, 2)])
        .stack
    )
    assert long[0, 0, 1] > 0
    chains = [kernel_oracle.chain("mlp", ("relu", units)) for units in (64, 128)]
    assert Hamming().distances(chains).stack[0, 0, 1] == 0
    assert Hamming(attributes=True).distances(chains).stack[0, 0, 1] == 1


def test_settings_out_of_range_are_refused():
    with pytest.raises(UsageError, match="attributes must be true or false, got None"):
        Hamming(attributes=None)
