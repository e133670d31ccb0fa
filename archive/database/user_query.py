"""A user's query: guarded, limited in time and rows, and rolled back unless it may write.

A query that may not write meets three protections, because ArcadeDB itself enforces none: the guard
checks the text (`archive.database.read_only`), the session requests READ access (enforced by
Neo4j), and the transaction is always rolled back.

A query during which the server died is never sent again, because it may be the cause: its
intermediate values are the one thing in an embedded server whose memory has no bound
(docs/operations.md).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import neo4j
from neo4j import graph
from neo4j.exceptions import (
    ConstraintError,
    DriverError,
    Neo4jError,
    ServiceUnavailable,
    SessionExpired,
    TransientError,
)

from archive.database import driver_errors
from archive.database.messages import check_size
from archive.database.read_only import commits_in_parts, require_read_only, without_end_mark
from archive.database.statements import revised, rewritten
from archive.database.time_limit import QueryLimit, without_mark
from archive.errors import ArchiveError, QueryError, StoreError, StoreUnavailableError, UsageError

if TYPE_CHECKING:
    from archive.database.connection import Connection

T = TypeVar("T")

_NEEDS_ITS_OWN_TRANSACTION = (
    "Neo.DatabaseError.Transaction.TransactionStartFailed",
    "Neo.ClientError.Transaction.ForbiddenDueToTransactionType",
)

# A user's write may invalidate the counts of a study and the cached proposals of a reader.
REWRITTEN = f"MATCH (s:Study) SET {rewritten('s')}, {revised('s')}"
# Longest time for running `REWRITTEN` after an error of the user's write.
REWRITE_SECONDS = 5.0

Page = tuple[int, int | None]
"""Number of rows to skip, and maximum number to return."""


@dataclass(frozen=True)
class QueryResult:
    """The answer to a query.

    Attributes:
        columns: Names of the columns.
        rows: One tuple a row, in the order of `columns`, of JSON values: a node is `{"labels",
            "properties"}`, a relationship `{"type", "start", "end", "properties"}`, a path the list
            of both in turn, a point in time its ISO 8601 text.
        truncated: Whether further rows were cut off at the limit.
    """

    columns: list[str]
    rows: list[tuple[Any, ...]]
    truncated: bool = False


def run_query(
    connection: Connection,
    cypher: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    write: bool = False,
    limit: int | None = None,
    skip: int = 0,
    timeout: float | None = None,
) -> QueryResult:
    """Answer a user's query, which cannot change anything unless `write` is given.

    Args:
        connection: Connection to the archive.
        cypher: One statement.
        parameters: Values of its `$parameters`.
        write: Whether the query may write. On an embedded server it waits for its turn. It runs
            again after a conflict with another writer, which has rolled it back. It does not run
            again if its outcome is unknown, or if it commits in parts.
        limit: Maximum number of rows to return; further ones are cut off, and the result says so.
        skip: Number of rows to skip; a query of several pages needs an ORDER BY.
        timeout: Seconds after which the server ends it, and after which an answer is no longer
            waited for, whatever the server does. The time of a write begins with its turn.

    Raises:
        ReadOnlyError: The query could write, and `write` was not given.
        QueryError: The server rejected it, ran out of memory, or it took too long.
        StoreError: The connection was lost, the server died, or a conflict ended a write that
            commits in parts.
        UsageError: A parameter cannot be sent, or the query is larger than an embedded server
            takes.
    """
    values = dict(parameters or {})
    if limit is not None and limit < 1:
        raise QueryError(f"limit must be >= 1, got {limit}")

    if skip < 0:
        raise QueryError(f"skip must be >= 0, got {skip}")

    if timeout is not None and timeout <= 0:
        raise QueryError(f"timeout must be > 0 seconds, got {timeout:g}")

    check_parameters(values)
    statement = without_end_mark(cypher)
    if connection.dialect == "embedded":
        check_size(statement, values)

    if not write:
        require_read_only(cypher)

    time_limit = QueryLimit(connection, timeout)
    request = partial(
        _run_write if write else _read, connection, statement, values, (skip, limit), time_limit
    )
    try:
        answer = time_limit.hold(request)
    except QueryError as error:
        raise QueryError(without_mark(str(error), statement)) from None

    # ArcadeDB names the columns with the first row only.
    return answer if answer.columns or answer.rows else replace(answer, columns=columns_of(cypher))


def _read(
    connection: Connection, cypher: str, parameters: dict[str, Any], page: Page, limit: QueryLimit
) -> QueryResult:
    """Run a query that only reads.

    It runs again after a conflict or a lost connection, never after the server's death.
    """
    patience = None if limit.left is None else min(limit.left, connection.settings.patience)
    return connection.with_recovery(
        lambda: _run_and_roll_back(connection, cypher, parameters, page, limit), patience
    )


def _run_and_roll_back(
    connection: Connection, cypher: str, parameters: dict[str, Any], page: Page, limit: QueryLimit
) -> QueryResult:
    with connection.session(write=False) as session, limit.watch(cypher) as text:
        # Its round trip finds out about a connection that was lost before the query.
        transaction = session.begin_transaction(timeout=limit.left)
        limit.check()
        instance = connection.instance
        try:
            return _collect(transaction.run(text, parameters), *page)
        except (DriverError, Neo4jError) as error:
            _check_survival(connection, instance, error)
            raise
        finally:
            # A transaction that the server has ended already has nothing to roll back.
            with contextlib.suppress(DriverError, Neo4jError):
                transaction.rollback()


def _check_survival(connection: Connection, instance: str, error: DriverError | Neo4jError) -> None:
    """Refuse to send a query again after an error that may be the server's death.

    Raises:
        QueryError: The embedded server ran out of memory.
        StoreUnavailableError: The server died for another or an unknown reason.
    """
    lost = isinstance(error, ServiceUnavailable | SessionExpired)
    if connection.settings.uri is not None:
        if lost:
            raise StoreUnavailableError(
                f"the connection to {connection.address} was lost while the query ran, and the query is not sent "
                "again, since it may be the cause: check the server's memory, then narrow the query or run it again",
                connection.address,
            ) from None

        return

    death = connection.death_of(instance, wait=lost)
    if death is None:
        return

    if death.out_of_memory:
        raise driver_errors.out_of_memory(death.heap) from None

    reason = f": {death.reason}" if death.reason else ""
    raise StoreUnavailableError(
        f"the embedded server over {connection.settings.home} died while the query ran, which is not sent again, since "
        f"it may be the cause{reason}",
        connection.address,
    ) from None


def _run_write(
    connection: Connection, cypher: str, parameters: dict[str, Any], page: Page, limit: QueryLimit
) -> QueryResult:
    """Run a user's query that may write, with exclusive access.

    It runs again after a conflict, which has rolled it back.

    It does not run again if its outcome is unknown, because a user's write need not be idempotent.
    """
    connection.ping()
    connection.require_space()
    answer = None

    def attempt() -> QueryResult | None:
        limit.suspend()
        with connection.turn(alone=True), connection.session(write=True) as session:
            with limit.watch(cypher) as text:
                try:
                    return _in_transaction(session, text, parameters, page, limit)
                except Neo4jError as error:
                    if error.code not in _NEEDS_ITS_OWN_TRANSACTION:
                        raise

                    return None

    # ArcadeDB commits the batches of a subquery within a transaction, too.
    if not commits_in_parts(cypher):
        answer = connection.with_recovery(lambda: _with_known_outcome(connection, attempt))

    return _in_parts(connection, cypher, parameters, page, limit) if answer is None else answer


def _with_known_outcome(connection: Connection, attempt: Callable[[], T]) -> T:
    try:
        return attempt()
    except ConstraintError as error:
        # No conflict with another writer: the query itself violates a constraint.
        raise QueryError(str(error.message)) from None
    except (ServiceUnavailable, SessionExpired):
        raise StoreUnavailableError(
            f"the connection to {connection.address} was lost while the query ran: check whether it was executed "
            "before you run it again",
            connection.address,
        ) from None


def _in_transaction(
    session: neo4j.Session, text: str, parameters: dict[str, Any], page: Page, limit: QueryLimit
) -> QueryResult:
    with session.begin_transaction(timeout=limit.left) as transaction:
        answer = _collect(transaction.run(text, parameters), *page)
        transaction.run(REWRITTEN).consume()
        limit.check()
        transaction.commit()

    return answer


def _in_parts(
    connection: Connection, cypher: str, parameters: dict[str, Any], page: Page, limit: QueryLimit
) -> QueryResult:
    """Run a statement once that accepts no enclosing transaction.

    Examples are `CALL { … } IN TRANSACTIONS` and schema commands.

    Parts that it committed before an error stay: it does not run again, and cached counts are
    invalidated in any case.
    """
    connection.write(_rewrite, alone=True)
    limit.suspend()
    try:
        with connection.turn(alone=True), connection.session(write=True) as session:
            with limit.watch(cypher) as text:
                answer = _collect(
                    session.run(neo4j.Query(text, timeout=limit.left), parameters), *page
                )
    except BaseException as error:
        # The error of the query is reported, not a further error of a server that is still
        # unreachable.
        with contextlib.suppress(ArchiveError):
            connection.write(_rewrite, alone=True, patience=REWRITE_SECONDS)

        if not isinstance(error, DriverError | Neo4jError):
            raise

        reason = driver_errors.translate(
            error, connection.address, connection.login[1], connection.database
        )
        if isinstance(error, TransientError | ServiceUnavailable | SessionExpired):
            raise StoreError(
                f"{reason}; parts of the query may be committed: check before you run it again"
            ) from None

        raise reason from None

    connection.write(_rewrite, alone=True)
    return answer


def _rewrite(tx: neo4j.ManagedTransaction) -> None:
    tx.run(REWRITTEN).consume()


def _collect(result: neo4j.Result, skip: int, limit: int | None) -> QueryResult:
    columns = list(result.keys())
    rows: list[tuple[Any, ...]] = []
    truncated = False
    for index, record in enumerate(result):
        if index < skip:
            continue

        if limit is not None and len(rows) == limit:
            truncated = True
            break

        rows.append(tuple(plain(value) for value in record.values()))

    result.consume()
    return QueryResult(columns, rows, truncated)


def plain(value: Any) -> Any:
    """Return a value of the driver as a JSON value; see `QueryResult`."""
    if value is None or isinstance(value, bool | int | float | str):
        return value

    if isinstance(value, graph.Node):
        return {"labels": sorted(value.labels), "properties": plain(dict(value))}

    if isinstance(value, graph.Relationship):
        ends = {"start": value.start_node, "end": value.end_node}
        shown = {name: node.element_id if node is not None else None for name, node in ends.items()}
        return {"type": value.type, **shown, "properties": plain(dict(value))}

    if isinstance(value, graph.Path):
        walk: list[Any] = [value.start_node]
        for relationship, node in zip(value.relationships, value.nodes[1:], strict=True):
            walk += [relationship, node]

        return plain(walk)

    if isinstance(value, list | tuple):
        return [plain(item) for item in value]

    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}

    if isinstance(value, bytes | bytearray):
        return value.hex()

    return value.iso_format() if hasattr(value, "iso_format") else str(value)


_DEEPEST = 50
"""Maximum nesting depth, because the driver recurses into a value."""

_TYPES = (type(None), bool, int, float, str, bytes, bytearray, list, tuple, dict)
_PACKAGES = ("datetime", "neo4j", "numpy", "pandas")
"""Packages with further types that the driver sends: times, points, arrays."""


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Check that all values can be sent.

    Raises:
        UsageError: A value cannot be sent; the message names the parameter.
    """
    for name, value in parameters.items():
        level = [value]
        depth = 0
        while level:
            for item in level:
                _check_value(name, item)

            level = [*chain.from_iterable(map(_items, level))]
            depth += 1
            if depth > _DEEPEST:
                raise UsageError(f"the parameter {name!r} nests deeper than {_DEEPEST} levels")


