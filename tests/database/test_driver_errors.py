"""Transient errors of the driver."""

from __future__ import annotations

import socket
import ssl
import threading

import pytest
from neo4j.exceptions import ClientError, DatabaseError, ServiceUnavailable

from archive.database import driver_errors
from archive.database.connection import Connection
from archive.errors import DamagedError, StoreUnavailableError
from archive.settings import Settings

pytestmark = pytest.mark.usefixtures("impatient_driver")


@pytest.mark.parametrize(
    ("error", "passing"),
    [
        (ServiceUnavailable("connection refused"), True),
        (
            DatabaseError("com.arcadedb.exception.RecordNotFoundException: Record #12:3 not found"),
            True,
        ),
        (DatabaseError("Record #1:204 not found"), True),
        (ClientError("Record not found in a user's own words"), False),
        (ClientError("Invalid input 'MATHC'"), False),
    ],
)
def test_records_removed_by_another_transaction_are_retried(error, passing):
    assert driver_errors.is_passing(error) is passing


CHAIN = "Multi-page record #25:6 has a broken chunk chain (chunk slot cleaned at chunk 0)"


@pytest.mark.parametrize(
    ("messages", "damaged"),
    [
        (["Record #29:0 not found"], True),
        ([CHAIN], True),
        (["Run CHECK DATABASE FIX"], True),
        # Other writers delete other records.
        ([f"Record #29:{number} not found" for number in range(20)], False),
    ],
)
def test_a_record_that_is_never_readable_is_damage_and_not_retried_for_long(
    tmp_path, monkeypatch, messages, damaged
):
    monkeypatch.setattr("time.sleep", lambda _: None)
    runs = []

    def attempt():
        if len(runs) == 20:
            return "read"

        runs.append(messages[len(runs) % len(messages)])
        raise DatabaseError(runs[-1])

    connection = Connection(Settings(home=tmp_path, uri="bolt://127.0.0.1:1"))
    if damaged:
        with pytest.raises(DamagedError, match=r"is damaged \("):
            connection.with_recovery(attempt)

        assert 2 <= len(runs) <= 6
    else:
        assert connection.with_recovery(attempt) == "read"


@pytest.mark.parametrize(
    "scheme", ["bolt+s", "neo4j+s", "bolt+ssc"], ids=["bolt", "routing", "unchecked"]
)
def test_a_server_without_tls_is_named(scheme, tmp_path):
    address = f"{scheme}://{_server_of_one_answer(b'HTTP/1.1 400 Bad Request')}"
    plain = address.replace(scheme, scheme.partition("+")[0])
    with pytest.raises(StoreUnavailableError, match=rf"without TLS .* give the address {plain}$"):
        _open(address, tmp_path)


def test_an_untrusted_certificate_is_named():
    error = ServiceUnavailable("Couldn't connect")
    error.__cause__ = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.__cause__.verify_message = "self-signed certificate"
    found = str(driver_errors.translate(error, "neo4j+s://db:7687", "neo4j", None))
    assert (
        "is not trusted: self-signed certificate; neo4j+ssc://db:7687 encrypts without checking it"
    ) in found


@pytest.mark.parametrize("scheme", ["bolt", "neo4j"], ids=["bolt", "routing"])
def test_a_port_on_which_nothing_listens_is_refused_with_the_reason(scheme, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

    with pytest.raises(
        StoreUnavailableError, match=r"is ARCHIVE_DB right\? \(Connection refused\)"
    ):
        _open(f"{scheme}://127.0.0.1:{port}", tmp_path)


def _open(address, home):
    Connection.open(Settings(home=home, uri=address, user="neo4j", password="none", patience=0.0))


def _server_of_one_answer(answer):
    """Return the address of a server that answers each connection with these bytes, and ends it."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        with server:
            for _ in range(100):
                connection, _ = server.accept()
                with connection:
                    connection.recv(1000)
                    connection.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()
    return "{}:{}".format(*server.getsockname())
