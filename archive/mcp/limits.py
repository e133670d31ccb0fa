"""Limits of one answer: rows, bytes, seconds.

A language model pays for every character that it reads.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from archive.errors import UsageError
from archive.values import finite_or_null, mapped

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

ROWS = 50
"""Rows of an answer, unless the caller requests another number."""
MOST_ROWS = 1000
MOST_BYTES = 60_000
"""Size of a whole answer as UTF-8 JSON: about 15,000 to 20,000 tokens."""
MOST_TEXT = 4000
"""Characters of one text in an answer; longer ones are cut."""
QUERY_SECONDS = 30.0
WAIT_SECONDS = 50.0
"""Longest wait of one call: common clients give up on a tool after a minute."""


Item = TypeVar("Item")
Answer = TypeVar("Answer", bound="DataclassInstance")


def largest(
    build: Callable[[int], Answer], most: int, *, least: int = 0, text: int = MOST_TEXT
) -> Answer:
    """Return the answer with the largest number of items that fits into the limit of bytes.

    Args:
        build: Makes the answer with the first so many items; more items never make it shorter.
        most: Number of all items.
        least: Number of items without which an answer is of no use.
        text: Characters at which a text of the answer is cut.

    Raises:
        UsageError: Not even the least number fits.
    """
    answer = build(most)
    if size_of(answer, text) <= MOST_BYTES:
        return answer

    low = min(least, most)
    size = size_of(build(low), text)
    if size > MOST_BYTES:
        raise UsageError(
            f"the shortest answer has {size} bytes, at most {MOST_BYTES} fit: "
            "request less of each row"
        )

    high = most - 1
    while low < high:
        middle = (low + high + 1) // 2
        if size_of(build(middle), text) <= MOST_BYTES:
            low = middle
        else:
            high = middle - 1

    return build(low)


def fitting(rows: Sequence[Item]) -> list[Item]:
    """Return the first rows that fit into the limit of bytes, at least one."""
    kept: list[Item] = []
    size = 0
    for row in rows:
        size += size_of(row)
        if size > MOST_BYTES and kept:
            break

        kept.append(row)

    return kept


def take_first(count: int, *lists: Sequence[Any]) -> list[list[Any]]:
    """Return the first items of several lists; the first list is exhausted before the next.

    Args:
        count: Number of all items.
        *lists: The lists.
    """
    shown = []
    for items in lists:
        shown.append(list(items[:count]))
        count -= len(shown[-1])

    return shown


def size_of(value: Any, text: int = MOST_TEXT) -> int:
    """Return the size of an answer as JSON, with its texts cut at `text` characters."""
    document = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
    return len(compact(plain(document, text)).encode())


def compact(value: Any) -> str:
    """Return a JSON value as text without spaces."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def plain(value: Any, longest: int = MOST_TEXT) -> Any:
    """Return a value for JSON: NaN and infinities as null, long texts cut.

    NaN and infinities become null, and texts of more characters are cut.
    """
    return mapped(
        value, lambda item: _cut(item, longest) if isinstance(item, str) else finite_or_null(item)
    )


def _cut(text: str, longest: int) -> str:
    # Half of a character cannot be sent.
    whole = text.encode("utf-8", "replace").decode("utf-8")
    return whole if len(whole) <= longest else f"{whole[:longest]}… ({len(whole)} characters)"