def _check_value(name: str, value: Any) -> None:
    """Check one value, without the values in it."""
    if not isinstance(value, _TYPES) and type(value).__module__.partition(".")[0] not in _PACKAGES:
        raise UsageError(
            f"the parameter {name!r} has a value of the type "
            f"{type(value).__name__}, which cannot be sent"
        )

    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise UsageError(
            f"the parameter {name!r} has a number of {value.bit_length()} bits, at "
            "most 63 can be stored"
        )

    if isinstance(value, str) and any("\ud800" <= mark <= "\udfff" for mark in value):
        raise UsageError(f"the parameter {name!r} has half of a character: {value!a:.60}")

    if isinstance(value, dict) and (wrong := [key for key in value if not isinstance(key, str)]):
        raise UsageError(
            f"the parameter {name!r} has a map with the key {wrong[0]!r:.60}, keys must be text"
        )


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return (*value, *value.values())

    return value if isinstance(value, list | tuple) else ()


_PIECES = re.compile(
    r"""(?P<space>\s+|//[^\r\n]*|/\*.*?\*/)
      | (?P<quoted>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`]|``)*`)
      | (?P<word>\w+)
      | (?P<mark>.)""",
    re.VERBOSE | re.DOTALL,
)
_BEFORE_A_NAME = frozenset([".", ":", "$", "AS"])
_AFTER_RETURN = frozenset(["ORDER", "SKIP", "OFFSET", "LIMIT", "UNION", "NEXT", ";"])


