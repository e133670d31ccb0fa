"""Time limit of a user's query, on either server, and the errors of a query that is sent with one."""

from __future__ import annotations

import contextlib
import re
import secrets
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from neo4j.exceptions import DriverError, Neo4jError

from archive.errors import QueryError

if TYPE_CHECKING:
    from archive.database.connection import Connection

_TIMED_OUT = (
    "Neo.ClientError.Transaction.TransactionTimedOut",
    "Neo.ClientError.Transaction.TransactionTimedOutClientConfiguration",
    "Neo.ClientError.Transaction.Terminated",
    "Neo.TransientError.Transaction.Terminated",
)

_MARK = re.compile(r"\n?/\* [0-9a-f]{16} \*/")
_PLACE = re.compile(r"\bline (\d+):\d+")


@contextlib.contextmanager
def time_limit(connection: Connection, cypher: str, timeout: float | None) -> Iterator[str]:
    """Yield the text to send, and translate the error of a query that takes too long.

    Neo4j enforces the timeout of the transaction. ArcadeDB does not, so a watchdog ends the query there, and finds it
    by a mark in the text.
    """
    mark = f"/* {secrets.token_hex(8)} */"
    watchdog = None
    if timeout is not None and connection.dialect == "embedded":
        watchdog = threading.Timer(timeout, _terminate, (connection, mark))
        watchdog.daemon = True
        watchdog.start()
    try:
        yield f"{cypher}\n{mark}" if watchdog else cypher
    except Neo4jError as error:
        if error.code in _TIMED_OUT:
            limit = f"{timeout:g} seconds" if timeout is not None else "the server's limit"
            raise QueryError(f"the query took longer than {limit}: narrow it, or allow it more time") from None
        raise
    finally:
        if watchdog is not None:
            watchdog.cancel()


def _terminate(connection: Connection, mark: str) -> None:
    with contextlib.suppress(DriverError, Neo4jError), connection.session(write=False) as session:
        for record in session.run("SHOW TRANSACTIONS YIELD transactionId, currentQuery").fetch(1000):
            if record["currentQuery"].endswith(mark):
                session.run(f"TERMINATE TRANSACTIONS '{record['transactionId']}'").consume()


def without_mark(message: str, statement: str) -> str:
    """Return the message of an error without the mark, which is not part of the user's statement.

    A statement that ends too early has its error at its end, rather than in the mark on the next line.
    """
    lines = statement.split("\n")

    def end(place: re.Match[str]) -> str:
        return f"line {len(lines)}:{len(lines[-1])}" if int(place[1]) > len(lines) else place[0]

    return _PLACE.sub(end, _MARK.sub("", message).strip())
