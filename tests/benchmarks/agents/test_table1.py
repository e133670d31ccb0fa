"""The benchmarks of the ensemble and of k-DPPs, with cells of the distribution of BANANAS' code."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from archive.architecture import codec
from archive.errors import UsageError
from archive.spaces.tables.classes import Described, classes
from archive.spaces.tables.reader import Table
from tests.benchmarks.agents import dpp, ensemble, table1
from tests.benchmarks.agents.random_cells import RandomCells

LABELS = ("conv1x1-bn-relu", "conv3x3-bn-relu", "maxpool3x3")


def chain(*labels):
    n = len(labels) + 2
    matrix = [[int(v == u + 1) for v in range(n)] for u in range(n)]
    return codec.from_nasbench101(matrix, ["input", *labels, "output"])


def as_drawn(row):
    """The architecture of one row of `Drawn.adjacency`, dead vertices and all."""
    matrix = np.zeros((7, 7), int)
    matrix[np.triu_indices(7, 1)] = row[:21]
    labels = [LABELS[round(2 * value)] for value in row[21:]]
    return codec.from_nasbench101(matrix.tolist(), ["input", *labels, "output"])


@pytest.fixture(scope="module")
def table():
    chains = [chain(*labels) for n in (1, 2, 3) for labels in itertools.product(LABELS, repeat=n)]
    return table_of([chain(), *chains], val_acc_108ep=np.linspace(0.1, 0.9, 40).tolist())


def table_of(cells, **columns):
    """A table of one row a cell."""
    return Table(
        classes("nasbench101", [Described.of(cell) for cell in cells], columns, {}), "made up", ""
    )


def test_drawn_cells_are_the_tables(table):
    drawn = RandomCells(table).draw(12, np.random.default_rng(0))
    assert len(set(drawn.positions.tolist())) == 12
    for position, row in zip(drawn.positions, drawn.adjacency, strict=True):
        assert as_drawn(row).functional_key == table.architectures[position].functional_key


def test_cells_come_as_often_as_matrices_are_drawn(table):
    # Two vertices: 36,354,501 matrices and operations of 2^21 3^5; three: a third of 12,585,537 for
    # each label.
    rng = np.random.default_rng(1)
    cells = RandomCells(table)
    counts = np.bincount(
        np.concatenate([cells._batch(rng).positions for _ in range(3)]), minlength=40
    )
    assert counts[0] / 60_000 == pytest.approx(0.0713, abs=0.004)


def test_every_order_of_the_vertices_is_known():
    # One vertex on each of two branches of different length: three orders of the inner vertices are
    # topological.
    matrix = [[0, 1, 0, 1, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0, 1], [0, 0, 0, 0, 1], [0, 0, 0, 0, 0]]
    cell = codec.from_nasbench101(matrix, ["input", *LABELS, "output"])
    assert len(RandomCells(table_of([cell]))._codes) == 3


def test_table_1_on_a_small_table(table, monkeypatch):
    monkeypatch.setattr(Table, "open", lambda reference: table)
    monkeypatch.setattr(table1, "UNSEEN", 10)
    monkeypatch.setattr(table1, "UNSEEN_PUBLISHED", 5)
    figures = table1.measure(seeds=1, sizes=(8,))
    assert [figure.reference for figure in figures] == [None] * 5
    assert all(0 <= figure.value < 100 for figure in figures)
    with pytest.raises(UsageError, match="must hold 110 cells or more, got 40"):
        table1.measure(sizes=(100,))

    with pytest.raises(UsageError, match="seeds and sizes must be >= 1"):
        table1.measure(seeds=0)


def test_nothing_is_measured_without_a_table(monkeypatch):
    monkeypatch.delenv("ARCHIVE_DATA_DIR", raising=False)
    assert table1.measure() == []


def test_speeds_are_beside_their_references():
    figures = [
        *dpp.measure(items=30, k=3, samples=2),
        *ensemble.measure(observations=5, candidates=5, epochs=2),
    ]
    assert [figure.reference is not None for figure in figures] == [False, True, False, True, False]
    assert figures[2].value < 1e-10