class _Piece(NamedTuple):
    text: str
    at: int
    end: int


def columns_of(cypher: str) -> list[str]:
    """Return the names of a query's columns; empty for a text without RETURN or with `RETURN *`."""
    pieces = list(_outside_brackets(cypher))
    clauses = [
        index
        for index, piece in enumerate(pieces)
        if piece.text.upper() == "RETURN" and not _is_name(pieces, index)
    ]
    if not clauses:
        return []

    returned = pieces[clauses[-1] + 1 :]
    ends = (
        index
        for index, piece in enumerate(returned)
        if piece.text.upper() in _AFTER_RETURN and not _is_name(returned, index)
    )
    returned = returned[: next(ends, len(returned))]
    if returned and returned[0].text.upper() == "DISTINCT":
        returned = returned[1:]

    items = [
        list(part)
        for comma, part in groupby(returned, lambda piece: piece.text == ",")
        if not comma
    ]
    return (
        []
        if any(item[0].text == "*" for item in items)
        else [_name(cypher, item) for item in items]
    )


def _outside_brackets(cypher: str) -> Iterator[_Piece]:
    depth = 0
    for match in _PIECES.finditer(cypher):
        depth -= match[0] in (")", "]", "}")
        if not depth and match.lastgroup != "space":
            yield _Piece(match[0], match.start(), match.end())

        depth += match[0] in ("(", "[", "{")


def _is_name(pieces: Sequence[_Piece], index: int) -> bool:
    return index > 0 and pieces[index - 1].text.upper() in _BEFORE_A_NAME


def _name(cypher: str, item: Sequence[_Piece]) -> str:
    if len(item) > 2 and item[-2].text.upper() == "AS":
        return item[-1].text.strip("`").replace("``", "`")

    return cypher[item[0].at : item[-1].end]
