"""Records of a dump as lines of JSON: equal text for equal records, and one clear error for any
other line.

Numbers that JSON cannot express are written as `{"float": "nan"}`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from archive.errors import UsageError
from archive.values import brief, is_non_finite, mapped

Record = dict[str, Any]

_WRITER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


def text_of(record: Any) -> str:
    """Return the line of a record, equal for equal records."""
    try:
        return _WRITER.encode(record)
    except ValueError:
        # Searching each record for such numbers would double the time of a dump.
        return _WRITER.encode(mapped(record, _number_or_name))


def parsed(path: Path, number: int, line: bytes) -> Record:
    """Return the record of a line.

    Raises:
        UsageError: The line is no JSON object.
    """
    try:
        record = json.loads(line, object_hook=_float_or_map, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        why = "it nests too deep" if isinstance(error, RecursionError) else f"{error}"
        raise UsageError(f"line {number} of {path} is no JSON: {why:.80}") from None

    if not isinstance(record, dict):
        raise UsageError(f"line {number} of {path} must be a JSON object, got {brief(record)}")

    return record


def _number_or_name(value: Any) -> Any:
    return {"float": str(value)} if is_non_finite(value) else value


def _float_or_map(record: Record) -> Any:
    if record.keys() == {"float"} and record["float"] in ("nan", "inf", "-inf"):
        return float(record["float"])

    return record


def _no_constant(name: str) -> Any:
    raise ValueError(f"JSON has no {name}")
