"""Zero-cost proxies on each server: one relationship a network, task and source, read as one
table."""

from __future__ import annotations

import math

import numpy as np
import pytest

from archive.errors import UsageError
from tests.support.stores import cells

AT = ("digits", "digits/1")

pytestmark = pytest.mark.every_server


def test_scores_are_stored_once_and_read_as_a_table(archive):
    networks = cells(4)
    archive.architectures.add(networks)
    keys = [each.key for each in networks]
    assert archive.proxies.of_task(*AT, "nasbench201") is None
    own = {
        key: {"synflow": float(at), "naswot": math.nan if at == 1 else 0.5}
        for at, key in enumerate(keys[:3])
    }
    for _ in range(2):
        archive.proxies.add(*AT, "archive/1", own)

    table = archive.proxies.of_task(*AT, "nasbench201")
    assert (table.source, table.names, len(table)) == ("archive/1", ("naswot", "synflow"), 3)
    rows = [table.rows[each.functional_key] for each in networks[:3]]
    np.testing.assert_array_equal(table.scores[rows], [[0.5, 0], [math.nan, 1], [0.5, 2]])
    assert archive.query(
        "MATCH ()-[m:MEASURED]->(:Task {name: 'digits'}) RETURN count(m)"
    ).rows == [(3,)]
    assert archive.proxies.of_networks(*AT, "archive/1", keys) == {
        keys[0]: {"naswot": 0.5, "synflow": 0.0},
        keys[1]: {"naswot": None, "synflow": 1.0},
        keys[2]: {"naswot": 0.5, "synflow": 2.0},
    }
    assert archive.proxies.of_task(*AT, "cnn") is None
    assert archive.proxies.of_task("digits", "digits/2", "nasbench201") is None
    # Unchanged scores are not read again, and what was known at a time stays known.
    assert archive.proxies.of_task(*AT, "nasbench201") is table
    assert {each.key for each in table.networks} == {*keys[:3]}
    assert (
        archive.proxies.of_task(*AT, "nasbench201", source="archive/1", until=table.until - 1)
        is None
    )
    assert (
        len(archive.proxies.of_task(*AT, "nasbench201", source="archive/1", until=table.until)) == 3
    )


def test_of_several_sources_the_one_with_the_most_networks_is_read(archive):
    networks = cells(3)
    archive.architectures.add(networks)
    archive.proxies.add(*AT, "archive/1", {networks[0].key: {"synflow": 1.0}})
    archive.proxies.add(*AT, "table", {each.key: {"plain": 2.0} for each in networks})
    table = archive.proxies.of_task(*AT, "nasbench201")
    assert (table.source, table.names, len(table)) == ("table", ("plain",), 3)
    rows = archive.proxies.of_architecture(networks[0].key)
    assert [(row["source"], row["proxy"], row["score"]) for row in rows] == [
        ("archive/1", "synflow", 1.0), ("table", "plain", 2.0)
    ]  # fmt: skip


def test_a_network_that_the_archive_lacks_is_refused(archive):
    (network,) = cells(1)
    with pytest.raises(UsageError, match=network.key):
        archive.proxies.add(*AT, "archive/1", {network.key: {"synflow": 1.0}})
