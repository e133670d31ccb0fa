"""Distances on each server: one relationship a pair, with any number of writers and repetitions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from archive.database.user_query import run_query
from archive.errors import UsageError
from archive.store import distances as module
from archive.store.distances import Distances
from tests.support.stores import Forgetful, cells, count, everywhere

COUNT = 12


@pytest.fixture
def keys(archive):
    archive.architectures.add(cells(COUNT))
    return sorted(cell.key for cell in cells(COUNT))


def pairs_of(keys):
    return list(itertools.combinations(keys, 2))


def values_of(pairs, components=4):
    return np.random.default_rng(0).uniform(0, 5, (len(pairs), components))


def test_what_was_stored_is_read_as_a_symmetric_matrix(archive, keys):
    pairs = pairs_of(keys)
    first = values_of(pairs)
    second = values_of(pairs) / 7
    archive.distances.store(pairs, {"otmann": first, "otmann_normalised": second})
    asked = [keys[3], keys[1], keys[7], keys[3]]
    for kind, values in (("otmann", first), ("otmann_normalised", second)):
        matrix = archive.distances.matrix(keys, kind)
        assert matrix.shape == (4, COUNT, COUNT)
        rows, columns = np.triu_indices(COUNT, 1)
        np.testing.assert_array_equal(matrix[:, rows, columns].T, values)
        np.testing.assert_array_equal(matrix, matrix.swapaxes(1, 2))
        assert not matrix[:, range(COUNT), range(COUNT)].any()
        np.testing.assert_array_equal(
            archive.distances.matrix(asked, kind),
            matrix[np.ix_(range(4), [3, 1, 7, 3], [3, 1, 7, 3])],
        )


def missing(distances, keys, kind):
    """Return the pairs of keys that have no distance of a kind."""
    matrix = distances.matrix(sorted(keys), kind)
    keys = sorted(keys)
    unknown = np.isnan(matrix.reshape(-1, *matrix.shape[-2:])[0])
    return [(keys[a], keys[b]) for a, b in zip(*np.nonzero(np.triu(unknown)), strict=True)]


def test_a_distance_may_be_one_number(archive, keys):
    pairs = pairs_of(keys[:3])
    archive.distances.store(pairs, {"edit": [1.0, 2.0, 3.0]})
    np.testing.assert_array_equal(
        archive.distances.matrix(keys[:3], "edit"), [[0, 1, 2], [1, 0, 3], [2, 3, 0]]
    )


@pytest.mark.every_server
def test_the_smaller_key_comes_first_whatever_the_order_given(archive, connection, keys):
    a, b, c = keys[:3]
    archive.distances.store([(b, a), (a, c)], {"edit": [1.0, 2.0]})
    rows = run_query(
        connection, "MATCH (x)-[d:DISTANCE]->(y) RETURN x.key, y.key, d.edit ORDER BY d.edit"
    ).rows
    assert [tuple(row) for row in rows] == [(a, b, 1.0), (a, c, 2.0)]


def test_what_is_missing(archive, keys):
    pairs = pairs_of(keys)
    assert missing(archive.distances, keys, "otmann") == pairs
    assert np.isnan(archive.distances.matrix(keys[:2], "otmann")).sum() == 2
    archive.distances.store(pairs[::2], {"otmann": values_of(pairs[::2])})
    assert missing(archive.distances, keys[::-1], "otmann") == pairs[1::2]
    assert missing(archive.distances, keys, "edit") == pairs
    matrix = archive.distances.matrix(keys, "otmann")
    assert np.isnan(matrix).sum() == 4 * 2 * len(pairs[1::2])
    archive.distances.store(pairs[1::2], {"otmann": values_of(pairs[1::2])})
    assert missing(archive.distances, keys, "otmann") == []


def test_another_kind_joins_the_same_relationship(archive, connection, keys):
    pairs = pairs_of(keys)
    archive.distances.store(pairs[:10], {"edit": np.arange(10.0)})
    archive.distances.store(pairs, {"otmann": values_of(pairs)})
    archive.distances.store(pairs[:2], {"edit": [70.0, 80.0]})
    assert count(connection, "()-[:DISTANCE]->()") == len(pairs)
    matrix = archive.distances.matrix(keys, "edit")
    assert [matrix[0, 1], matrix[0, 2], matrix[0, 3]] == [70.0, 80.0, 2.0]


def test_a_lost_acknowledgement_and_small_batches_double_nothing(connection, keys, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 7)
    monkeypatch.setattr(module, "KEYS", 5)
    distances = Distances(Forgetful(connection))
    pairs = pairs_of(keys)
    distances.store(pairs, {"otmann": values_of(pairs)})
    assert count(connection, "()-[:DISTANCE]->()") == len(pairs)
    assert missing(distances, keys, "otmann") == []


@pytest.mark.every_server
def test_many_writers_of_the_same_pairs(connection, open_connection, keys):
    pairs = pairs_of(keys)
    values = values_of(pairs)
    writers = [Distances(open_connection()) for _ in range(8)]

    def work(i):
        order = np.random.default_rng(i).permutation(len(pairs))
        for part in np.array_split(order, 6):
            writers[i].store([pairs[j] for j in part], {"otmann": values[part]})

    everywhere(work)
    assert count(connection, "()-[:DISTANCE]->()") == len(pairs)
    rows, columns = np.triu_indices(COUNT, 1)
    np.testing.assert_array_equal(
        Distances(connection).matrix(keys, "otmann")[:, rows, columns].T, values
    )


def test_what_cannot_be_stored(archive, connection, keys):
    with pytest.raises(UsageError, match="twice"):
        archive.distances.store([(keys[0], keys[0])], {"edit": [0.0]})

    with pytest.raises(UsageError, match=r"\(2,\)"):
        archive.distances.store([(keys[0], keys[1]), (keys[0], keys[2])], {"edit": [0.0]})

    with pytest.raises(UsageError, match="0000"):
        archive.distances.store([(keys[0], keys[1]), (keys[0], "0" * 32)], {"edit": [1.0, 2.0]})

    assert count(connection, "()-[:DISTANCE]->()") == 0
    archive.distances.store([], {"edit": []})


def test_a_block_is_zero_where_both_keys_are_equal(archive, keys):
    # Nothing is stored yet.
    block = archive.distances.rows(keys[:3], keys[1:4], "otmann")
    expected = np.full((3, 3), np.nan)
    expected[1, 0] = expected[2, 1] = 0.0
    np.testing.assert_array_equal(block, expected)
