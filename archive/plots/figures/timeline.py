"""Figure of the time line of workers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from archive.drawing import palette
from archive.errors import UsageError
from archive.plots.data import timeline as timeline_data
from archive.plots.data.timeline import OUTCOMES, Outcome, WorkerTimeline
from archive.plots.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from archive.api import Archive

ROW = 0.28
"""Inches of a lane."""
TALLEST = 40.0
"""Inches of a figure."""

_HATCHES: dict[Outcome, str] = {"failed": "//", "lost": "xx", "cancelled": ".."}
"""Hatching of the outcomes without a result."""


def worker_timeline(
    archive: Archive, studies: str | Sequence[str] = (), *, hours: float | None = None
) -> Figure:
    """Draw which worker held which proposal, when, and how the attempt ended.

    Args:
        archive: The archive.
        studies: Names of studies; empty for all.
        hours: Length of time up to now; None for all time.

    Raises:
        UnknownNameError: There is no study of this name.
        UsageError: No worker has claimed a proposal in this time, or it is not positive.
    """
    names = [studies] if isinstance(studies, str) else list(studies)
    data = timeline_data.worker_timeline(
        archive, names, seconds=None if hours is None else 3600 * hours
    )
    if not data.trials:
        within = "" if hours is None else f" in the last {hours:g} hours"
        raise UsageError(
            f"no worker has claimed a proposal{within}: results of imports have no time line"
        )

    return draw(data, ", ".join(names) or "all studies")


def draw(data: WorkerTimeline, title: str) -> Figure:
    """Draw one row per lane of a worker, one bar per trial, coloured and hatched by its outcome."""
    lanes = list(data.workers.values())
    first = dict(zip(data.workers, accumulate(lanes, initial=0), strict=False))
    rows = sum(lanes)
    height = min(TALLEST, 1.4 + ROW * max(3, rows))
    figure, (axes,) = style.figure(width=style.WIDTH * 1.2, height=height)
    begin, end = data.extent
    divisor, unit = _unit(end - begin)
    for outcome in OUTCOMES:
        bars: dict[int, list[tuple[float, float]]] = {}
        for trial in data.trials:
            if trial.outcome == outcome:
                bar = (trial.begin - begin) / divisor, max((trial.end - trial.begin) / divisor, 0.0)
                bars.setdefault(first[trial.worker] + trial.lane, []).append(bar)

        for row in sorted(bars):
            axes.broken_barh(
                bars[row], (row - 0.4, 0.8), **_face(outcome), edgecolor="white", linewidth=0.3
            )

    middles = [first[worker] + (count - 1) / 2 for worker, count in data.workers.items()]
    axes.set_yticks(middles, list(map(style.shorten, data.workers)), parse_math=False)
    axes.set_ylim(max(rows, 1) - 0.4, -0.6)
    axes.set_xlim(0, max((end - begin) / divisor, 1e-9))
    axes.grid(False, axis="y")
    _add_legend(axes, data)
    since = datetime.fromtimestamp(begin / 1000, UTC)
    count = f"{'the latest ' if data.cut else ''}{len(data.trials):,} trials"
    style.label(
        axes, f"{unit} since {since:%Y-%m-%d %H:%M:%S} UTC", "", f"{style.shorten(title)}: {count}"
    )
    return figure


def _add_legend(axes: Axes, data: WorkerTimeline) -> None:
    """Add a legend of the outcomes that occur."""
    from matplotlib.patches import Patch

    present = {trial.outcome for trial in data.trials}
    outcomes = [outcome for outcome in OUTCOMES if outcome in present]
    patches = [Patch(**_face(outcome)) for outcome in outcomes]
    style.legend(axes, patches, outcomes, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _face(outcome: Outcome) -> dict[str, Any]:
    """Return colour and hatching of a bar, as arguments of matplotlib."""
    return {"facecolor": palette.hue(outcome), "hatch": _HATCHES.get(outcome)}


def _unit(milliseconds: float) -> tuple[float, str]:
    """Return the unit of the axis, in milliseconds, and its name."""
    if milliseconds < 600_000:
        return 1000.0, "seconds"

    return (60_000.0, "minutes") if milliseconds < 36_000_000 else (3_600_000.0, "hours")
