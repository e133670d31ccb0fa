"""Scales of the axes of charts: numbers to places, and ticks at round numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from archive.plots.data.results import Floats

TICKS = 6
"""Rough number of ticks of an axis."""

_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True)
class AxisScale:
    """Scale of one axis.

    Attributes:
        low: Number at the beginning.
        high: Number at the end, above `low`.
        logarithmic: Whether places are linear in the logarithm; `low` is positive then.
    """

    low: float
    high: float
    logarithmic: bool = False

    @classmethod
    def around(
        cls, values: Floats, *, logarithmic: bool = False, margin: float = 0.04
    ) -> AxisScale:
        """Return the scale that holds all finite values, with a margin at both ends."""
        known = values[np.isfinite(values)]
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
        if logarithmic:
            room = (high / low) ** margin if high > low else 2.0
            return cls(low / room, high * room, True)

        room = margin * (high - low) or 0.05 * abs(high) or 0.5
        return cls(low - room, high + room)

    def places(self, values: Floats) -> Floats:
        """Return the (n,) places of numbers: 0 at the beginning of the axis, 1 at its end."""
        if self.logarithmic:
            return (np.log(values) - math.log(self.low)) / (
                math.log(self.high) - math.log(self.low)
            )

        return (values - self.low) / (self.high - self.low)

    def ticks(self) -> list[tuple[float, str]]:
        """Return round numbers on the axis with their labels."""
        numbers = self._decades() if self.logarithmic else self._steps()
        return [(number, short(number)) for number in numbers]

    def _steps(self) -> list[float]:
        step = round_step((self.high - self.low) / TICKS)
        first = math.ceil(self.low / step - 1e-9)
        count = math.floor((self.high - first * step) / step + 1e-9) + 1
        # A multiple of 0.1 has digits that no label needs.
        return [float(f"{(first + at) * step:.10g}") for at in range(max(0, count))]

    def _decades(self) -> list[float]:
        begin = math.floor(math.log10(self.low))
        end = math.ceil(math.log10(self.high))
        parts = (1, 2, 5) if end - begin <= 3 else (1,)
        numbers = [part * 10.0**power for power in range(begin, end + 1) for part in parts]
        return [number for number in numbers if self.low <= number <= self.high]


def round_step(size: float) -> float:
    """Return the smallest of 1, 2 and 5 times a power of ten that is at least so large."""
    power = 10.0 ** math.floor(math.log10(size))
    return next(part * power for part in (1, 2, 5, 10) if part * power >= size * (1 - 1e-9))


def short(number: float) -> str:
    """Return a number as 0.95, 12, 35 k or 1.5 M."""
    for unit, letter in _UNITS:
        if abs(number) >= unit * (10 if letter == "k" else 1):
            return f"{number / unit:.4g} {letter}"

    return f"{number:.4g}"
