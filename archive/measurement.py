"""Figures of benchmarks: a measured number with its goal, and a reference that was measured in the same run."""

from __future__ import annotations

from typing import NamedTuple


class Figure(NamedTuple):
    """One measured number.

    Attributes:
        name: Measured quantity, with the size of the problem.
        value: The number.
        unit: Its unit, empty for a pure number.
        goal: Goal as text (`"<= 45"`); None without a goal.
        reference: The same quantity for a naive or a published reference, measured in the same run unless the name
            says otherwise; None where there is none.
    """

    name: str
    value: float
    unit: str = ""
    goal: str | None = None
    reference: float | None = None
