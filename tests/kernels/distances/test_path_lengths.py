"""Path lengths against the paper's example and a slow form."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.architecture.graph import Architecture, Layer
from archive.kernels.distances.path_lengths import path_lengths
from tests.support import kernel_oracle
from tests.support.strategies import cells, members


@given(st.one_of(members("cnn"), members("mlp"), cells()))
def test_agrees_with_the_slow_form(architecture):
    groups = [None, *kernel_oracle.GROUPS.get(architecture.space, ())]
    weights = np.array(
        [[float(g is None or layer.op in g) for g in groups] for layer in architecture.layers]
    )
    delta_ip, delta_op = path_lengths(architecture, weights)
    for at, group in enumerate(groups):
        expected = kernel_oracle.lengths(architecture, group)
        np.testing.assert_allclose(delta_ip[:, 3 * at : 3 * at + 3], expected[:, :3], rtol=1e-12)
        np.testing.assert_allclose(delta_op[:, 3 * at : 3 * at + 3], expected[:, 3:], rtol=1e-12)


def test_shortest_longest_and_random_walk():
    # From the input: one hop to the output over the skip, or two or three through the layers.
    layers = [Layer("ip"), Layer("conv3x3-bn-relu"), Layer("maxpool3x3"), Layer("op")]
    cell = Architecture("nasbench101", layers, [(0, 1), (0, 3), (1, 2), (1, 3), (2, 3)])
    _, delta_op = path_lengths(cell, np.ones((4, 1)))
    assert delta_op[0] == pytest.approx([1, 3, 1 + (1.5 + 0) / 2])


def test_layers_that_lead_nowhere_have_their_own_weight():
    layers = [Layer("ip"), Layer("conv3x3-bn-relu"), Layer("op")]
    cell = Architecture("nasbench101", layers, [(0, 2)])
    delta_ip, delta_op = path_lengths(cell, np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 0.0]]))
    np.testing.assert_array_equal(delta_ip, [[0] * 6, [1] * 6, [1, 1, 1, 0, 0, 0]])
    np.testing.assert_array_equal(delta_op, [[1, 1, 1, 0, 0, 0], [1] * 6, [0] * 6])


def test_no_edges_at_all():
    cell = Architecture("nasbench101", [Layer("ip"), Layer("op")], [])
    delta_ip, delta_op = path_lengths(cell, np.ones((2, 1)))
    np.testing.assert_array_equal(delta_ip, [[0] * 3, [1] * 3])
    np.testing.assert_array_equal(delta_op, [[1] * 3, [0] * 3])
