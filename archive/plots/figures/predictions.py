"""Figure of predicted against observed values, with the coverage of the intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archive.plots.data import predictions as predictions_data
from archive.plots.data.predictions import LEVELS, PredictedAndObserved
from archive.plots.data.results import describe_undrawable
from archive.plots.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from archive.api import Archive

WITH_BARS = 300
"""Results up to which each has a bar of one standard deviation."""


def predictions(archive: Archive, studies: str | Sequence[str]) -> Figure:
    """Draw predicted against observed values, and the coverage of the predictions' intervals.

    Args:
        archive: The archive.
        studies: Names of studies of one task, protocol and objective.

    Raises:
        UnknownNameError: There is no study of this name.
        UsageError: The studies are not comparable, or no result has a prediction.
    """
    return draw(predictions_data.predicted_and_observed(archive, studies))


def draw(data: PredictedAndObserved) -> Figure:
    """Draw predictions beside the diagonal, and the coverage of each interval on the right."""
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
    style.note(figure, describe_undrawable(data.left_out))
    return figure


def _scatter(axes: Axes, data: PredictedAndObserved) -> None:
    handles = _points(axes, data)
    low, high = _limits(data)
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
    objective = style.shorten(data.objective)
    title = f"{count:,} predictions, RMSE {data.rmse:.3g}, bias {data.bias:+.2g}"
    bars = "; bars: one standard deviation" if count <= WITH_BARS else ""
    style.label(axes, f"predicted {objective}{bars}", f"observed {objective}", title)
    if outside:
        axes.annotate(
            f"{outside} outside",
            (0.02, 0.96),
            xycoords="axes fraction",
            fontsize=8.5,
            color=style.QUIET,
        )


def _points(axes: Axes, data: PredictedAndObserved) -> list[Any]:
    """Draw the results of each study, with bars where they are few; return legend marks."""
    count = len(data.observed)
    many = count > style.MANY
    handles: list[Any] = []
    for index in range(len(data.studies)):
        rows = data.study == index
        if count <= WITH_BARS:
            axes.errorbar(
                data.predicted[rows], data.observed[rows], xerr=data.std[rows], fmt="none", ecolor=style.colour(index),
                elinewidth=0.7, alpha=0.4,
            )  # fmt: skip

        handles.append(
            axes.scatter(
                data.predicted[rows], data.observed[rows], s=5 if many else 16, color=style.colour(index),
                marker=style.MARKS[index % len(style.MARKS)], alpha=0.35 if many else 0.7, linewidths=0, rasterized=many,
            )
        )  # fmt: skip

    return handles


def _limits(data: PredictedAndObserved) -> tuple[float, float]:
    """Return the ends of both axes: all values but the outermost 2 %, with a margin."""
    values = np.concatenate([data.observed, data.predicted])
    low = float(np.quantile(values, 0.01))
    high = float(np.quantile(values, 0.99))
    margin = 0.06 * (high - low) or 0.5
    return low - margin, high + margin
