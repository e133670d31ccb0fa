"""The connection on both servers: transactions, and logins that are refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import pytest
from neo4j.exceptions import TransientError

from archive import settings
from archive.database import messages
from archive.database.connection import Connection
from archive.database.statements import write_all
from archive.database.user_query import run_query
from archive.errors import (
    AuthenticationError,
    DatabaseNotFoundError,
    IncompleteWriteError,
    LeaseLostError,
    MessageTooLargeError,
    QueryError,
    StoreUnavailableError,
)
from tests.support.faults.counters import add_once, count
from tests.support.faults.proxy import relayed

pytestmark = pytest.mark.dialect

WRITE = """
UNWIND $rows AS row
WITH row WHERE row.skip IS NULL OR NOT row.skip
CREATE (c:Counter {key: row.id, value: 1})
RETURN count(*) AS written
"""

ENTRIES = "UNWIND $rows AS row RETURN sum(size(row.values)) AS n"


def test_a_write_is_there_for_every_later_read(connection, open_connection):
    connection.write(add_once("a"))
    assert connection.read(count) == {"n": 1, "total": 1}
    assert open_connection().read(count) == {"n": 1, "total": 1}


def test_a_write_that_raises_leaves_nothing(connection):
    def work(transaction):
        add_once("a")(transaction)
        raise LeaseLostError("s#00001", "a test")

    with pytest.raises(LeaseLostError):
        connection.write(work)

    assert connection.read(count)["n"] == 0


def test_a_statement_that_arcadedb_does_not_take_is_refused(connection, monkeypatch):
    # Three rows of 6 MB. Without an answer, the call would last for ever.
    rows = [{"id": name, "values": [0.5] * 700_000} for name in "abc"]
    if connection.dialect == "neo4j":
        assert connection.read(partial(entries, rows=rows)) == 2_100_000
    else:
        with pytest.raises(MessageTooLargeError, match=r"15 MiB in one statement, got 18\.0 MiB"):
            connection.read(partial(entries, rows=rows))

        assert connection.read(partial(entries, rows=rows[:2])) == 1_400_000

    monkeypatch.setattr(messages, "LARGEST_BYTES", 2**20)
    rows = [{"id": name, "values": [0.5] * 70_000} for name in "abc"]
    work = partial(entries, rows=rows)
    for call in (
        partial(connection.read, work),
        partial(connection.write, work),
        partial(connection.read, work, single=True),
        lambda: run_query(connection, ENTRIES, {"rows": rows}).rows[0][0],
    ):
        if connection.dialect == "neo4j":
            assert call() == 210_000
            continue

        with pytest.raises(MessageTooLargeError, match=r"1 MiB in one statement, got 1\.8 MiB"):
            call()


def entries(tx, rows):
    return tx.run(ENTRIES, {"rows": rows}).single()["n"]


def test_work_is_run_again_after_a_passing_error(connection):
    runs = []

    def work(transaction):
        runs.append(1)
        add_once("a")(transaction)
        if len(runs) < 3:
            raise TransientError("again")

        return "done"

    # The driver decides by the class of an error whether to retry.
    assert connection.write(work) == "done"
    assert len(runs) == 3
    assert connection.read(count) == {"n": 1, "total": 1}


def test_work_that_skipped_rows_is_run_again(connection):
    runs = []

    def work(transaction):
        runs.append(1)
        add_once("a")(transaction)
        return write_all(transaction, WRITE, [{"id": "b"}, {"id": "c", "skip": len(runs) < 3}])

    connection.write(work)
    assert len(runs) == 3
    assert connection.read(count) == {"n": 3, "total": 3}
    with pytest.raises(IncompleteWriteError, match=r"^only 1 of 2 could be written \(among d, e\)"):
        connection.write(lambda tx: write_all(tx, WRITE, [{"id": "e", "skip": True}, {"id": "d"}]))

    assert connection.read(count) == {"n": 3, "total": 3}


def test_conflicting_writers_all_get_through(connection, open_connection):
    def add(transaction):
        transaction.run(
            "MERGE (c:Counter {key: 'shared'}) SET c.value = coalesce(c.value, 0) + 1"
        ).consume()

    connection.write(add)
    connections = [open_connection() for _ in range(2)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda number: connections[number % 2].write(add), range(60)))

    assert connection.read(count) == {"n": 1, "total": 61}


def test_two_that_create_the_same_id_share_one_node(connection, open_connection):
    def propose(number):
        def work(transaction):
            transaction.run(
                "MERGE (a:Agent {id: $id}) SET a.kind = 'random'", id=f"agent-{number // 8}"
            ).consume()

        connections[number % 2].write(work)

    connections = [connection, open_connection()]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(propose, range(80)))

    assert run_query(connection, "MATCH (a:Agent) RETURN count(a)").rows == [(10,)]


def test_a_real_violation_is_reported_in_the_end(connection):
    connection.write(lambda transaction: transaction.run("CREATE (:Agent {id: 'a'})").consume())
    with pytest.raises(QueryError, match="a"):
        connection.write(
            lambda transaction: transaction.run("CREATE (:Agent {id: 'a'})").consume(), patience=0.5
        )


def test_the_dialect_is_the_servers(connection, store_settings, address):
    assert connection.dialect == ("embedded" if store_settings.embedded else "neo4j")
    if store_settings.embedded:
        with relayed(address) as (_, by_address):
            assert by_address.dialect == "embedded"


@pytest.mark.parametrize("wrong", ["not-the-password", None])
def test_a_wrong_password(address, tmp_path, wrong):
    host, port, user, _ = address
    with pytest.raises(AuthenticationError, match=rf"{port}.*'{user}'.*ARCHIVE_PASSWORD") as caught:
        Connection.open(
            settings.load(home=tmp_path, uri=f"bolt://{host}:{port}", user=user, password=wrong)
        )

    assert "not-the-password" not in str(caught.value)


def test_a_wrong_database(address, tmp_path):
    host, port, user, password = address
    own = settings.load(
        home=tmp_path, uri=f"bolt://{host}:{port}", user=user, password=password, database="nope"
    )
    with pytest.raises(DatabaseNotFoundError, match=r"'nope'.*ARCHIVE_DATABASE"):
        Connection.open(replace(own, patience=1.0))


def test_a_connection_that_was_closed(store_settings):
    connection = Connection.open(store_settings)
    connection.close()
    connection.close()
    with pytest.raises(StoreUnavailableError, match="closed"):
        run_query(connection, "RETURN 1")


def test_no_password_in_what_is_shown(connection, address):
    for shown in (repr(connection), repr(connection.settings), connection.address):
        assert address[3] not in shown
