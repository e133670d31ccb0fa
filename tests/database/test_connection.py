"""The connection on both servers: transactions, outages, queries, and errors that name the way out."""

from __future__ import annotations

import json
import os
import signal
import socket
import socketserver
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from neo4j.exceptions import TransientError

from archive import settings
from archive.database.connection import Connection
from archive.database.statements import write_all
from archive.database.user_query import run_query
from archive.errors import (
    AuthenticationError,
    DatabaseNotFoundError,
    IncompleteWriteError,
    LeaseLostError,
    QueryError,
    StoreError,
    StoreUnavailableError,
    UsageError,
)
from archive.server import embedded
from tests.support import whole

pytestmark = pytest.mark.dialect

WRITE = """
UNWIND $rows AS row
WITH row WHERE row.skip IS NULL OR NOT row.skip
CREATE (c:Counter {key: row.id, value: 1})
RETURN count(*) AS written
"""
FOREVER = "UNWIND range(1, 30000) AS i UNWIND range(1, 30000) AS j WITH i * j AS k WHERE k % 7 = 1 RETURN count(k)"


def count(transaction):
    return transaction.run("MATCH (c:Counter) RETURN count(c) AS n, sum(c.value) AS total").single().data()


def add_once(key):
    def work(transaction):
        transaction.run("MERGE (c:Counter {key: $key}) SET c.value = 1", key=key).consume()

    return work


@pytest.fixture
def address(connection):
    """Host and port of the server, user and password."""
    uri, user, password = connection.login
    return urlsplit(uri).hostname, urlsplit(uri).port, user, password


class Proxy:
    """A TCP relay between the driver and a server that can be interrupted."""

    def __init__(self, target):
        self.target, self.live = target, []
        self.listener = None
        self.port = 0

    def up(self):
        proxy = self

        class Relay(socketserver.BaseRequestHandler):
            def handle(self):
                with socket.create_connection(proxy.target) as far:
                    proxy.live += [self.request, far]
                    back = threading.Thread(target=pump, args=(far, self.request), daemon=True)
                    back.start()
                    pump(self.request, far)
                    back.join()

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True

        self.listener = Server(("127.0.0.1", self.port), Relay)
        self.port = self.listener.server_address[1]
        threading.Thread(target=self.listener.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def down(self):
        self.listener.shutdown()
        self.listener.server_close()
        for each in self.live:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self.live.clear()


def pump(source, sink):
    with suppress(OSError):
        while chunk := source.recv(65536):
            sink.sendall(chunk)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


@contextmanager
def through_proxy(address, patience=30.0):
    host, port, user, password = address
    proxy = Proxy((host, port))
    proxy.up()
    own = settings.load(uri=f"bolt://127.0.0.1:{proxy.port}", user=user, password=password, patience=patience)
    if user == "root":
        own = replace(own, database="archive")
    try:
        with Connection.open(own) as connection:
            yield proxy, connection
    finally:
        proxy.down()


# Transactions


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
        transaction.run("MERGE (c:Counter {key: 'shared'}) SET c.value = coalesce(c.value, 0) + 1").consume()

    connection.write(add)
    connections = [open_connection() for _ in range(2)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda number: connections[number % 2].write(add), range(60)))
    assert connection.read(count) == {"n": 1, "total": 61}


def test_two_that_create_the_same_id_share_one_node(connection, open_connection):
    def propose(number):
        def work(transaction):
            transaction.run("MERGE (a:Agent {id: $id}) SET a.kind = 'random'", id=f"agent-{number // 8}").consume()

        connections[number % 2].write(work)

    connections = [connection, open_connection()]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(propose, range(80)))
    assert run_query(connection, "MATCH (a:Agent) RETURN count(a)").rows == [(10,)]


def test_a_real_violation_is_reported_in_the_end(connection):
    connection.write(lambda transaction: transaction.run("CREATE (:Agent {id: 'a'})").consume())
    with pytest.raises(QueryError, match="a"):
        connection.write(lambda transaction: transaction.run("CREATE (:Agent {id: 'a'})").consume(), patience=0.5)


def test_the_dialect_is_the_servers(connection, store_settings, address):
    assert connection.dialect == ("embedded" if store_settings.embedded else "neo4j")
    if store_settings.embedded:
        with through_proxy(address) as (_, by_address):
            assert by_address.dialect == "embedded"


# Outages


def test_work_survives_an_outage(connection, address):
    with through_proxy(address) as (proxy, relayed):
        relayed.write(add_once("before"))
        proxy.down()
        threading.Timer(3.0, proxy.up).start()
        relayed.write(add_once("during"))
        assert relayed.read(count) == {"n": 2, "total": 2}


def test_a_line_cut_in_the_middle_of_work(connection, address):
    with through_proxy(address) as (proxy, relayed):
        cut = []

        def work(transaction):
            add_once("a")(transaction)
            if not cut:
                cut.append(True)
                proxy.down()
                proxy.up()
            add_once("b")(transaction)

        relayed.write(work)
        assert relayed.read(count) == {"n": 2, "total": 2}


