"""Parser of `NAME=VALUE`: parameters of a query, settings of a kernel or of an agent."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from archive.errors import UsageError


def assignments(texts: Iterable[str], what: str) -> dict[str, Any]:
    """Return values by name. Values are parsed as JSON; a value that is no JSON is a string.

    Args:
        texts: Strings `NAME=VALUE`, each name once.
        what: Name of the kind, for the error (`"a parameter"`).

    Raises:
        UsageError: A string has another form, or a name has two values.
    """
    values: dict[str, Any] = {}
    written: dict[str, str] = {}
    for text in texts:
        name, value = assignment(text, what)
        if name in written:
            raise UsageError(f"{what} must have one value, got {written[name]:.60} and {text:.60}")
        written[name], values[name] = text, value
    return values


def assignment(text: str, what: str) -> tuple[str, Any]:
    """Return one name and its value; see `assignments`."""
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise UsageError(f"{what} is written NAME=VALUE, got {text!r}")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{what} cannot be read: {name}={value[:40]}… ({error})") from None
