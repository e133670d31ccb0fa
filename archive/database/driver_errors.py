"""Translation of the driver's errors: which are transient, and messages for the user."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from typing import Any

from neo4j.exceptions import (
    AuthError,
    ClientError,
    ConfigurationError,
    ConnectionPoolError,
    DriverError,
    Neo4jError,
    ServiceUnavailable,
    SessionExpired,
    TransientError,
)

from archive.errors import (
    AuthenticationError,
    DatabaseNotFoundError,
    QueryError,
    StoreError,
    StoreUnavailableError,
)
from archive.server.access import hint_for

_DATABASE_NOT_FOUND = "Neo.ClientError.Database.DatabaseNotFound"
_UNUSABLE_LOGIN = {
    "Neo.ClientError.Security.AuthenticationRateLimit": (
        "has been refused too often: wait a few seconds"
    ),
    "Neo.ClientError.Security.CredentialsExpired": (
        "must change the initial password first: "
        "ALTER CURRENT USER SET PASSWORD FROM 'old' TO 'new' on the database system"
    ),
}
# ArcadeDB reports a missing record in two cases: another transaction deleted or moved it before
# the commit, or the record is damaged. The first passes; the second is reported at every attempt.
_GONE_MEANWHILE = re.compile(r"RecordNotFoundException|record #\d+:\d+ not found", re.IGNORECASE)
_UNREADABLE = re.compile(
    r"record (?P<record>#\d+:\d+) (not found|has a broken chunk chain)|CHECK DATABASE",
    re.IGNORECASE,
)
_HEAP_FULL = "Query heap budget exceeded"
_DISK_FULL = re.compile(r"no space left|disk (is )?full|quota exceeded", re.IGNORECASE)


def is_passing(error: DriverError | Neo4jError) -> bool:
    """Return whether the same work may succeed in another run, as after a conflict or an outage."""
    if error.is_retryable():
        return True

    if isinstance(error, ServiceUnavailable | SessionExpired | ConnectionPoolError):
        return True

    if _GONE_MEANWHILE.search(f"{_text(error)} {error}"):
        return True

    # A damaged record looks the same at first.
    return unreadable_record(error) is not None


def unreadable_record(error: Exception) -> str | None:
    """Return the id of the record that ArcadeDB could not read; None for another error.

    It is `""` if the message names no record.
    """
    if isinstance(error, ClientError):
        # The message of a client error quotes the query, which may contain these words.
        return None

    match = _UNREADABLE.search(f"{_text(error)} {error}")
    return None if match is None else match["record"] or ""


def translate(error: Exception, address: str, user: str, database: str | None) -> StoreError:
    """Return an error for the user that names the wrong value and the way out."""
    text = _text(error)
    if _DISK_FULL.search(text):
        return StoreError(f"the disk of the server at {address} is full: {_line(text)}")

    if isinstance(error, ServiceUnavailable | SessionExpired | ConfigurationError):
        return StoreUnavailableError(_unreachable(error, address, text), address)

    if isinstance(error, Neo4jError) and error.code in _UNUSABLE_LOGIN:
        return AuthenticationError(f"user {user!r} at {address} {_UNUSABLE_LOGIN[error.code]}")

    if isinstance(error, AuthError):
        return AuthenticationError(
            f"the server at {address} refused user {user!r}: "
            "set ARCHIVE_USER, and ARCHIVE_PASSWORD or ARCHIVE_PASSWORD_FILE"
        )

    if isinstance(error, ClientError) and error.code == _DATABASE_NOT_FOUND:
        return DatabaseNotFoundError(
            f"the server at {address} has no database named {database!r}: "
            "set ARCHIVE_DATABASE, or leave it unset for the user's home database"
        )

    if isinstance(error, TransientError | ConnectionPoolError):
        return StoreError(f"the server at {address} is too busy: {_line(text)}")

    if _HEAP_FULL in text:
        return QueryError(
            "the answer needs more memory than the embedded server may use: narrow the query, "
            "or restart the server (archive db stop) with a larger heap_mb (ARCHIVE_HEAP_MB)"
        )

    return QueryError(text)


def out_of_memory(heap: str) -> QueryError:
    """Return the error of a query during which the embedded server died for lack of memory.

    Args:
        heap: Size of the server's heap, as ` (512 MiB)`.
    """
    return QueryError(
        "the query, or another one beside it, needed more memory than "
        f"the embedded server may use{heap}: "
        "the server was restarted, and the query is not sent again; narrow it, "
        "or restart the server (archive db stop) with a larger heap_mb (ARCHIVE_HEAP_MB)"
    )


def _unreachable(error: Exception, address: str, text: str) -> str:
    # The driver's own text ends before the reason, or has none.
    cause = next((link for link in _causes(error) if isinstance(link, OSError)), None)
    scheme, _, rest = address.partition("://")
    if isinstance(cause, ssl.SSLCertVerificationError):
        return (
            f"the certificate of the server at {address} is not trusted: {cause.verify_message}; "
            f"{scheme.partition('+')[0]}+ssc://{rest} encrypts without checking it"
        )

    if isinstance(cause, ssl.SSLError):
        return (
            f"the server at {address} answers without TLS ({cause.reason or cause}): "
            "enable TLS for its Bolt port, or, "
            f"in a network that you trust, give the address {scheme.partition('+')[0]}://{rest}"
        )

    reason = text
    if cause is not None:
        reason = cause.strerror or str(cause)

    return (
        f"no database server answers at {address}: "
        f"is it running, and is ARCHIVE_DB right? ({_line(reason)}){hint_for(address)}"
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes, each once."""
    left = [error]
    seen = set[int]()
    while left:
        exception = left.pop()
        if id(exception) in seen:
            continue

        seen.add(id(exception))
        yield exception
        parts = exception.exceptions if isinstance(exception, BaseExceptionGroup) else ()
        left += [
            related
            for related in (exception.__context__, exception.__cause__, *parts)
            if related is not None
        ]


def _text(error: Any) -> str:
    return str(getattr(error, "message", None) or error)


def line_of(error: Exception) -> str:
    """Return the first line of an error, shortened."""
    return _line(_text(error))


def _line(text: str, most: int = 200) -> str:
    line = text.strip().splitlines()[0] if text.strip() else "no reason given"
    return line if len(line) <= most else line[: most - 1] + "…"
