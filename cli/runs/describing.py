"""A run in words: why, what it changed, what it was given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from archive.values import short_settings

OF_PROGRAM = ("program", "code")
"""Values that every recorded run has."""

_MOST_FILES = 3
_MOST_LETTERS = 200


def describe_values(
    motivation: str | None, changed: Sequence[str], values: Mapping[str, Any]
) -> str:
    """Return the reason for a run, the source files that it changed, and what it was given, in short."""
    parts = []
    if motivation:
        parts.append(motivation)

    if changed:
        parts.append(", ".join(changed[:_MOST_FILES]))

    settings = {name: value for name, value in values.items() if name not in OF_PROGRAM}
    if settings:
        parts.append(short_settings([settings])[0])

    text = "; ".join(parts)
    return text if len(text) <= _MOST_LETTERS else f"{text[:_MOST_LETTERS]}…"
