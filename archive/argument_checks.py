"""Checks of arguments, with one wording of their errors."""

from __future__ import annotations

from archive.errors import UsageError


def require_at_least(least: float, **arguments: float | None) -> None:
    """Check that arguments are not smaller than a number; None, an argument that is left out, passes.

    Raises:
        UsageError: An argument is smaller, or NaN.
    """
    for name, value in arguments.items():
        if value is not None and not value >= least:
            raise UsageError(f"{name} must be >= {least:g}, got {value}")


MOST_NAME = 480
"""Most characters of a name: dumps limit names that are derived from it, such as `STUDY#00000`, to 500."""


def check_length(what: str, name: str) -> None:
    """Check that a name is at most `MOST_NAME` characters long.

    Raises:
        UsageError: It is longer.
    """
    if len(name) > MOST_NAME:
        raise UsageError(f"{what} must be at most {MOST_NAME} characters long, got {len(name)}: {name:.40}…")
