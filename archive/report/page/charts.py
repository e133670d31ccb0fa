"""Charts as inline SVG: axes, lines and marks, all colours in the page's style sheet.

Coordinates are pixels of the view box. A mark has a title, which browsers show under the pointer.
Texts are escaped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from archive.plots.data.results import Floats, describe_undrawable
from archive.plots.figures.style import printable, shorten

WIDTH = 640
HEIGHT = 330
LEFT = 70
RIGHT = 14
TOP = 10
BOTTOM = 44
ROOM = 190
"""Left margin of a chart with names of rows."""
MARKS = 1200
"""Most marks of a chart: beyond, a page is slow and marks cover each other."""


@dataclass(frozen=True)
class ReportPlot:
    """One plot of a report.

    Attributes:
        heading: Its contents, in words.
        finding: What it shows, in a sentence made from the data; empty without data.
        caption: How to read it, or why there is no chart.
        chart: SVG; empty where there are no data.
        key: Classes of colours with their names.
    """

    heading: str
    finding: str
    caption: str
    chart: str
    key: tuple[tuple[str, str], ...] = ()


class Chart:
    """A chart that lines and marks are added to.

    Args:
        x: Scale of the horizontal axis.
        y: Scale of the vertical axis, or names of rows, from the top; row i is at the number i.
        labels: Labels of both axes.
        title: Description for screen readers.
        square: Whether both axes have one unit of length: the vertical extent of the scale is then
            adjusted.
    """

    def __init__(
        self,
        x: AxisScale,
        y: AxisScale | Sequence[str],
        labels: tuple[str, str],
        title: str,
        *,
        square: bool = False,
    ) -> None:
        """Draw the axes."""
        named = not isinstance(y, AxisScale)
        scale = AxisScale(max(len(y), 4) - 0.4, -0.6) if not isinstance(y, AxisScale) else y
        self.left = ROOM if named else LEFT
        self.x = x
        self.y = _same_unit(x, scale) if square else scale
        ticks = list(enumerate(y)) if not isinstance(y, AxisScale) else self.y.ticks()
        self._parts = [*self._axes(ticks, labels)]
        self._title = title
        self._kind = "chart rows" if named else "chart"

    def line(self, x: Floats, y: Floats, kind: str, *, steps: bool = False) -> None:
        """Add a line; NaN interrupts it.

        Args:
            x: (n,) numbers.
            y: (n,) numbers.
            kind: Class of the line in the style sheet.
            steps: Whether it is horizontal up to the next x.
        """
        across, down = self._pixels(x, y)
        text = []
        drawing = False
        for right, low in zip(across.tolist(), down.tolist(), strict=True):
            if not np.isfinite(right + low):
                drawing = False
                continue

            move = (
                f"H{right:.1f}V{low:.1f}"
                if steps and drawing
                else f"{'L' if drawing else 'M'}{right:.1f} {low:.1f}"
            )
            text.append(move)
            drawing = True

        if not text:
            return

        path = f'<path class="line {kind}" d="{"".join(text)}"/>'
        if np.any((down < TOP - 1) | (down > HEIGHT - BOTTOM + 1)):
            # An inner picture is cut at its edges, as the axes are.
            wide = WIDTH - self.left - RIGHT
            high = HEIGHT - TOP - BOTTOM
            frame = f'x="{self.left}" y="{TOP}" width="{wide}" height="{high}"'
            path = f'<svg {frame} viewBox="{self.left} {TOP} {wide} {high}">{path}</svg>'

        self._parts.append(path)

    def marks(
        self,
        x: Floats,
        y: Floats,
        kinds: Sequence[str] | str,
        titles: Iterable[str],
        radius: float = 3,
    ) -> int:
        """Add a mark for each point inside the axes, and return the number of those outside.

        Args:
            x: (n,) numbers.
            y: (n,) numbers.
            kinds: Class of each mark, or of all.
            titles: Text of each mark.
            radius: In pixels.
        """
        across, down = self._pixels(x, y)
        inside = (
            (across > self.left - 1)
            & (across < WIDTH - RIGHT + 1)
            & (down > TOP - 1)
            & (down < HEIGHT - BOTTOM + 1)
        )
        styles = [kinds] * len(x) if isinstance(kinds, str) else kinds
        for right, low, kind, title, shows in zip(
            across, down, styles, titles, inside, strict=True
        ):
            if shows:
                text = f"<title>{escape(printable(title))}</title>" if title else ""
                shape = f'cx="{right:.1f}" cy="{low:.1f}" r="{radius:g}"'
                self._parts.append(f'<circle class="{kind}" {shape}>{text}</circle>')

        finite = np.isfinite(x) & np.isfinite(y)
        return int((finite & ~inside).sum())

    def bars(self, rows: int, begin: Floats, end: Floats, kind: str, height: float) -> None:
        """Add a horizontal bar for each row, centred at 0, 1, … of the vertical axis.

        `height` in its units.
        """
        centres: Floats = np.arange(rows, dtype=np.float64)
        left, top = self._pixels(begin, centres - height / 2)
        right, bottom = self._pixels(end, centres + height / 2)
        for index in range(rows):
            x = min(left[index], right[index])
            y = min(top[index], bottom[index])
            size = (
                f'width="{max(1.0, abs(right[index] - left[index])):.1f}" '
                f'height="{abs(bottom[index] - top[index]):.1f}"'
            )
            self._parts.append(f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" {size}/>')

    def svg(self) -> str:
        """Return the chart."""
        title = escape(printable(self._title))
        return (
            f'<svg class="{self._kind}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">'
            f"{''.join(self._parts)}</svg>"
        )

    def _pixels(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        across = self.left + self.x.places(x) * (WIDTH - self.left - RIGHT)
        down = HEIGHT - BOTTOM - self.y.places(y) * (HEIGHT - TOP - BOTTOM)
        return across, down

    def _axes(self, rows: Iterable[tuple[float, str]], labels: tuple[str, str]) -> Iterable[str]:
        right = WIDTH - RIGHT
        bottom = HEIGHT - BOTTOM
        for number, label in rows:
            _, (left,) = self._pixels(np.array([self.x.low]), np.array([float(number)]))
            yield f'<path class="grid" d="M{self.left} {left:.1f}H{right}"/>'
            yield (
                f'<text x="{self.left - 6}" y="{left + 4:.1f}" '
                f'text-anchor="end">{escape(shorten(label))}</text>'
            )

        for number, label in self.x.ticks():
            (left,), _ = self._pixels(np.array([number]), np.array([self.y.low]))
            yield f'<path class="grid" d="M{left:.1f} {TOP}V{bottom}"/>'
            yield f'<text x="{left:.1f}" y="{bottom + 15}" text-anchor="middle">{escape(shorten(label, LONGEST_TICK))}</text>'

        yield f'<path class="axis" d="M{self.left} {TOP}V{bottom}H{right}"/>'
        across, up = (escape(shorten(label)) for label in labels)
        middle = (TOP + bottom) / 2
        yield (
            f'<text class="name" x="{(self.left + right) / 2}" y="{HEIGHT - 8}" '
            f'text-anchor="middle">{across}</text>'
        )
        yield (
            f'<text class="name" transform="translate(16 {middle}) rotate(-90)" '
            f'text-anchor="middle">{up}</text>'
        )


def describe_left_out(outside: int, left_out: int) -> str:
    """Return the sentences about marks outside the axes, and about numbers that cannot be drawn."""
    verb = "mark is" if outside == 1 else "marks are"
    marks = f" {outside:,} {verb} outside the axes." if outside else ""
    numbers = describe_undrawable(left_out, " ")
    return f"{marks}{numbers}{'.' if numbers else ''}"


def _same_unit(x: AxisScale, y: AxisScale) -> AxisScale:
    unit = (x.high - x.low) / (WIDTH - LEFT - RIGHT)
    extent = max(unit * (HEIGHT - TOP - BOTTOM), 1e-12)
    middle = (y.low + y.high) / 2
    return AxisScale(middle - extent / 2, middle + extent / 2)


TICKS = 6
"""Rough number of ticks of an axis."""
LONGEST_TICK = 14
"""Characters of the label of a tick."""

_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True)
class AxisScale:
    """Scale of one axis.

    Attributes:
        low: Number at the beginning.
        high: Number at the end, above `low`.
        logarithmic: Whether places are linear in the logarithm; `low` is positive then.
        marks: Ticks with their labels, in place of round numbers.
        whole: Whether it counts something, so that ticks are whole numbers.
    """

    low: float
    high: float
    logarithmic: bool = False
    marks: tuple[tuple[float, str], ...] = ()
    whole: bool = False

    @classmethod
    def around(
        cls,
        values: Floats,
        *,
        logarithmic: bool = False,
        margin: float = 0.04,
        whole: bool = False,
    ) -> AxisScale:
        """Return the scale that holds all finite values, with a margin at both ends."""
        finite = values[np.isfinite(values)]
        low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
        if logarithmic:
            room = (high / low) ** margin if high > low else 2.0
            return cls(low / room, high * room, True)

        room = margin * (high - low) or 0.05 * abs(high) or 0.5
        return cls(low - room, high + room, whole=whole)

    def places(self, values: Floats) -> Floats:
        """Return the (n,) places of numbers: 0 at the beginning of the axis, 1 at its end."""
        if self.logarithmic:
            return (np.log(values) - math.log(self.low)) / (
                math.log(self.high) - math.log(self.low)
            )

        return (values - self.low) / (self.high - self.low)

    def ticks(self) -> list[tuple[float, str]]:
        """Return the marks of the axis, or round numbers, with their labels."""
        if self.marks:
            return list(self.marks)

        numbers = self._decades() if self.logarithmic else self._steps()
        return [(number, short(number)) for number in numbers]

    def _steps(self) -> list[float]:
        step = round_step((self.high - self.low) / TICKS)
        if self.whole:
            step = max(step, 1.0)

        first = math.ceil(self.low / step - 1e-9)
        count = math.floor((self.high - first * step) / step + 1e-9) + 1
        # A multiple of 0.1 has digits that no label needs.
        return [float(f"{(first + index) * step:.10g}") for index in range(max(0, count))]

    def _decades(self) -> list[float]:
        begin = math.floor(math.log10(self.low))
        end = math.ceil(math.log10(self.high))
        parts = (1, 2, 5) if end - begin <= 3 else (1,)
        numbers = []
        for power in range(begin, end + 1):
            for part in parts:
                numbers.append(part * 10.0**power)

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
