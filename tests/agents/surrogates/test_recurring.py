"""Blocks of distances that recur: no result changes, and no row is computed twice."""

from __future__ import annotations

import numpy as np
import pytest

from archive import kernels, spaces
from archive.agents.surrogates.many import prefix
from archive.agents.surrogates.many.prefix import MOST_BLOCKS, SHORTEST, RecurringBlocks

CELLS = [cell.functional for cell in spaces.get("nasbench201").members()[:400]]
COLUMNS = CELLS[: SHORTEST + 20]
KERNEL = kernels.get("weisfeiler-lehman")


class Counted:
    """The distances of a kernel, with the shapes of the blocks that were asked for."""

    def __init__(self):
        self.shapes = []

    def distances(self, first, second=None):
        self.shapes.append((len(first), len(first if second is None else second)))
        return KERNEL.distances(first, second)


@pytest.fixture
def counted():
    return Counted()


def equal(blocks, first, second=None):
    found = blocks.distances(first, second)
    expected = KERNEL.distances(first, second)
    return np.array_equal(found.stack, expected.stack) and len(found.unnormalised) == len(
        expected.unnormalised
    )


def test_a_block_that_recurs_computes_its_new_rows_only(counted):
    blocks = RecurringBlocks(counted)
    assert equal(blocks, CELLS[200:240], COLUMNS)
    assert equal(blocks, [*CELLS[239:204:-1], CELLS[300], CELLS[301], CELLS[300]], COLUMNS)
    assert equal(blocks, CELLS[210:230], COLUMNS)
    assert counted.shapes == [(40, len(COLUMNS)), (2, len(COLUMNS))]


def test_rows_that_are_no_longer_asked_for_are_dropped(counted):
    blocks = RecurringBlocks(counted)
    for rows in (CELLS[200:240], CELLS[240:250], CELLS[200:240]):
        assert equal(blocks, rows, COLUMNS)

    assert counted.shapes == [(40, len(COLUMNS)), (10, len(COLUMNS)), (40, len(COLUMNS))]


def test_columns_in_another_order_are_another_block(counted):
    blocks = RecurringBlocks(counted)
    assert equal(blocks, CELLS[200:204], COLUMNS)
    assert equal(blocks, CELLS[200:204], COLUMNS[::-1])


@pytest.mark.parametrize("second", [None, CELLS[: SHORTEST - 1]])
def test_small_blocks_and_squares_are_not_kept(counted, second):
    blocks = RecurringBlocks(counted)
    for _ in range(2):
        assert equal(blocks, COLUMNS, second)

    assert len(counted.shapes) == 2


def test_a_block_without_rows_is_empty(counted):
    assert RecurringBlocks(counted).distances([], COLUMNS).stack.shape[1:] == (0, len(COLUMNS))


def test_the_blocks_of_the_latest_calls_are_kept(counted, monkeypatch):
    monkeypatch.setattr(prefix, "MOST_BLOCKS", 2)
    assert MOST_BLOCKS > 2
    blocks = RecurringBlocks(counted)
    others = [CELLS[at : at + SHORTEST] for at in range(3)]
    for at in (0, 1, 0, 2, 0, 1):
        assert equal(blocks, CELLS[300:305], others[at])

    assert len(counted.shapes) == 4
