"""Measured quantities that the store takes: durations, and sizes of networks.

A clock that went back, a marker such as -1 and an overflow give numbers that are none: one of them in a sum makes the
sum meaningless. Callers that measure are told (`checked_seconds`); importers leave such a number out, and say so.
"""

from __future__ import annotations

import math
from typing import Any

from archive.errors import UsageError

LARGEST = 2**63
"""No server holds a whole number as large as this."""


def is_duration(seconds: float | None) -> bool:
    """Return whether a number can be a length of time: finite and not negative; None is none."""
    return seconds is not None and 0.0 <= seconds < math.inf


def is_size(number: float | None) -> bool:
    """Return whether a number can count weights or operations: from 0 on, and one that a server holds."""
    return number is not None and 0 <= number < LARGEST


def checked_seconds(seconds: Any) -> float | None:
    """Return the seconds of a training as a float; None where they are unknown.

    Raises:
        UsageError: They are no finite number >= 0.
    """
    if seconds is None:
        return None
    try:
        number = float(seconds)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        number = math.nan
    if not is_duration(number):
        raise UsageError(f"seconds must be a finite number >= 0, got {seconds!r:.80}")
    return number


def checked_size(name: str, number: Any) -> int | None:
    """Return a size of a network as an integer; None where it is unknown.

    Raises:
        UsageError: It is no number from 0 to 2^63 - 1.
    """
    if number is None:
        return None
    if not is_size(number):
        raise UsageError(f"{name} must be a whole number from 0 to 2^63 - 1, got {number!r:.80}")
    return round(number)
