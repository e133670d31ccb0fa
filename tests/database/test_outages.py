"""Outages on both servers: work continues afterwards, waits are bounded, and errors name the
remedy."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from archive import settings
from archive.database import connection as connections
from archive.database.connection import Connection
from archive.database.user_query import run_query
from archive.errors import StoreUnavailableError
from archive.server import embedded
from tests.support import whole
from tests.support.faults.counters import add_once, count
from tests.support.faults.proxy import relayed


@pytest.mark.dialect
def test_work_survives_an_outage(connection, address):
    with relayed(address) as (proxy, connected):
        connected.write(add_once("before"))
        proxy.end()
        threading.Timer(3.0, proxy.begin).start()
        connected.write(add_once("during"))
        assert connected.read(count) == {"n": 2, "total": 2}


@pytest.mark.dialect
def test_a_line_cut_in_the_middle_of_work(connection, address):
    with relayed(address) as (proxy, connected):
        cut = []

        def work(transaction):
            add_once("a")(transaction)
            if not cut:
                cut.append(True)
                proxy.end()
                proxy.begin()

            add_once("b")(transaction)

        connected.write(work)
        assert connected.read(count) == {"n": 2, "total": 2}


@pytest.mark.usefixtures("impatient_driver")
def test_patience_has_an_end(connection, address):
    with relayed(address, patience=0.5) as (proxy, connected):
        proxy.end()
        with pytest.raises(StoreUnavailableError, match=f"127.0.0.1:{proxy.port}"):
            connected.read(count)

        proxy.begin()
        assert connected.read(count)["n"] == 0


@pytest.mark.parametrize("victims", [whole("database"), whole("supervisor"), whole("both")])
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
        run_query(
            connection, "CREATE CONSTRAINT FOR (c:Counter) REQUIRE c.key IS UNIQUE", write=True
        )
        with ThreadPoolExecutor(4) as pool:
            results = [
                pool.submit(connection.write, add_once(str(number))) for number in range(200)
            ]
            embedded.stop(home)
            for result in results:
                result.result()

        assert connection.read(count) == {"n": 200, "total": 200}


# Errors that name the way out


@pytest.mark.usefixtures("impatient_driver")
def test_no_server_answers(tmp_path):
    own = settings.load(home=tmp_path, uri="neo4j://127.0.0.1:1", password="p")
    with pytest.raises(StoreUnavailableError, match=r"neo4j://127.0.0.1:1.*ARCHIVE_DB") as caught:
        Connection.open(own)

    assert caught.value.address == "neo4j://127.0.0.1:1"


@pytest.mark.usefixtures("impatient_driver")
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
            Connection.open(
                settings.load(home=tmp_path, uri=f"bolt://127.0.0.1:{port}", password="p")
            )


@pytest.mark.parametrize("scheme", ["bolt", whole("neo4j"), whole("bolt+ssc")])
def test_an_address_that_accepts_connections_and_never_answers(tmp_path, monkeypatch, scheme):
    monkeypatch.setattr(connections, "_CONNECT_SECONDS", 0.3)
    # The system accepts the connections of a listener that nothing reads.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        own = settings.load(
            home=tmp_path,
            uri=f"{scheme}://127.0.0.1:{listener.getsockname()[1]}",
            password="p",
            patience=0.5,
        )
        begin = time.monotonic()
        with pytest.raises(
            StoreUnavailableError,
            match=r"no database server answers .* is "
            r"ARCHIVE_DB right\?",
        ):
            Connection.open(own)

        assert time.monotonic() - begin < 10.0


@pytest.mark.usefixtures("impatient_driver")
def test_encryption_that_the_server_does_not_offer(address, tmp_path):
    host, port, user, password = address
    with pytest.raises(StoreUnavailableError):
        Connection.open(
            settings.load(
                home=tmp_path, uri=f"bolt+s://{host}:{port}", user=user, password=password
            )
        )
