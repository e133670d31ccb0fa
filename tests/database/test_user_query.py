"""Queries of users on both servers: rows, parameters, limits, time, and errors."""

from __future__ import annotations

import json
import re
import time

import pytest

from archive.database.user_query import run_query
from archive.errors import QueryError, StoreError, UsageError
from tests.support.faults.counters import count
from tests.support.faults.proxy import relayed

pytestmark = pytest.mark.dialect

FOREVER = (
    "UNWIND range(1, 30000) AS i UNWIND range(1, 30000) AS j WITH i * j AS k WHERE k % 7 = "
    "1 RETURN count(k)"
)


def test_rows_and_columns(connection):
    result = run_query(
        connection, "UNWIND [1, 2] AS n RETURN n, toString(n) AS text, n / 2.0 AS half", {}
    )
    assert result.columns == ["n", "text", "half"]
    assert result.rows == [(1, "1", 0.5), (2, "2", 1.0)]
    assert not result.truncated


def test_parameters(connection):
    sent = {"list": [1, 2.5, "x", None, True], "map": {"a": [1]}}
    assert run_query(connection, "RETURN $list, $map", sent).rows == [(sent["list"], sent["map"])]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (2**63, "of 64 bits"),
        ([{"a": -(10**5000)}], "bits"),
        ({"\ud800": 1}, "half"),
        ([{1, 2}], "type set"),
        ({1: 2}, "keys must be text"),
        (json.loads("[" * 99 + "]" * 99), "nests"),
    ],
)
def test_parameters_that_no_server_takes(connection, value, message):
    with pytest.raises(UsageError, match=message):
        run_query(connection, "RETURN $value", {"value": value})


def test_values_of_the_graph_are_plain(connection):
    run_query(
        connection,
        (
            "CREATE (:Study {name: 'a', created: datetime('2024-01-02T03:04:05Z')})-[:ON {x: "
            "1}]->(:Task {id: 't'})"
        ),
        write=True,
    )
    ((node, relationship, path, day),) = run_query(
        connection, "MATCH p = (s:Study)-[r:ON]->(:Task) RETURN s, r, p, date('2024-01-02')"
    ).rows
    assert node["labels"] == ["Study"]
    assert node["properties"]["name"] == "a"
    assert node["properties"]["created"].startswith("2024-01-02T03:04:05")
    assert (relationship["type"], relationship["properties"]) == ("ON", {"x": 1})
    assert [sorted(step) for step in path] == [sorted(node), sorted(relationship), sorted(node)]
    assert day == "2024-01-02"


@pytest.mark.parametrize(
    ("limit", "shown", "truncated"), [(1, 1, True), (9, 9, True), (10, 10, False), (11, 10, False)]
)
def test_a_limit_is_reported(connection, limit, shown, truncated):
    result = run_query(connection, "UNWIND range(1, 10) AS n RETURN n", limit=limit)
    assert (len(result.rows), result.truncated) == (shown, truncated)


def test_a_limit_does_not_fetch_the_rest(connection):
    result = run_query(connection, "UNWIND range(1, 200000) AS n RETURN n", limit=2, timeout=60)
    assert result.rows == [(1,), (2,)]
    assert result.truncated


@pytest.mark.parametrize("arguments", [{"limit": 0}, {"timeout": 0}, {"timeout": -1.0}])
def test_a_limit_without_sense(connection, arguments):
    with pytest.raises(QueryError, match="must be"):
        run_query(connection, "RETURN 1", **arguments)


@pytest.mark.parametrize("write", [False, True])
def test_a_query_that_takes_too_long_is_ended(connection, write):
    with pytest.raises(QueryError, match=r"took longer than 0.5 seconds"):
        run_query(connection, FOREVER, timeout=0.5, write=write)

    def still_running():
        rows = run_query(connection, "SHOW TRANSACTIONS YIELD currentQuery").rows
        return any("30000" in (text or "") for (text,) in rows)

    deadline = time.monotonic() + 20
    while still_running():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.parametrize("write", [False, True])
@pytest.mark.parametrize(
    "cypher",
    ["RETURN 1 +", "RETURN nothing", "RETURN 1 / 0", "MATCH (n RETURN n", "RETURN $missing"],
)
def test_a_query_that_is_wrong(connection, cypher, write):
    with pytest.raises(QueryError) as caught:
        run_query(connection, cypher, write=write)

    assert str(caught.value).strip()


def test_a_write_is_run_once(connection, address):
    with relayed(address, patience=1.0) as (proxy, connected):
        proxy.end()
        with pytest.raises(StoreError):
            run_query(connected, "CREATE (:Counter {value: 1})", write=True)

        proxy.begin()
        assert run_query(connected, "CREATE (:Counter {value: 1})", write=True).rows == []
        assert connected.read(count) == {"n": 1, "total": 1}


def test_a_rejected_query_is_shown_as_it_was_typed(connection):
    with pytest.raises(QueryError) as caught:
        run_query(connection, "MATCH (n", timeout=5.0)

    assert "/*" not in str(caught.value)


@pytest.mark.parametrize("cypher", ["MATCH (a", "RETURN 1 +", "MATCH (a)\nRETURN a.key ORDER BY"])
def test_a_query_that_ends_too_early_has_its_error_at_its_end(connection, cypher):
    with pytest.raises(QueryError) as caught:
        run_query(connection, cypher, timeout=20.0)

    assert "/*" not in str(caught.value)
    lines = cypher.split("\n")
    for line, column in re.findall(r"line (\d+)\D+(\d+)", str(caught.value)):
        assert int(line) == len(lines) and int(column) <= len(lines[-1]) + 1
