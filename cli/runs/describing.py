"""A run in words: why, what it changed, what it was given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from archive.queries.tried.changes import NOT_GIVEN
from archive.values import short_settings

if TYPE_CHECKING:
    from archive.queries.runs import TriedRun

_MOST_FILES = 3
_MOST_LETTERS = 200


def describe_run(run: TriedRun) -> str:
    """Return the reason for a run, and what it changes of its parent, else what it was given."""
    if run.parent is None or not (run.changes or run.changed or run.network_changes):
        return describe_values(run.motivation, run.changed, run.values)

    parts = list(run.changed[:_MOST_FILES])
    parts += map(str, run.changes)
    parts += [f"network: {change}" for change in run.network_changes]
    return _join([run.motivation, ", ".join(parts)])


def describe_values(
    motivation: str | None, changed: Sequence[str], values: Mapping[str, Any]
) -> str:
    """Return the reason for a run, the source files that it changed, and what it was given, in short."""
    settings = {name: value for name, value in values.items() if name not in NOT_GIVEN}
    shown = short_settings([settings])[0] if settings else ""
    return _join([motivation, ", ".join(changed[:_MOST_FILES]), shown])


def _join(parts: Sequence[str | None]) -> str:
    text = "; ".join(part for part in parts if part)
    return text if len(text) <= _MOST_LETTERS else f"{text[:_MOST_LETTERS]}…"
