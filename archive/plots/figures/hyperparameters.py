"""Figure of parallel coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from archive.plots.data import hyperparameters as hyperparameters_data
from archive.plots.data.hyperparameters import ParallelCoordinates
from archive.plots.data.results import describe_undrawable
from archive.plots.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from archive.api import Archive

SHORT = 18
"""Characters of a word at an axis."""
BESIDE = 1.5
"""Inches for each axis beyond the fourth."""


def parallel_coordinates(archive: Archive, study: str, *, axes: Sequence[str] = ()) -> Figure:
    """Draw hyperparameters, decisions or sizes of networks beside the value, one line per result.

    Args:
        archive: The archive.
        study: Name of the study.
        axes: Hyperparameters, named decisions of the space, and `layers`, `depth`, `edges`,
            `mass` of networks; empty for all hyperparameters and decisions that differ, or for the
            sizes where none does.

    Raises:
        UnknownNameError: There is no study, or nothing of this name that could be an axis.
        UsageError: The study has no value, or nothing differs.
    """
    return draw(hyperparameters_data.parallel_coordinates(archive, study, axes))


def draw(data: ParallelCoordinates) -> Figure:
    """Draw one line per result, coloured by value, with gaps at missing hyperparameters."""
    import matplotlib
    from matplotlib.collections import LineCollection

    count = len(data.axes)
    figure, (axes,) = style.figure(width=style.WIDTH + BESIDE * max(0, count - 4))
    places = np.stack([axis.places for axis in data.axes], axis=1)
    lines = [np.column_stack([np.arange(count), row]) for row in places]
    # The last axis is the value; the best is dark in either direction.
    better = places[:, -1] if data.direction == "minimise" else 1 - places[:, -1]
    colours = matplotlib.colormaps[style.GRADIENT](np.nan_to_num(better, nan=0.5))
    many = len(lines) > style.MANY // 10
    width = 0.6 if many else 1.1
    axes.add_collection(
        LineCollection(lines, colors=colours, linewidths=width, alpha=0.45 if many else 0.75)
    )
    if many:
        axes.collections[0].set_rasterized(True)

    axes.set_xlim(-0.25, count - 0.75)
    axes.set_ylim(-0.03, 1.03)
    axes.grid(False)
    axes.spines[:].set_visible(False)
    axes.set_yticks([])
    names = []
    for axis in data.axes:
        names.append(
            style.shorten(axis.name) + ("\nlogarithmic" if axis.scaling == "logarithmic" else "")
        )

    axes.set_xticks(range(count), names, parse_math=False)
    axes.tick_params(axis="x", length=0)
    for index in range(count):
        _axis(axes, data, index)

    title = (
        f"{style.shorten(data.study)}: "
        f"{len(data.number):,} of {data.results:,} results, {data.direction}"
    )
    style.label(axes, "", "", title)
    style.note(figure, describe_undrawable(data.left_out))
    return figure


def _axis(axes: Axes, data: ParallelCoordinates, index: int) -> None:
    axes.plot([index, index], [0, 1], color=style.DARK, lw=1.0, zorder=3)
    for tick, text in data.axes[index].ticks:
        axes.plot([index - 0.02, index], [tick, tick], color=style.DARK, lw=1.0, zorder=3)
        axes.annotate(
            style.shorten(text, SHORT), (index, tick), xytext=(-6, 0), textcoords="offset points", ha="right", va="center",
            fontsize=8.5, zorder=4, parse_math=False,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.8},
        )  # fmt: skip
