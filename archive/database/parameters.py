"""Check of a user's query parameters: values that the driver can send and a server can hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from archive.errors import UsageError

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
            for one in level:
                _check_value(name, one)

            level = [item for one in level for item in _items(one)]
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
