"""Round trips of a transaction, with the driver's switch and without it."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

import pytest

from archive.database import messages
from archive.errors import QueryError


def read_twice(connection):
    return connection.read(lambda tx: [tx.run("RETURN $n AS n", n=n).single()["n"] for n in (1, 2)])


def write_once(connection):
    return connection.write(
        lambda tx: tx.run("CREATE (n:Scratch) RETURN 1 AS n").single(strict=True)["n"], single=True
    )


@pytest.fixture
def round_trips(connection, caplog):
    """Runs work, and returns its result with the number of waits for the server."""
    connection.ping()

    def count(work=read_twice):
        caplog.clear()
        with caplog.at_level(logging.DEBUG, "neo4j.io"):
            result = work(connection)

        sides = [
            side
            for record in caplog.records
            for side in ("C: ", "S: ")
            if f"  {side}" in record.getMessage()
        ]
        return result, sum(side == "S: " for side, _ in groupby(sides))

    return count


@pytest.mark.dialect
def test_begin_travels_with_the_first_statement(round_trips, monkeypatch):
    result, pipelined = round_trips()
    monkeypatch.setattr(messages, "SWITCH", "_of_another_release")
    assert round_trips() == (result, pipelined + 1)
    assert (result, pipelined) == ([1, 2], 3)


@pytest.mark.dialect
def test_a_single_statement_is_committed_in_its_round_trip(round_trips, connection, monkeypatch):
    assert round_trips(write_once) == (1, 1)
    if connection.dialect == "embedded":
        monkeypatch.setattr(messages, "INTERNALS", ("_of_another_release",))
        assert round_trips(write_once) == (1, 2)


@pytest.mark.dialect
def test_a_single_statement_may_return_many_rows(connection):
    many = "UNWIND range(1, 2500) AS n CREATE (x:Scratch {number: n}) RETURN x.number AS number"
    rows = connection.write(lambda tx: tx.run(many).data(), single=True)
    assert [row["number"] for row in rows] == [*range(1, 2501)]
    assert write_once(connection) == 1


FAILING = """
CREATE (n:Scratch)
WITH n
UNWIND [1, 0] AS divisor
RETURN 1 / divisor AS quotient
"""


@pytest.mark.dialect
def test_a_single_statement_that_fails_stores_nothing_and_leaves_the_connection(connection):
    for _ in range(3):
        with pytest.raises(QueryError, match="zero"):
            connection.write(lambda tx: tx.run(FAILING).data(), single=True)

    assert write_once(connection) == 1
    count = "MATCH (n:Scratch) RETURN count(n) AS count"
    assert connection.read(lambda tx: tx.run(count).single()["count"]) == 1


@pytest.mark.dialect
def test_an_interrupted_single_statement_stays_interrupted(connection, monkeypatch):
    send = messages._CommitConnection.send_all

    def interrupt(self):
        send(self)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(messages._CommitConnection, "send_all", interrupt)
        if connection.dialect == "embedded":
            with pytest.raises(KeyboardInterrupt):
                write_once(connection)

    assert write_once(connection) == 1


def test_single_statements_that_conflict_are_all_stored_once(connection):
    connection.write(lambda tx: tx.run("CREATE (:Scratch {count: 0})").consume())
    increase = "MATCH (n:Scratch) SET n.count = n.count + 1 RETURN n.count AS count"

    def work(_):
        return [
            connection.write(lambda tx: tx.run(increase).single()["count"], single=True)
            for _ in range(10)
        ]

    with ThreadPoolExecutor(4) as pool:
        counts = [count for part in pool.map(work, range(4)) for count in part]

    assert sorted(counts) == [*range(1, 41)]
