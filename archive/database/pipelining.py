"""Pipelined BEGIN and COMMIT: they are sent with a statement, which saves round trips of each
transaction.

    by itself           BEGIN ──> SUCCESS      RUN, PULL ──> rows      COMMIT ──> SUCCESS
    pipelined           BEGIN, RUN, PULL ──> SUCCESS, rows             COMMIT ──> SUCCESS
    a single statement  BEGIN, RUN, PULL, COMMIT ──> SUCCESS, rows, SUCCESS

After a statement that fails, the server ignores the COMMIT that follows it.

The driver does this in `Driver.execute_query`, whose transaction has one statement. It has no
public option for transactions of several statements: `Session.execute_read`,
`Session.execute_write` and `Session.begin_transaction` wait for the answer to BEGIN (neo4j 6.1 to
6.3, `TransactionBase._begin`). The auto-commit transactions of `Session.run` have one statement,
too, and are not atomic on ArcadeDB. This module, and no other, therefore sets the internal
attribute that `execute_query` sets, and appends COMMIT to the messages of a transaction's only
statement, for which the driver has no option either. With a driver that lacks these attributes,
each transaction takes more round trips.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import neo4j

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SWITCH = "_pipelined_begin"
"""Attribute of a session: a context in which its transactions begin with their first statement."""
INTERNALS = ("_connection", "_closed_flag", "_on_closed")
"""Attributes of a transaction: the connection, whether it has ended, and what the session does
then."""


def pipelined(session: neo4j.Session) -> AbstractContextManager[Any]:
    """Return the context in which a session's transactions begin with their first statement, if the
    driver has one.
    """
    switch = getattr(session, SWITCH, None)
    return switch if isinstance(switch, AbstractContextManager) else nullcontext()


class CommittingSession:
    """Session whose statements are transactions of their own, each sent and committed in one round
    trip.

    Unlike the auto-commit transactions of the session itself, they are atomic on ArcadeDB.

    Args:
        session: The session, with the option `fetch_size=-1`.
    """

    def __init__(self, session: neo4j.Session) -> None:
        """Keep the session."""
        self._session = session

    def run(
        self, query: Any, parameters: Mapping[str, Any] | None = None, **further: Any
    ) -> CommittedRows:
        """Run a statement in a transaction, commit it, and return its rows; see
        `neo4j.Session.run`.

        Raises:
            Neo4jError: The statement or the commit failed, and nothing is stored.
            DriverError: The connection was lost; the transaction may be stored.
        """
        values = dict(parameters) if parameters else None
        with pipelined(self._session):
            transaction: Any = self._session.begin_transaction()

        try:
            if not all(hasattr(transaction, name) for name in INTERNALS):
                rows = CommittedRows(list(transaction.run(query, values, **further)))
                transaction.commit()
                return rows

            connection = transaction._connection = _CommitConnection(transaction._connection)
            rows = CommittedRows(list(transaction.run(query, values, **further)))
            connection.fetch_all()
        except Exception:
            transaction.close()
            raise

        transaction._closed_flag = True
        transaction._on_closed()
        return rows


class CommittedRows:
    """Rows of a committed statement, with the methods of `neo4j.Result` that the store uses.

    Args:
        records: The rows.
    """

    def __init__(self, records: list[neo4j.Record]) -> None:
        """Keep the rows."""
        self._records = records

    def __iter__(self) -> Iterator[neo4j.Record]:
        """The rows."""
        return iter(self._records)

    def single(self, strict: bool = False) -> neo4j.Record | None:
        """Return the only row; see `neo4j.Result.single`."""
        if strict and len(self._records) != 1:
            raise ValueError(
                f"a statement with one row was expected, got {len(self._records)} rows"
            )

        return self._records[0] if self._records else None

    def data(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries."""
        return [record.data() for record in self._records]


class _CommitConnection:
    """Connection of one transaction, which sends COMMIT after the first statement."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._sent = False

    def send_all(self) -> None:
        if not self._sent:
            self._sent = True
            self._connection.commit()

        self._connection.send_all()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)
