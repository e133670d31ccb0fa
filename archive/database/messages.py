"""Messages to the server: pipelined BEGIN and COMMIT, and the limit of a message's size.

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

ArcadeDB accepts messages of up to 16 MiB. It sends no answer to a longer one, for which the driver
would wait for ever. Longer statements are therefore refused here, and writers of many rows cut them
into parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar, cast

from archive.errors import MessageTooLargeError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import neo4j
    from neo4j import ManagedTransaction, Result

SWITCH = "_pipelined_begin"
"""Attribute of a session: a context in which its transactions begin with their first statement."""
INTERNALS = ("_connection", "_closed_flag", "_on_closed")
"""Attributes of a transaction: the connection, whether it has ended, and what the session does
then."""


def pipelined(session: neo4j.Session) -> AbstractContextManager[Any]:
    """Return the context in which transactions begin with their first statement.

    It does nothing if the driver has no such context.
    """
    switch = getattr(session, SWITCH, None)
    return switch if isinstance(switch, AbstractContextManager) else nullcontext()


class CommittingSession:
    """Session whose statements are transactions, each committed in one round trip.

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
        """Run a statement in a transaction, commit it, and return its rows.

        See `neo4j.Session.run`.

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
        except BaseException:
            # The answers of an interrupted statement may still come: another statement must not
            # read them. A closed connection also needs no rollback, which would fail after COMMIT.
            transaction._connection.kill()
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


T = TypeVar("T")

LARGEST_BYTES = 15 * 2**20
"""Largest message that is sent to an embedded server, less a margin for the bytes that the driver
adds."""
PART_BYTES = 4 * 2**20
"""Size of the parts of a large write."""

_NUMBERS = frozenset({int, float, bool, type(None)})
_NUMBER = 9
"""Most bytes of a number."""
_HEADER = 5
"""Most bytes of the header of a text, list or map, which has its type and length."""


def encoded_size(value: Any) -> int:
    """Return an upper bound of the bytes of a value in a message (PackStream).

    It is fast for lists of numbers.
    """
    kind = type(value)
    if kind in _NUMBERS:
        return _NUMBER

    if kind is str:
        return _HEADER + (
            len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
        )

    if kind is dict:
        # Most values of a table's rows are numbers, and a call for each would take twice the time.
        size = _HEADER
        for name, item in value.items():
            size += _HEADER + len(name) if name.isascii() else encoded_size(name)
            size += _NUMBER if type(item) in _NUMBERS else encoded_size(item)

        return size

    if kind is list or kind is tuple:
        kinds = set(map(type, value))
        return _HEADER + (
            _size_of_numbers(value, kinds) if kinds <= _NUMBERS else sum(map(encoded_size, value))
        )

    if isinstance(value, bytes | bytearray):
        return _HEADER + len(value)

    # A time, a point, or an array, which is sent as a list.
    return _HEADER + _NUMBER * int(getattr(value, "size", 5))


def parts(items: Iterable[T], size: Callable[[T], int] = encoded_size) -> Iterator[list[T]]:
    """Cut items into lists of at most `PART_BYTES`; a larger item is in a list by itself.

    Args:
        items: The items.
        size: Bytes of an item in a message.
    """
    part: list[T] = []
    total = 0
    for item in items:
        bytes_ = size(item)
        if part and total + bytes_ > PART_BYTES:
            yield part
            part = []
            total = 0

        part.append(item)
        total += bytes_

    if part:
        yield part


def check_size(statement: str, parameters: Mapping[str, Any]) -> None:
    """Check that a statement fits in one message to an embedded server.

    Raises:
        MessageTooLargeError: The statement is larger.
    """
    size = encoded_size(statement) + encoded_size(parameters)
    if size > LARGEST_BYTES:
        raise MessageTooLargeError(size, LARGEST_BYTES)


def limited(work: Callable[[ManagedTransaction], T]) -> Callable[[ManagedTransaction], T]:
    """Return work that raises a MessageTooLargeError instead of running a too large statement."""
    return lambda transaction: work(cast("ManagedTransaction", _LimitedTransaction(transaction)))


class _LimitedTransaction:
    """Transaction, or session, that refuses statements too large for one message."""

    def __init__(self, transaction: ManagedTransaction) -> None:
        self._transaction = transaction

    def run(
        self, query: Any, parameters: Mapping[str, Any] | None = None, **further: Any
    ) -> Result:
        """Run a statement; see `neo4j.ManagedTransaction.run`.

        Raises:
            UsageError: A parameter has a value that no server holds, such as half of a character.
        """
        try:
            check_size(getattr(query, "text", query), {**(parameters or {}), **further})
            return self._transaction.run(query, dict(parameters) if parameters else None, **further)
        # Errors of the driver's encoder.
        except (OverflowError, TypeError, ValueError) as error:
            raise UsageError(f"a value cannot be sent to the server: {error}") from error


def _size_of_numbers(values: list[Any] | tuple[Any, ...], kinds: set[type]) -> int:
    """Return an upper bound of the bytes of numbers: every integer counts like the largest one."""
    if float in kinds or type(None) in kinds or not values:
        return _NUMBER * len(values)

    most = max(abs(min(values)), abs(max(values)))
    width = next(
        (bytes_ for bits, bytes_ in ((4, 1), (7, 2), (15, 3), (31, 5)) if most < 2**bits), _NUMBER
    )
    return len(values) * width
