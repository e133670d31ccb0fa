"""Figure of the best value so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archive.errors import UsageError
from archive.plots.data import drawable
from archive.plots.data.progress import BestSoFar, ProgressBand
from archive.plots.figures import style
from archive.store.records import sign

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw(studies: Sequence[BestSoFar]) -> Figure:
    """Draw one step line a study; of a single study, each result as well.

    Raises:
        UsageError: No study has a value yet.
    """
    named = [one for one in studies if len(one.improvements)]
    if not named:
        beyond = drawable.sentence(studies[0].left_out, "; ")
        raise UsageError(
            f"the study {studies[0].study!r} has no evaluation with a value yet{beyond}"
        )

    figure, (axes,) = style.figure()
    unit, name = style.cost_unit(named[0].against, max(one.x[-1] for one in named))
    lines = []
    for at, one in enumerate(named):
        x, y = one.steps
        (line,) = axes.plot(
            x / unit,
            y,
            drawstyle="steps-post",
            color=style.colour(at),
            linestyle=style.line(at),
            lw=1.8,
        )
        lines.append(line)

    first = named[0]
    if len(named) == 1:
        _results(axes, first, unit)
    else:
        style.legend(axes, lines, [one.study for one in named])

    objective = f"{style.shown(first.objective)} ({first.direction})"
    if len(named) == 1:
        style.label(
            axes, name, objective, f"{style.shown(first.study)}: the line is the best so far"
        )
    else:
        style.label(axes, name, f"best {objective} so far")

    _scale(axes, first.against)
    style.note(figure, drawable.sentence(sum(one.left_out for one in studies)))
    return figure


def draw_bands(bands: Sequence[ProgressBand], like: BestSoFar) -> Figure:
    """Draw the median of each group of studies, with a band from the lower to the upper quartile.

    Args:
        bands: The groups.
        like: One of the studies, for the labels.
    """
    figure, (axes,) = style.figure()
    unit, name = style.cost_unit(like.against, max(one.x[-1] for one in bands))
    lines = []
    for at, one in enumerate(bands):
        drawn: dict[str, Any] = {"color": style.colour(at), "linestyle": style.line(at)}
        lines += axes.plot(one.x / unit, one.median, drawstyle="steps-post", lw=1.8, **drawn)
        axes.fill_between(
            one.x / unit,
            one.low,
            one.high,
            step="post",
            color=style.colour(at),
            alpha=0.18,
            linewidth=0,
        )

    style.legend(axes, lines, [f"{one.name} ({one.studies})" for one in bands])
    title = "median of the studies of each agent; band: from the lower to the upper quartile"
    style.label(axes, name, f"best {style.shown(like.objective)} so far ({like.direction})", title)
    _scale(axes, like.against)
    style.note(figure, drawable.sentence(sum(one.left_out for one in bands)))
    return figure


def _results(axes: Axes, one: BestSoFar, unit: float) -> None:
    known = np.isfinite(one.value)
    x = one.x / unit
    many = bool(known.sum() > style.MANY)
    size, alpha = (4, 0.35) if many else (12, 0.6)
    axes.scatter(
        x[known],
        one.value[known],
        s=size,
        color=style.GREY,
        alpha=alpha,
        linewidths=0,
        rasterized=many,
        zorder=1,
    )
    at = one.improvements
    axes.scatter(
        x[at],
        one.best[at],
        s=26,
        color=style.colour(0),
        edgecolors="white",
        linewidths=0.6,
        zorder=3,
    )
    low, high, outside = style.robust_limits(one.value, sign(one.direction), one.best)
    axes.set_ylim(low, high)
    if outside:
        up = one.direction == "minimise"
        note = f"{outside} worse results {'above' if up else 'below'} the axis"
        place: dict[str, Any] = {
            "xy": (0.99, 0.98 if up else 0.02),
            "va": "top" if up else "bottom",
        }
        axes.annotate(
            note, xycoords="axes fraction", ha="right", fontsize=8.5, color="#666666", **place
        )


def _scale(axes: Axes, against: str) -> None:
    style.large_numbers(axes.xaxis)
    if against == "evaluations":
        style.whole_numbers(axes.xaxis)
