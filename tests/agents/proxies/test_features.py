"""Features of proxies: ranks of the scores, whatever their unit, and predicted from structure where
there are none."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive import spaces
from archive.agents.bayesopt.portfolio_members import member_model
from archive.agents.proxies.knowledge import ProxyDistances, ProxyFeatures, TotalProxyDistance
from archive.store.proxies import ProxyTable
from tests.support import examples
from tests.support.stores import cells

NETWORKS = cells(12)
STRUCTURE = member_model("structure", spaces.get("nasbench201"))


def features(scores, networks=NETWORKS):
    values = np.asarray(scores, np.float64)
    names = tuple("abcdef"[: values.shape[1]])
    return ProxyFeatures(
        ProxyTable("test", names, tuple(networks[: len(values)]), values), STRUCTURE
    )


@examples(20)
@given(
    st.lists(
        st.tuples(*[st.integers(-1000, 1000)] * 2),
        min_size=3,
        max_size=10,
        unique_by=lambda row: row[0],
    )
)
def test_features_depend_on_the_order_of_the_scores_alone(scores):
    scores = np.array(scores, np.float64)
    known = NETWORKS[: len(scores)]
    expected = ProxyDistances(features(scores)).distances(known).stack
    rescaled = (
        ProxyDistances(features(np.sinh(scores / 500.0) * [3.0, 1e-9])).distances(known).stack
    )
    np.testing.assert_array_equal(rescaled, expected)
    np.testing.assert_array_equal(expected, expected.swapaxes(1, 2))
    assert not expected[:, range(len(known)), range(len(known))].any()
    np.testing.assert_allclose(
        TotalProxyDistance(features(scores)).distances(known).stack[0], expected.sum(axis=0)
    )


def test_constant_proxies_are_left_out_and_undefined_scores_are_average():
    some = features([[1, 5, 7], [2, math.nan, 7], [3, 4, 7], [4, 6, 7]])
    assert some.count == 2
    assert some.ranks[1, 1] == pytest.approx(0.5)
    assert some.normal(NETWORKS[1:2])[0, 1] == pytest.approx(0.0)


def test_scores_of_other_networks_follow_from_those_of_similar_ones():
    space = spaces.get("nasbench201")
    rng = np.random.default_rng(0)
    drawn = {one.functional_key: one.functional for one in (space.sample(rng) for _ in range(160))}
    networks = list(drawn.values())
    convolutions = np.array(
        [[sum(layer.op == "nor_conv_3x3" for layer in one.layers)] for one in networks], float
    )
    some = features(convolutions[:100], networks)
    predicted = some.normal(networks[100:])[:, 0]
    assert np.corrcoef(predicted, convolutions[100:, 0])[0, 1] > 0.9
    # In any company, and again.
    np.testing.assert_allclose(some.normal([networks[120], networks[3]])[0, 0], predicted[20])
