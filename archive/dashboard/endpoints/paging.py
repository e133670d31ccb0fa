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
    items: Sequence[T], key: Callable[[T], Any], descending: bool, begin: int, end: int
) -> list[T]:
    """Return items `begin` to `end` of those sorted by a key."""
    if SMALL_SHARE * end < len(items):
        first = heapq.nlargest if descending else heapq.nsmallest
        return first(end, items, key=key)[begin:]

    return sorted(items, key=key, reverse=descending)[begin:end]


def sorted_numbers(
    numbers: Iterable[int], values: Mapping[int, Any], descending: bool, begin: int, end: int
) -> list[int]:
    """Return numbers `begin` to `end` of those sorted by a value that each may have.

    Numbers without a value come last in either order. Upwards, texts come behind numbers; equal values
    are in the order of the numbers.
    """
    present: list[int] = []
    missing: list[int] = []
    for number in numbers:
        value = values.get(number)
        # NaN differs from itself.
        (missing if value is None or value != value else present).append(number)

    def key(number: int) -> tuple[bool, Any, int]:
        value = values[number]
        # Reversed, equal values would be in the reversed order.
        tie = -number if descending else number
        if isinstance(value, bool | int | float):
            return False, value, tie

        return True, value if isinstance(value, str) else to_json(value), tie

    part = sorted_part(present, key, descending, begin, end)
    if end > len(present):
        part += missing[max(0, begin - len(present)) : end - len(present)]

    return part
