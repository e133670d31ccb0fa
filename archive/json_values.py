"""JSON values from nested Python values, and the numbers that JSON does not have."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any


def mapped(value: Any, convert: Callable[[Any], Any]) -> Any:
    """Return nested records, mappings and collections as JSON objects and arrays, with each value
    in them converted.

    A record is an instance of a dataclass: its attributes are the keys of its object.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: mapped(getattr(value, field.name), convert)
            for field in dataclasses.fields(value)
        }

    if isinstance(value, Mapping):
        return {str(name): mapped(item, convert) for name, item in value.items()}

    if isinstance(value, list | tuple | set | frozenset):
        return [mapped(item, convert) for item in value]

    return convert(value)


def finite_or_null(value: Any) -> Any:
    """Return None for NaN and infinities, and any other value as it is."""
    return None if is_non_finite(value) else value


def is_non_finite(value: Any) -> bool:
    """Return whether a value is NaN or an infinity, the numbers that JSON does not have."""
    return isinstance(value, float) and not math.isfinite(value)
