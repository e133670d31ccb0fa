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
