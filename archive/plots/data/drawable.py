"""Numbers that can be drawn: beyond them, differences, their squares and the margins of axes are
infinite.
"""

from __future__ import annotations

import numpy as np

from archive.plots.data.results import Floats

LARGEST = 1e150
"""Largest absolute number that is drawn: sums of squares of such differences are finite."""


def kept(numbers: Floats) -> Floats:
    """Return numbers with NaN in place of those that cannot be drawn."""
    return np.where(np.abs(numbers) > LARGEST, np.nan, numbers)


def count(*columns: Floats) -> int:
    """Return how many numbers of columns cannot be drawn; NaN stands for no number."""
    return sum(int((np.abs(column) > LARGEST).sum()) for column in columns)


def sentence(left_out: int, before: str = "") -> str:
    """Return the sentence about numbers that are left out, without its full stop; empty where there
    are none.

    Args:
        left_out: How many there are.
        before: Text before the sentence.
    """
    if not left_out:
        return ""

    return (
        f"{before}{left_out:,} number{' is' if left_out == 1 else 's are'} left out, beyond 1e150"
    )
