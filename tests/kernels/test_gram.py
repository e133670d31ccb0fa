"""Gram: the same numbers as the distance, each pair computed once, bounded memory."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.errors import InvalidArchitectureError, UsageError
from archive.kernels.base import Components, Distance
from archive.kernels.distances.otmann import OTMANN
from archive.kernels.gram import Gram
from tests.support import kernel_oracle
from tests.support.strategies import relabelled

NETWORKS = [kernel_oracle.long_chain(5 + at, at) for at in range(12)]
FULL = OTMANN().distances(NETWORKS).stack


class Counting(OTMANN):
    """Counts the pairs that are computed."""

    def __init__(self):
        super().__init__()
        self.prepared = 0
        self.solved = 0

    def prepare(self, architecture):
        self.prepared += 1
        return super().prepare(architecture)

    def pairs(self, networks, pairs):
        self.solved += len(pairs)
        return super().pairs(networks, pairs)


choices = st.lists(st.integers(0, len(NETWORKS) - 1), max_size=8)


@given(
    st.lists(st.tuples(choices, choices | st.none()), max_size=8),
    st.integers(1, 60),
    st.integers(1, 8),
)
def test_any_sequence_of_blocks_is_right(blocks, max_pairs, max_networks):
    gram = Gram(OTMANN(), max_pairs=max_pairs, max_networks=max_networks)
    for rows, columns in blocks:
        second = None if columns is None else [NETWORKS[at] for at in columns]
        distances = gram.distances([NETWORKS[at] for at in rows], second)
        np.testing.assert_allclose(
            distances.stack, FULL[np.ix_(range(8), rows, rows if columns is None else columns)]
        )
        networks, pairs = gram.remembered
        assert networks <= max_networks
        assert pairs <= max(max_pairs, 2)


def test_each_pair_is_computed_once():
    gram = Gram(distance := Counting())
    gram.distances(NETWORKS[:6])
    assert (distance.prepared, distance.solved) == (6, 15)
    gram.distances(NETWORKS[:6], [NETWORKS[8], relabelled(NETWORKS[2], 1)])
    assert (distance.prepared, distance.solved) == (7, 21)
    gram.distances([NETWORKS[8]], NETWORKS[:6])
    gram.distances(NETWORKS[:6])
    assert (distance.prepared, distance.solved) == (7, 21)
    assert gram.remembered == (7, 21)


def test_what_is_in_use_survives_the_bound():
    gram = Gram(distance := Counting(), max_pairs=60)
    history = NETWORKS[:4]
    for candidate in NETWORKS[4:]:
        gram.distances(history)
        gram.distances([candidate], history)

    assert distance.solved == 6 + 4 * 8


def test_pairs_of_a_growing_history_are_computed_once_however_many_candidates_there_are():
    gram = Gram(distance := Counting(), max_pairs=2)
    for known in range(4, 9):
        history = NETWORKS[:known]
        before = distance.solved
        gram.distances(history)
        assert distance.solved - before == (6 if known == 4 else known - 1)
        # Parents are among the candidates.
        gram.distances(NETWORKS[9:], history)
        before = distance.solved
        gram.distances(history[::-1], history)
        gram.distances(history[:2])
        assert distance.solved == before


def test_symmetric_exactly():
    stack = Gram(OTMANN()).distances(NETWORKS).stack
    np.testing.assert_array_equal(stack, stack.transpose(0, 2, 1))


def test_threads_may_share_one():
    gram = Gram(OTMANN())
    with ThreadPoolExecutor(4) as pool:
        blocks = list(
            pool.map(lambda at: gram.distances(NETWORKS[at:], NETWORKS[: at + 3]).stack, range(10))
        )

    for at, block in enumerate(blocks):
        np.testing.assert_allclose(block, FULL[:, at:, : at + 3])


def test_a_distance_that_is_not_pairwise_is_prepared_once():
    class Masses(Distance):
        name = "masses"
        components = ("masses",)
        unnormalised = 1
        prepare = OTMANN().prepare

        def distances(self, first, second=None):
            columns = first if second is None else second
            gaps = np.abs(
                np.subtract.outer([one.total for one in first], [one.total for one in columns])
            )
            return Components(gaps[None], np.empty((0, *gaps.shape)))

    gram = Gram(Masses())
    assert gram.distances(NETWORKS[:3], NETWORKS[:2]).stack.shape == (1, 3, 2)
    assert gram.remembered == (3, 0)


def test_bad_input():
    with pytest.raises(UsageError, match="max_pairs must be >= 1, got 0"):
        Gram(OTMANN(), max_pairs=0)

    with pytest.raises(InvalidArchitectureError, match="got cnn and mlp"):
        Gram(OTMANN()).distances(NETWORKS[:1], [kernel_oracle.chain("mlp", ("relu", 8))])

    assert Gram(OTMANN()).distances([]).stack.shape == (8, 0, 0)


@pytest.mark.parametrize("block", [1, 20, 30])
def test_large_blocks_are_computed_in_bands(block, monkeypatch):
    monkeypatch.setattr("archive.kernels.gram.BLOCK", block)
    gram = Gram(distance := Counting())
    repeated = [*NETWORKS, *NETWORKS[:3]]
    at = [*range(12), *range(3)]
    np.testing.assert_allclose(gram.distances(repeated).stack, FULL[np.ix_(range(8), at, at)])
    assert distance.solved == 66
    rows = repeated[2:9]
    columns = repeated[5:]
    np.testing.assert_allclose(
        gram.distances(rows, columns).stack, FULL[np.ix_(range(8), at[2:9], at[5:])]
    )
    assert distance.solved == 66
