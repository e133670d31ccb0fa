"""Figures of benchmarks: measured numbers and their texts.

A text has as many decimals as a comparison needs.

| call                             | text          |                                             |
|----------------------------------|---------------|---------------------------------------------|
| `significant(0.0123456)`         | 0.0123        |                                             |
| `significant(0.93121, 0.00042)`  | 0.931210      | a value beside its difference from another  |
| `mean_and_error(0.28123, 0.032)` | 0.281 ± 0.032 |                                             |
"""

from __future__ import annotations

import math
from typing import NamedTuple

DIGITS = 3
"""Significant digits of a difference."""

_MOST_DECIMALS = 8
"""Numbers that need more are written with an exponent."""


class Figure(NamedTuple):
    """One measured number.

    Attributes:
        name: Measured quantity, with the size of the problem.
        value: The number.
        unit: Its unit, empty for a pure number.
        goal: Goal as text (`"<= 45"`); None without a goal.
        reference: The same quantity for a naive or a published reference, measured in the same run
            unless the name says otherwise; None without a reference.
    """

    name: str
    value: float
    unit: str = ""
    goal: str | None = None
    reference: float | None = None


def significant(value: float, difference: float | None = None) -> str:
    """Return a number as text, with decimals for `DIGITS` significant digits of a difference.

    Args:
        value: The number.
        difference: Difference from the number that it is compared with. Without one (None or 0),
            the number itself gets `DIGITS` significant digits.

    Returns:
        A number without an exponent where `_MOST_DECIMALS` suffice; digits before the point are
        never cut.
    """
    if not math.isfinite(value):
        return "–"

    decimals = DIGITS - 1 - _exponent(difference or value)
    if decimals <= _MOST_DECIMALS:
        return f"{value:,.{max(decimals, 0)}f}"

    return f"{value:.{max(decimals + _exponent(value), 0)}e}"


def mean_and_error(mean: float, error: float | None) -> str:
    """Return a mean with its standard error.

    The mean has at least three significant digits, and the error at least two.

    Args:
        mean: The mean.
        error: Its standard error; None or NaN for a single value, which has none.
    """
    if error is None or not math.isfinite(error):
        return significant(mean)

    # A size of 0 has no first digit.
    sizes = []
    for size in (abs(mean), 10.0 * error):
        if size:
            sizes.append(size)

    smaller = min(sizes, default=0.0)
    return f"{significant(mean, smaller)} ± {significant(error, smaller)}"


def _exponent(number: float) -> int:
    """Return the power of ten of a number after rounding to `DIGITS`: 0 for 1.0 and for 0.9996."""
    if number == 0 or not math.isfinite(number):
        return DIGITS - 1

    return int(f"{number:.{DIGITS - 1}e}".partition("e")[2])
