"""Figure of the importance of parameters, decisions and hyperparameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from archive.plots.anova.forest import ImportanceShare
from archive.plots.data import importance as importance_data
from archive.plots.data.importance import ImportanceReport
from archive.plots.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from archive.api import Archive

ROWS = 15
"""Most bars of a panel."""


def importance(archive: Archive, study: str) -> Figure:
    """Draw the importance of the columns of a study: over the whole space, and near the best.

    Args:
        archive: The archive.
        study: Name of the study.

    Raises:
        UnknownNameError: There is no study of this name.
        UsageError: As of `archive.plots.data.importance.importance`.
    """
    return draw(importance_data.importance(archive, study))


def draw(report: ImportanceReport) -> Figure:
    """Draw a bar with an interval for each column, and for the most important pairs."""
    columns = report.parameters[:ROWS]
    names = [column.name for column in columns]
    bars = [column.variance for column in columns]
    for pair in report.pairs[: max(0, ROWS - len(columns))]:
        names.append(f"{pair.first} × {pair.second}")
        bars.append(pair.variance)

    height = max(style.HEIGHT / 2, 0.8 + 0.3 * len(names))
    figure, (variance, near) = style.figure(2, width=1.4 * style.WIDTH, height=height)
    _bars(variance, names, bars, "share of the variance (fANOVA)")
    best = [column.near_best for column in columns]
    _bars(near, names[: len(columns)], best, "near the best tenth (PED-ANOVA)")
    near.set_ylim(variance.get_ylim())
    title = f"{style.shorten(report.study)}: {report.results:,} results, {report.objective}"
    style.label(variance, "share of the variance (fANOVA)", "", title)
    style.note(figure, f"the forest explains {max(0.0, report.explained):.0%} of unseen results")
    return figure


def _bars(axes: Axes, names: list[str], shares: list[ImportanceShare | None], label: str) -> None:
    places = np.arange(len(names))
    for position, share in zip(places, shares, strict=True):
        if share is None:
            continue

        axes.barh(position, share.share, height=0.6, color=style.colour(0), alpha=0.75)
        axes.plot([share.low, share.high], [position, position], color=style.DARK, lw=1.2)

    labels = [style.shorten(name, 40) for name in names]
    axes.set_yticks(places, labels, parse_math=False)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(left=0.0)
    style.label(axes, label, "")
