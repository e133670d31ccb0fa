"""Parts of long lists in an order."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from archive.store.properties import to_json

T = TypeVar("T")

SMALL_SHARE = 10
"""A part that ends within the first tenth of a list is found without sorting the whole list."""


def sorted_part(
    items: Iterable[T],
    value: Callable[[T], Any],
    descending: bool,
    begin: int,
    end: int,
    key: Callable[[T], Any] | None = None,
) -> list[T]:
    """Return items `begin` to `end` of those sorted by a value that each may have.

    Items without a value, None or NaN, come last in either order.

    Args:
        items: The items.
        value: Returns the value of an item.
        descending: Whether the largest value is first.
        begin: Position of the first item of the part.
        end: Position behind its last item.
        key: Returns what items with a value are sorted by; None for the value.
    """
    present: list[T] = []
    missing: list[T] = []
    for item in items:
        content = value(item)
        # NaN differs from itself.
        (missing if content is None or content != content else present).append(item)

    part = _first_of(present, value if key is None else key, descending, end)[begin:]
    if end > len(present):
        part += missing[max(0, begin - len(present)) : end - len(present)]

    return part


def sorted_numbers(
    numbers: Iterable[int], values: Mapping[int, Any], descending: bool, begin: int, end: int
) -> list[int]:
    """Return numbers `begin` to `end` of those sorted by a value that each may have.

    Upwards, texts come behind numbers; equal values are in the order of the numbers.
    """

    def key(number: int) -> tuple[bool, Any, int]:
        value = values[number]
        # Reversed, equal values would be in the reversed order.
        tie = -number if descending else number
        if isinstance(value, bool | int | float):
            return False, value, tie

        return True, value if isinstance(value, str) else to_json(value), tie

    return sorted_part(numbers, values.get, descending, begin, end, key)


def _first_of(items: Sequence[T], key: Callable[[T], Any], descending: bool, end: int) -> list[T]:
    """Return the first items of a sorted list, up to `end`."""
    if SMALL_SHARE * end < len(items):
        first = heapq.nlargest if descending else heapq.nsmallest
        return first(end, items, key=key)

    return sorted(items, key=key, reverse=descending)[:end]
