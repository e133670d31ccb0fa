"""Time limit of a user's query, on either server, and the errors of such a query."""

from __future__ import annotations

import contextlib
import math
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from neo4j.exceptions import DriverError, Neo4jError

from archive.database.late_call import LateCall
from archive.errors import ArchiveError, QueryError

if TYPE_CHECKING:
    from archive.database.connection import Connection

T = TypeVar("T")

ANSWER_SECONDS = 1.0
"""Time after the limit in which the server's own answer may come: that it ended the query."""
TERMINATE_SECONDS = 2.0
"""Longest time for asking the server to end a query that was interrupted."""

_TIMED_OUT = (
    "Neo.ClientError.Transaction.TransactionTimedOut",
    "Neo.ClientError.Transaction.TransactionTimedOutClientConfiguration",
    "Neo.ClientError.Transaction.Terminated",
    "Neo.TransientError.Transaction.Terminated",
)

_MARK = re.compile(r"\n?/\* [0-9a-f]{16} \*/")
_PLACE = re.compile(r"\bline (\d+):\d+")


class QueryLimit:
    """Time limit of one query, which holds even while the server does not answer.

    Neo4j enforces the timeout of the transaction. ArcadeDB does not, so a watchdog ends the query
    there, and finds it by a mark in the text. The caller stops waiting in any case.

    Args:
        connection: Connection to the archive.
        seconds: The limit, from now on; None for none.
    """

    def __init__(self, connection: Connection, seconds: float | None) -> None:
        self._connection = connection
        self._seconds = seconds
        self._begun = time.monotonic()
        self._mark = f"/* {secrets.token_hex(8)} */"
        self._given_up = threading.Event()

    @property
    def left(self) -> float | None:
        """Seconds that are left, at least a millisecond; None without a limit."""
        if self._seconds is None:
            return None

        return max(1e-3, self._seconds - max(0.0, time.monotonic() - self._begun))

    @property
    def error(self) -> QueryError:
        """Error of a query that takes too long."""
        limit = f"{self._seconds:g} seconds" if self._seconds is not None else "the server's limit"
        return QueryError(f"the query took longer than {limit}: narrow it, or allow it more time")

    def suspend(self) -> None:
        """Let the time begin with the next `watch`: a write waits for its turn."""
        self._begun = math.inf

    def check(self) -> None:
        """Refuse to continue if the caller has stopped waiting.

        This is checked before a query is sent or a write is committed.

        Raises:
            QueryError: It has.
        """
        if self._given_up.is_set():
            raise self.error

    def hold(self, request: Callable[[], T]) -> T:
        """Return the answer of a request, or stop waiting for it at the limit.

        An interrupt, such as Ctrl-C, ends the query on the server, too.

        Raises:
            QueryError: It took too long.
        """
        if self._seconds is None:
            return request()

        call = LateCall(request, "query")
        try:
            ended = call.ends_within(lambda: self._limit_of(call))
        except BaseException:
            self._given_up.set()
            LateCall(self._terminate, "end of a query").ends_within(TERMINATE_SECONDS)
            raise

        if not ended:
            self._given_up.set()
            raise self.error

        return call.answer()

    @contextlib.contextmanager
    def watch(self, cypher: str) -> Iterator[str]:
        """Yield the text to send, and translate the error of a query that takes too long."""
        self.check()
        self._begun = min(self._begun, time.monotonic())
        watchdog = None
        if (left := self.left) is not None and self._connection.dialect == "embedded":
            watchdog = threading.Timer(left, self._terminate)
            watchdog.daemon = True
            watchdog.start()

        try:
            yield f"{cypher}\n{self._mark}" if watchdog else cypher
        except Neo4jError as error:
            if error.code in _TIMED_OUT:
                raise self.error from None

            raise
        finally:
            if watchdog is not None:
                watchdog.cancel()

    def _limit_of(self, call: LateCall[T]) -> float:
        return self._begun - call.began + (self._seconds or 0.0) + ANSWER_SECONDS

    def _terminate(self) -> None:
        if self._connection.dialect != "embedded":
            return

        with contextlib.suppress(ArchiveError, DriverError, Neo4jError):
            with self._connection.session(write=False) as session:
                for record in session.run(
                    "SHOW TRANSACTIONS YIELD transactionId, currentQuery"
                ).fetch(1000):
                    if record["currentQuery"].endswith(self._mark):
                        session.run(f"TERMINATE TRANSACTIONS '{record['transactionId']}'").consume()


def without_mark(message: str, statement: str) -> str:
    """Return the message of an error without the mark, which is not part of the user's statement.

    A statement that ends too early has its error at its end, rather than in the mark on the next
    line.
    """
    lines = statement.split("\n")

    def end(match: re.Match[str]) -> str:
        return f"line {len(lines)}:{len(lines[-1])}" if int(match[1]) > len(lines) else match[0]

    return _PLACE.sub(end, _MARK.sub("", message).strip())
