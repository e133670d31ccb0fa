"""The benchmark of tree-Wasserstein, on a few cells."""

from __future__ import annotations

import pytest

from archive.architecture.codec import to_nasbench201
from archive.spaces import get
from tests.benchmarks.kernels.tree_wasserstein import CELLS, measure, nasbench201


def test_a_part_of_the_cells_is_evenly_spaced():
    part = nasbench201(8000)
    assert len(part) == 8000
    assert [to_nasbench201(part[at]).count("none") for at in (0, -1)] == [6, 0]


@pytest.mark.whole
def test_measures():
    figures = {figure.name: figure for figure in measure(cells=50, rows=10, pairs=5)}
    errors = [figure for figure in figures.values() if figure.goal == "<= 1e-9"]
    assert len(errors) == 3
    assert all(figure.value <= 1e-9 for figure in errors)
    assert any(
        name.startswith("tree-wasserstein, nasbench201, 50 x 50: peak memory") for name in figures
    )
    assert any(
        name.startswith("tree-wasserstein, nasbench201, 10 x 50: seconds") for name in figures
    )
    assert all(figure.value > 0 for figure in figures.values() if figure.unit)


def test_cells_are_different_members_of_the_space():
    cells = nasbench201(CELLS // 100)
    assert len({cell.key for cell in cells}) > 100
    for cell in cells[:5]:
        get("nasbench201").validate(cell)
