"""Parser of `NAME=VALUE`: parameters of a query, settings of a kernel or of an agent."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from archive.errors import UsageError


def assignments(texts: Iterable[str], what: str) -> dict[str, Any]:
    """Return values by name. Values are parsed as JSON; a value that is no JSON is a string.

    Args:
        texts: Strings `NAME=VALUE`; the last one of a name counts.
        what: Name of the kind, for the error (`"a parameter"`).

    Raises:
        UsageError: A string has another form.
    """
    return dict(assignment(text, what) for text in texts)


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
