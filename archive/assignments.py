"""What is written NAME=VALUE: parameters of a query, settings of a kernel or of an agent."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from archive.errors import UsageError


def assignments(texts: Iterable[str], what: str) -> dict[str, Any]:
    """Return names and values; a value that is no JSON is text as it stands.

    Args:
        texts: `NAME=VALUE` each; of a name that is given twice, the last counts.
        what: What one of them is, for the error (`"a parameter"`).

    Raises:
        UsageError: One is not written so.
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
