"""Label penalties: the paper's tables, and the condition of theorem 3."""

from __future__ import annotations

import numpy as np
import pytest

from archive.architecture.operations import CNN, Operation, define, vocabulary
from archive.kernels.distances.penalties import penalties
from tests.support import kernel_oracle
from tests.support.networks.torch_nets import layer

SPACES = ["cnn", "darts", "mlp", "nasbench101", "nasbench201", "torch"]


@pytest.mark.parametrize("space", ["cnn", "mlp"])
def test_tables_of_the_paper(space):
    table = penalties(vocabulary(space))
    expected = [[kernel_oracle.label_penalty(x, y) for y in table.index] for x in table.index]
    np.testing.assert_allclose(table.matrix, expected)


@pytest.mark.parametrize("released_code", [False, True])
@pytest.mark.parametrize("space", SPACES)
def test_a_metric_on_labels(space, released_code):
    table = penalties(vocabulary(space), released_code=released_code)
    M = table.matrix
    np.testing.assert_array_equal(M, M.T)
    assert not M.diagonal().any()
    assert (M[:, None, :] <= M[:, :, None] + M[None, :, :] + 1e-12).all()
    np.testing.assert_array_equal(np.isfinite(M), table.family[:, None] == table.family[None])
    # All that can be matched is worth matching.
    assert M[np.isfinite(M)].max() < 2


def test_windows_of_imported_convolutions():
    table = penalties(vocabulary("torch"))
    weights = {
        "wide": [8, 3, 5, 5],
        "long": [8, 3, 1, 3],
        "huge": [8, 3, 31, 31],
        "largest": [8, 3, 15, 15],
    }
    layers = {name: layer("convolution", weight=weight) for name, weight in weights.items()}
    wide, long, huge, largest, relu = table.rows([*layers.values(), layer("relu")])
    assert table.matrix[wide, long] == pytest.approx(0.2)
    assert huge == largest
    assert np.isinf(table.matrix[wide, relu])
    (bare,) = table.rows([layer("convolution")])
    assert np.isfinite(table.matrix[bare, wide])


def test_groups_of_the_structural_cost():
    for space, groups in (("cnn", 4), ("mlp", 3), ("nasbench101", 1)):
        counted = penalties(vocabulary(space)).counted
        assert counted.shape[1] == groups
        assert counted[:, 0].all()
        assert penalties(vocabulary(space), groups=False).counted.shape[1] == 1


def test_a_vocabulary_defined_anew_has_new_penalties():
    define("penalties-test", [Operation("conv3", "conv", True, kernel=3)])
    assert len(penalties(vocabulary("penalties-test")).index) == 3
    define("penalties-test", [Operation(f"conv{k}", "conv", True, kernel=k) for k in (3, 9)])
    table = penalties(vocabulary("penalties-test"))
    assert table.matrix[table.index["conv3"], table.index["conv9"]] == pytest.approx(0.4)
    assert penalties(CNN) is penalties(CNN)
