"""Size of a statement with its parameters, as a message to the server.

ArcadeDB accepts messages of up to 16 MiB. It sends no answer to a longer one, for which the driver
would wait for ever. Longer statements are therefore refused here, and writers of many rows cut them
into parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from archive.errors import MessageTooLargeError, UsageError

if TYPE_CHECKING:
    from neo4j import ManagedTransaction, Result

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
    """Return an upper bound of the bytes of a value in a message (PackStream); fast for lists of
    numbers.
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
        for name, each in value.items():
            size += _HEADER + len(name) if name.isascii() else encoded_size(name)
            size += _NUMBER if type(each) in _NUMBERS else encoded_size(each)

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
    """Return work that raises a MessageTooLargeError instead of running a statement that is too
    large.
    """
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
