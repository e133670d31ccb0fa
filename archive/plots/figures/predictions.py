"""Figure of predicted against observed values, with the coverage of the intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from archive.plots.data import drawable
from archive.plots.data.predictions import LEVELS, PredictedAndObserved
from archive.plots.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WITH_BARS = 300
"""Results up to which each has a bar of one standard deviation."""


def draw(data: PredictedAndObserved) -> Figure:
    """Draw the predictions beside the diagonal on the left, and the coverage of each interval on
    the right.
    """
    figure, (left, right) = style.figure(2, width=style.WIDTH * 1.25, width_ratios=[1.25, 1.0])
    _scatter(left, data)
    levels = np.array(LEVELS)
    right.plot([0, 1], [0, 1], color=style.GREY, lw=1.0, linestyle="--")
    right.plot(levels, data.coverage(), color=style.colour(0), lw=1.8, marker="o", markersize=3)
    right.set_xlim(0, 1)
    right.set_ylim(0, 1)
    right.set_aspect("equal")
    style.label(
        right,
        "central interval of the prediction",
        "share of results inside",
        "coverage; ideal on the line",
    )
    style.note(figure, drawable.sentence(data.left_out))
    return figure


def _scatter(axes: Axes, data: PredictedAndObserved) -> None:
    handles = _points(axes, data)
    low, high = _extent(data)
    axes.plot([low, high], [low, high], color=style.GREY, lw=1.0, linestyle="--", zorder=1)
    axes.set_xlim(low, high)
    axes.set_ylim(low, high)
    axes.set_aspect("equal")
    if len(data.studies) > 1:
        style.legend(axes, handles, data.studies)

    outside = int(
        (
            (data.observed < low)
            | (data.observed > high)
            | (data.predicted < low)
            | (data.predicted > high)
        ).sum()
    )
    count = len(data.observed)
    objective = style.shown(data.objective)
    title = f"{count:,} predictions, RMSE {data.rmse:.3g}, bias {data.bias:+.2g}"
    bars = "; bars: one standard deviation" if count <= WITH_BARS else ""
    style.label(axes, f"predicted {objective}{bars}", f"observed {objective}", title)
    if outside:
        axes.annotate(
            f"{outside} outside",
            (0.02, 0.96),
            xycoords="axes fraction",
            fontsize=8.5,
            color="#666666",
        )


def _points(axes: Axes, data: PredictedAndObserved) -> list[Any]:
    """Draw the results of each study, with bars where they are few; return the marks for a
    legend.
    """
    count = len(data.observed)
    many = count > style.MANY
    handles: list[Any] = []
    for at in range(len(data.studies)):
        rows = data.study == at
        if count <= WITH_BARS:
            axes.errorbar(
                data.predicted[rows], data.observed[rows], xerr=data.std[rows], fmt="none", ecolor=style.colour(at),
                elinewidth=0.7, alpha=0.4,
            )  # fmt: skip

        handles.append(
            axes.scatter(
                data.predicted[rows], data.observed[rows], s=5 if many else 16, color=style.colour(at),
                marker=style.MARKS[at % len(style.MARKS)], alpha=0.35 if many else 0.7, linewidths=0, rasterized=many,
            )
        )  # fmt: skip

    return handles


def _extent(data: PredictedAndObserved) -> tuple[float, float]:
    """Return the ends of both axes: all values but the outermost 2 %, with a margin."""
    values = np.concatenate([data.observed, data.predicted])
    low = float(np.quantile(values, 0.01))
    high = float(np.quantile(values, 0.99))
    margin = 0.06 * (high - low) or 0.5
    return low - margin, high + margin
