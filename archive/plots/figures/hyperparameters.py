"""Figure of parallel coordinates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from archive.plots.data import drawable
from archive.plots.data.hyperparameters import ParallelCoordinates
from archive.plots.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHORT = 18
"""Characters of a word at an axis."""
BESIDE = 1.5
"""Inches for each axis beyond the fourth."""


def draw(data: ParallelCoordinates) -> Figure:
    """Draw one line a result, coloured by its value; a line has a gap at a hyperparameter that the
    result lacks.
    """
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
    names = [
        style.shown(axis.name) + ("\nlogarithmic" if axis.scaling == "logarithmic" else "")
        for axis in data.axes
    ]
    axes.set_xticks(range(count), names, parse_math=False)
    axes.tick_params(axis="x", length=0)
    for at in range(count):
        _axis(axes, data, at)

    title = (
        f"{style.shown(data.study)}: {len(data.number):,} of {data.results:,} results, "
        f"{data.direction}"
    )
    style.label(axes, "", "", title)
    style.note(figure, drawable.sentence(data.left_out))
    return figure


def _axis(axes: Axes, data: ParallelCoordinates, at: int) -> None:
    axes.plot([at, at], [0, 1], color=style.DARK, lw=1.0, zorder=3)
    for place, text in data.axes[at].ticks:
        axes.plot([at - 0.02, at], [place, place], color=style.DARK, lw=1.0, zorder=3)
        axes.annotate(
            style.shown(text, SHORT), (at, place), xytext=(-6, 0), textcoords="offset points", ha="right", va="center",
            fontsize=8.5, zorder=4, parse_math=False,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.8},
        )  # fmt: skip
