"""Common look of the figures: size, colours, labels of quantities, external text.

Colours are the page's (`archive.drawing.palette`), distinct under any colour blindness; marks
and line styles differ as well. Continuous colours are `cividis`, with evenly increasing lightness.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archive.drawing import palette
from archive.errors import SettingsError
from archive.plots.data.results import LARGEST, Floats
from archive.words import QUANTITIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MISSING = "plots need matplotlib: pip install 'nas-archive[plots]'"

COLOURS = tuple(map(palette.hue, palette.SERIES))
BEST = palette.hue("best")
LINES = ("-", "--", "-.", ":")
MARKS = ("o", "s", "^", "D", "v", "P", "X")
GREY = palette.hue("grey")
DARK = palette.hue("ink")
QUIET = palette.hue("quiet")
GRID = palette.hue("line")
GRADIENT = "cividis"

WIDTH = 7.2
HEIGHT = 4.4
"""Inches."""
MANY = 1000
"""Marks beyond which they are drawn as pixels, also in SVG and PDF."""
LONGEST = 48
"""Characters of a name that are shown."""
IN_LEGEND = 12
"""Entries of a legend; further studies are counted."""

# As on a terminal (`archive.cli.render`): control characters, marks of writing direction,
# surrogates.
_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def figure(
    panels: int = 1, *, width: float = WIDTH, height: float = HEIGHT, **layout: Any
) -> tuple[Figure, list[Axes]]:
    """Return a figure with panels side by side; it does not belong to pyplot.

    Raises:
        SettingsError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise SettingsError(MISSING) from None

    drawing = Figure(figsize=(width, height), layout="constrained")
    axes = drawing.subplots(1, panels, squeeze=False, **layout)[0]
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(True, color=GRID, linewidth=0.6)
        axis.set_axisbelow(True)
        axis.tick_params(labelsize=9)

    return drawing, list(axes)


def colour(index: int) -> str:
    """Return the colour of the study at a position."""
    return COLOURS[index % len(COLOURS)]


def line(index: int) -> str:
    """Return the line style of the study at a position; it changes when the colours repeat."""
    return LINES[index // len(COLOURS) % len(LINES)]


def shorten(name: str, longest: int = LONGEST) -> str:
    """Return a name as a label: printable, bounded, and not hidden for a leading underscore."""
    text = printable(name)
    text = text if len(text) <= longest else f"{text[: longest - 1]}…"
    return f" {text}" if text.startswith("_") else text


def printable(text: str) -> str:
    """Return a text without control characters."""
    return _UNPRINTABLE.sub("?", text)


def quantity(name: str) -> str:
    """Return the label of the axis of a quantity."""
    word = QUANTITIES.get(name)
    return shorten(name) if word is None else word.text


def cost_unit(name: str, largest: float) -> tuple[float, str]:
    """Return divisor and label of an axis: seconds of training become minutes or hours."""
    if name != "seconds" or largest < 600:
        return 1.0, quantity(name)

    divisor, unit = (60.0, "min") if largest < 36_000 else (3600.0, "h")
    return divisor, f"training time ({unit})"


def label(axes: Axes, x: str, y: str, title: str = "") -> None:
    """Set labels and title, none of which is taken for a formula."""
    axes.set_xlabel(printable(x), parse_math=False)
    axes.set_ylabel(printable(y), parse_math=False)
    if title:
        axes.set_title(printable(title), loc="left", fontsize=10, parse_math=False)


def note(figure: Figure, text: str) -> None:
    """Write a line below a figure; none for an empty text."""
    if text:
        figure.supxlabel(text, x=0.01, ha="left", fontsize=8.5, color=QUIET)


def legend(axes: Axes, handles: Sequence[Any], names: Sequence[str], **where: Any) -> None:
    """Add a legend; beyond `IN_LEGEND` entries, the last one counts the others."""
    labels = [shorten(name) for name in names]
    if len(labels) > IN_LEGEND:
        labels = [*labels[:IN_LEGEND], f"and {len(labels) - IN_LEGEND} more"]
        handles = [*handles[:IN_LEGEND], _nothing()]

    box = axes.legend(list(handles), labels, fontsize=8.5, frameon=False, **where)
    for text in box.get_texts():
        text.set_parse_math(False)


def whole_numbers(axis: Any) -> None:
    """Put ticks at integers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True))


def large_numbers(axis: Any) -> None:
    """Write the ticks of an axis as 0.2, 50, 10 k, 2 M."""
    from matplotlib.ticker import EngFormatter, FuncFormatter

    thousands = EngFormatter(sep=" ")
    axis.set_major_formatter(
        FuncFormatter(lambda value, _: thousands(value) if abs(value) >= 1000 else f"{value:g}")
    )


def logarithmic(axis: Any) -> None:
    """Make a horizontal axis logarithmic, with ticks at 1, 2 and 5 of each decade."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.axes.set_xscale("log")
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_minor_formatter(NullFormatter())


def spans_orders(values: Floats) -> bool:
    """Return whether values need a logarithmic axis: positive, extremes a factor of 30 apart."""
    finite = values[np.isfinite(values)]
    # The ratio to a number below it may be infinite.
    least = 1 / LARGEST
    return (
        bool(len(finite))
        and float(finite.min()) >= least
        and float(finite.max() / finite.min()) >= 30
    )


def robust_limits(values: Floats, better: float, always: Floats) -> tuple[float, float, int]:
    """Return limits that a few bad values do not stretch, and the number of values outside.

    Args:
        values: (n,) the values, NaN left out.
        better: 1 where larger values are better, else -1.
        always: Values that must be inside.
    """
    finite = values[np.isfinite(values)]
    inside = always[np.isfinite(always)]
    worst = np.quantile(better * finite, 0.05) if len(finite) else 0.0
    kept = np.concatenate([better * inside, better * finite[better * finite >= worst]])
    if not len(kept):
        return 0.0, 1.0, 0

    low = float(kept.min())
    high = float(kept.max())
    margin = 0.05 * (high - low) or 0.05 * abs(high) or 0.5
    low = low - margin
    high = high + margin
    outside = int((better * finite < low).sum())
    return (low, high, outside) if better > 0 else (-high, -low, outside)


def _nothing() -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], linestyle="none")
