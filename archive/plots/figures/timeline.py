"""Figure of the time line of workers."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from archive.plots.data.timeline import OUTCOMES, Outcome, WorkerTimeline
from archive.plots.figures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROW = 0.28
"""Inches of a lane."""
TALLEST = 40.0
"""Inches of a figure."""

_LOOK: dict[Outcome, tuple[int, str]] = {
    "complete": (0, ""),
    "pruned": (4, ""),
    "running": (2, ""),
    "failed": (1, "//"),
    "lost": (3, "xx"),
    "returned": (6, ""),
    "cancelled": (5, ".."),
}
"""Colour and hatching of each outcome."""


def draw(data: WorkerTimeline, title: str) -> Figure:
    """Draw one row a lane of a worker, one bar a trial, coloured and hatched by its outcome."""
    from matplotlib.patches import Patch

    lanes = list(data.workers.values())
    first = dict(zip(data.workers, accumulate(lanes, initial=0), strict=False))
    rows = sum(lanes)
    height = min(TALLEST, 1.4 + ROW * max(3, rows))
    figure, (axes,) = style.figure(width=style.WIDTH * 1.2, height=height)
    begin, end = data.extent
    divisor, unit = _unit(end - begin)
    for outcome in OUTCOMES:
        chosen = [one for one in data.trials if one.outcome == outcome]
        at, hatch = _LOOK[outcome]
        face = {"facecolor": style.colour(at), "hatch": hatch or None}
        look: dict[str, Any] = {**face, "edgecolor": "white", "linewidth": 0.3}
        for row in sorted({first[one.worker] + one.lane for one in chosen}):
            bars = [
                ((one.begin - begin) / divisor, max((one.end - one.begin) / divisor, 0.0))
                for one in chosen
                if first[one.worker] + one.lane == row
            ]
            axes.broken_barh(bars, (row - 0.4, 0.8), **look)
    axes.set_yticks(
        [first[worker] + (count - 1) / 2 for worker, count in data.workers.items()],
        [style.shown(worker) for worker in data.workers],
        parse_math=False,
    )
    axes.set_ylim(max(rows, 1) - 0.4, -0.6)
    axes.set_xlim(0, max((end - begin) / divisor, 1e-9))
    axes.grid(False, axis="y")
    used = [outcome for outcome in OUTCOMES if any(one.outcome == outcome for one in data.trials)]
    patches = [Patch(facecolor=style.colour(_LOOK[each][0]), hatch=_LOOK[each][1] or None) for each in used]
    style.legend(axes, patches, used, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    since = datetime.fromtimestamp(begin / 1000, UTC)
    count = f"{'the latest ' if data.cut else ''}{len(data.trials):,} trials"
    style.label(axes, f"{unit} since {since:%Y-%m-%d %H:%M:%S} UTC", "", f"{style.shown(title)}: {count}")
    return figure


def _unit(milliseconds: float) -> tuple[float, str]:
    """Return the unit of the axis, in milliseconds, and its name."""
    if milliseconds < 600_000:
        return 1000.0, "seconds"
    return (60_000.0, "minutes") if milliseconds < 36_000_000 else (3_600_000.0, "hours")