def test_patience_has_an_end(connection, address):
    with through_proxy(address, patience=0.5) as (proxy, relayed):
        proxy.down()
        with pytest.raises(StoreUnavailableError, match=f"127.0.0.1:{proxy.port}"):
            relayed.read(count)
        proxy.up()
        assert relayed.read(count)["n"] == 0


@pytest.mark.parametrize("victims", [whole("database"), whole("supervisor"), "both"])
def test_the_embedded_server_killed_in_the_middle_of_work(home, victims):
    with Connection.open(home) as connection:
        connection.write(add_once("before"))
        killed = []

        def work(transaction):
            transaction.run("MERGE (c:Counter {key: 'a'}) SET c.value = 1").consume()
            if not killed:
                killed.append(True)
                status = embedded.status(home)
                if victims in ("supervisor", "both"):
                    os.kill(status.pid, signal.SIGKILL)
                if victims in ("database", "both"):
                    with suppress(ProcessLookupError):
                        os.kill(status.java_pid, signal.SIGKILL)
            transaction.run("MERGE (c:Counter {key: 'b'}) SET c.value = 1").consume()

        connection.write(work)
        assert connection.read(count) == {"n": 3, "total": 3}


@pytest.mark.whole
def test_the_embedded_server_stopped_under_many_threads(home):
    with Connection.open(home) as connection:
        # As in the schema, so that only the writes of the threads can conflict.
        run_query(connection, "CREATE CONSTRAINT FOR (c:Counter) REQUIRE c.key IS UNIQUE", write=True)
        with ThreadPoolExecutor(4) as pool:
            results = [pool.submit(connection.write, add_once(str(number))) for number in range(200)]
            embedded.stop(home)
            for result in results:
                result.result()
        assert connection.read(count) == {"n": 200, "total": 200}


# Errors that name the way out


def test_no_server_answers(tmp_path):
    own = settings.load(home=tmp_path, uri="neo4j://127.0.0.1:1", password="p")
    with pytest.raises(StoreUnavailableError, match=r"neo4j://127.0.0.1:1.*ARCHIVE_DB") as caught:
        Connection.open(own)
    assert caught.value.address == "neo4j://127.0.0.1:1"


def test_the_address_of_something_else(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def answer():
            with suppress(OSError):
                while True:
                    caller, _ = listener.accept()
                    with caller:
                        caller.recv(100)
                        caller.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(StoreUnavailableError, match=str(port)):
            Connection.open(settings.load(home=tmp_path, uri=f"bolt://127.0.0.1:{port}", password="p"))


def test_encryption_that_the_server_does_not_offer(address, tmp_path):
    host, port, user, password = address
    with pytest.raises(StoreUnavailableError):
        Connection.open(settings.load(home=tmp_path, uri=f"bolt+s://{host}:{port}", user=user, password=password))


@pytest.mark.parametrize("wrong", ["not-the-password", None])
def test_a_wrong_password(address, tmp_path, wrong):
    host, port, user, _ = address
    with pytest.raises(AuthenticationError, match=rf"{port}.*'{user}'.*ARCHIVE_PASSWORD") as caught:
        Connection.open(settings.load(home=tmp_path, uri=f"bolt://{host}:{port}", user=user, password=wrong))
    assert "not-the-password" not in str(caught.value)


def test_a_wrong_database(address, tmp_path):
    host, port, user, password = address
    own = settings.load(home=tmp_path, uri=f"bolt://{host}:{port}", user=user, password=password, database="nope")
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


# Queries


def test_rows_and_columns(connection):
    result = run_query(connection, "UNWIND [1, 2] AS n RETURN n, toString(n) AS text, n / 2.0 AS half", {})
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
        "CREATE (:Study {name: 'a', created: datetime('2024-01-02T03:04:05Z')})-[:ON {x: 1}]->(:Task {id: 't'})",
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
    result = run_query(connection, "UNWIND range(1, 2000000) AS n RETURN n", limit=2, timeout=60)
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
    "cypher", ["RETURN 1 +", "RETURN nothing", "RETURN 1 / 0", "MATCH (n RETURN n", "RETURN $missing"]
)
def test_a_query_that_is_wrong(connection, cypher, write):
    with pytest.raises(QueryError) as caught:
        run_query(connection, cypher, write=write)
    assert str(caught.value).strip()


def test_a_write_is_run_once(connection, address):
    with through_proxy(address, patience=1.0) as (proxy, relayed):
        proxy.down()
        with pytest.raises(StoreError):
            run_query(relayed, "CREATE (:Counter {value: 1})", write=True)
        proxy.up()
        assert run_query(relayed, "CREATE (:Counter {value: 1})", write=True).rows == []
        assert relayed.read(count) == {"n": 1, "total": 1}


def test_a_rejected_query_is_shown_as_it_was_typed(connection):
    with pytest.raises(QueryError) as caught:
        run_query(connection, "MATCH (n", timeout=5.0)
    assert "/*" not in str(caught.value)
