"""Charts as inline SVG: axes, lines and marks, all colours in the page's style sheet.

Coordinates are pixels of the view box. A mark has a title, which browsers show under the pointer.
Texts are escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from archive.plots.data import drawable
from archive.plots.data.results import Floats
from archive.plots.figures.style import printable, shown
from archive.report.scales import AxisScale

WIDTH = 640
HEIGHT = 330
LEFT = 62
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
        caption: How to read it.
        chart: SVG; empty where there are no data.
    """

    heading: str
    caption: str
    chart: str


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

        if text:
            self._parts.append(f'<path class="line {kind}" d="{"".join(text)}"/>')

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
        each = [kinds] * len(x) if isinstance(kinds, str) else kinds
        for right, low, kind, title, shows in zip(across, down, each, titles, inside, strict=True):
            if shows:
                text = f"<title>{escape(printable(title))}</title>" if title else ""
                place = f'cx="{right:.1f}" cy="{low:.1f}" r="{radius:g}"'
                self._parts.append(f'<circle class="{kind}" {place}>{text}</circle>')

        known = np.isfinite(x) & np.isfinite(y)
        return int((known & ~inside).sum())

    def bars(self, rows: int, begin: Floats, end: Floats, kind: str, height: float) -> None:
        """Add a horizontal bar for each row, centred at 0, 1, … of the vertical axis;

        `height` in its units.
        """
        centres: Floats = np.arange(rows, dtype=np.float64)
        left, top = self._pixels(begin, centres - height / 2)
        right, bottom = self._pixels(end, centres + height / 2)
        for at in range(rows):
            x = min(left[at], right[at])
            y = min(top[at], bottom[at])
            size = (
                f'width="{max(1.0, abs(right[at] - left[at])):.1f}" '
                f'height="{abs(bottom[at] - top[at]):.1f}"'
            )
            self._parts.append(f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" {size}/>')

    def svg(self) -> str:
        """Return the chart."""
        title = escape(printable(self._title))
        return (
            f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">'
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
            _, (at,) = self._pixels(np.array([self.x.low]), np.array([float(number)]))
            yield f'<path class="grid" d="M{self.left} {at:.1f}H{right}"/>'
            yield (
                f'<text x="{self.left - 6}" y="{at + 4:.1f}" '
                f'text-anchor="end">{escape(shown(label))}</text>'
            )

        for number, label in self.x.ticks():
            (at,), _ = self._pixels(np.array([number]), np.array([self.y.low]))
            yield f'<path class="grid" d="M{at:.1f} {TOP}V{bottom}"/>'
            yield f'<text x="{at:.1f}" y="{bottom + 15}" text-anchor="middle">{label}</text>'

        yield f'<path class="axis" d="M{self.left} {TOP}V{bottom}H{right}"/>'
        across, up = (escape(shown(label)) for label in labels)
        middle = (TOP + bottom) / 2
        yield (
            f'<text class="name" x="{(self.left + right) / 2}" y="{HEIGHT - 8}" '
            f'text-anchor="middle">{across}</text>'
        )
        yield (
            f'<text class="name" transform="translate(13 {middle}) rotate(-90)" '
            f'text-anchor="middle">{up}</text>'
        )


def undrawn(outside: int, left_out: int) -> str:
    """Return the sentences about marks outside the axes, and about numbers that cannot be drawn."""
    marks = f" {outside:,} of the drawn ones are outside the axes." if outside else ""
    numbers = drawable.sentence(left_out, " ")
    return f"{marks}{numbers}{'.' if numbers else ''}"


def _same_unit(x: AxisScale, y: AxisScale) -> AxisScale:
    unit = (x.high - x.low) / (WIDTH - LEFT - RIGHT)
    extent = max(unit * (HEIGHT - TOP - BOTTOM), 1e-12)
    middle = (y.low + y.high) / 2
    return AxisScale(middle - extent / 2, middle + extent / 2)
