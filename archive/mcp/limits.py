"""Limits of one answer: rows, bytes, seconds. A language model pays for every character that it reads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from archive.errors import UsageError
from archive.json_values import finite_or_null, mapped

ROWS = 50
"""Rows of an answer, unless the caller requests another number."""
MOST_ROWS = 1000
MOST_BYTES = 60_000
"""Size of the rows of an answer as UTF-8 JSON: about 15,000 to 20,000 tokens."""
MOST_ANSWER = 250_000
"""Size of a whole answer in characters."""
MOST_TEXT = 4000
"""Characters of one text in an answer; longer ones are cut."""
QUERY_SECONDS = 30.0
WAIT_SECONDS = 50.0
"""Longest wait of one call: common clients give up on a tool after a minute."""


def fitting(rows: Sequence[Any]) -> list[Any]:
    """Return the first rows, as many as fit into the limit of bytes.

    Raises:
        UsageError: Not even the first row fits.
    """
    kept, size = [], 0
    for row in rows:
        size += len(compact(plain(row)).encode())
        if size > MOST_BYTES:
            break
        kept.append(row)
    if rows and not kept:
        raise UsageError(f"the first row has {size} bytes, at most {MOST_BYTES} fit: return fewer properties")
    return kept


def compact(value: Any) -> str:
    """Return a JSON value as text without spaces."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def plain(value: Any, longest: int = MOST_TEXT) -> Any:
    """Return a value as JSON has it: NaN and infinities become null, and texts of more characters are cut."""
    return mapped(value, lambda item: _cut(item, longest) if isinstance(item, str) else finite_or_null(item))


def _cut(text: str, longest: int) -> str:
    # Half of a character cannot be sent.
    whole = text.encode("utf-8", "replace").decode("utf-8")
    return whole if len(whole) <= longest else f"{whole[:longest]}… ({len(whole)} characters)"
