"""Records of a dump as lines of JSON: equal text for equal records, and one clear error for any other line.

Numbers that JSON cannot express are written as `{"float": "nan"}`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from archive.errors import UsageError

Record = dict[str, Any]


def text_of(record: Any) -> str:
    """Return the line of a record, equal for equal records."""
    return json.dumps(_finite(record), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


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


def brief(value: Any, most: int = 80) -> str:
    """Return a value as ASCII text of limited length for an error."""
    try:
        text = ascii(value)
    except (ValueError, RecursionError):
        # An integer of thousands of digits, or lists nested without end.
        return f"a huge {type(value).__name__}"
    return text if len(text) <= most else text[: most - 3] + "..."


def _finite(value: Any) -> Any:
    """Replace numbers that JSON cannot express."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if isinstance(value, Mapping):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def _float_or_map(record: Record) -> Any:
    if record.keys() == {"float"} and record["float"] in ("nan", "inf", "-inf"):
        return float(record["float"])
    return record


def _no_constant(name: str) -> Any:
    raise ValueError(f"JSON has no {name}")
