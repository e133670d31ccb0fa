"""Rank correlations of surrogates: the split, the look-up of distances, and bad input."""

from __future__ import annotations

import numpy as np
import pytest

from archive import kernels, spaces
from archive.errors import UsageError
from tests.benchmarks.agents import ranking
from tests.benchmarks.agents.ranking import Block, RankedSurrogate
from tests.support import data_dir


@pytest.fixture(autouse=True)
def data(monkeypatch):
    monkeypatch.setenv("ARCHIVE_DATA_DIR", str(data_dir()))


def test_a_block_gives_the_kernels_own_distances():
    space = spaces.get("nasbench201")
    rng = np.random.default_rng(0)
    cells = list({cell.key: cell for cell in (space.sample(rng) for _ in range(12))}.values())
    kernel = kernels.get("otmann")
    block = Block(kernel, cells)
    distances = block.distances(cells[3:6], cells[1:9])
    np.testing.assert_allclose(
        distances.unnormalised, kernel.distances(cells[3:6], cells[1:9]).unnormalised
    )
    np.testing.assert_allclose(block.distances(cells[:4]).stack, kernel.distances(cells[:4]).stack)


@pytest.mark.whole
def test_more_observations_rank_better_and_the_split_is_one_of_the_seed():
    chosen = [RankedSurrogate("path", "gp"), RankedSurrogate("path", "ensemble")]
    figures = list(ranking.measure(["nb201-cifar100"], chosen, sizes=(10, 100), seeds=2, ranked=60))
    assert [(row.surrogate, row.kernel, row.n) for row in figures] == [
        ("gp", "path", 10), ("gp", "path", 100), ("ensemble", "path", 10), ("ensemble", "path", 100)
    ]  # fmt: skip
    for few, many in (figures[:2], figures[2:]):
        assert 0 < few.spearman < many.spearman < 1
        assert 0 < few.kendall < few.spearman
        assert many.spearman > 0.6

    again = list(
        ranking.measure(["nb201-cifar100"], chosen[:1], sizes=(10, 100), seeds=2, ranked=60)
    )
    assert [(row.spearman, row.kendall) for row in again] == [
        (row.spearman, row.kendall) for row in figures[:2]
    ]


def test_every_kernel_has_a_surrogate_and_ensembles_learn_from_features_only():
    pairs = {(contestant.surrogate, contestant.kernel) for contestant in ranking.contestants()}
    assert {kernel for surrogate, kernel in pairs if surrogate == "gp"} == set(kernels.names())
    assert ("ensemble", "path") in pairs
    assert ("ensemble", "otmann") not in pairs


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tasks": ["nb301"]}, "nb201-cifar10.*'nb301'"),
        ({"sizes": (1,)}, r"\[1\]"),
        ({"seeds": 0}, "and 0"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(UsageError, match=message):
        ranking.measure(**arguments)
