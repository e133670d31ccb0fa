"""Figures of the value against parameters and decisions: slices, contours, ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archive.objectives import sign
from archive.plots.data import slices as slices_data
from archive.plots.data.results import describe_undrawable
from archive.plots.data.slices import PairSlice, Slice, SliceAxis, Slices
from archive.plots.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from archive.api import Archive

SHORT = 12
"""Characters of a tick."""


def slice(archive: Archive, study: str, *, axes: Sequence[str] = ()) -> Figure:
    """Draw the value against single parameters or decisions, with the forest's mean prediction.

    Args:
        archive: The archive.
        study: Name of the study.
        axes: Names of parameters, decisions or hyperparameters; empty for the six most important.

    Raises:
        UnknownNameError: There is no study, or no such column.
        UsageError: As of `archive.plots.data.importance.importance`.
    """
    return draw(slices_data.slices(archive, study, axes))


def contour(archive: Archive, study: str, *, axes: Sequence[str] = ()) -> Figure:
    """Draw the mean prediction over two parameters or decisions, with the results.

    Args:
        archive: The archive.
        study: Name of the study.
        axes: Two names; empty for the most important pair.

    Raises:
        UnknownNameError: There is no study, or no such column.
        UsageError: As of `archive.plots.data.slices.pair_slice`.
    """
    return draw_contour(slices_data.pair_slice(archive, study, axes))


def rank(archive: Archive, study: str, *, axes: Sequence[str] = ()) -> Figure:
    """Draw the results over two parameters or decisions, coloured by their rank.

    Args:
        archive: The archive.
        study: Name of the study.
        axes: Two names; empty for the most important pair.

    Raises:
        UnknownNameError: There is no study, or no such column.
        UsageError: As of `archive.plots.data.slices.pair_slice`.
    """
    return draw_rank(slices_data.pair_slice(archive, study, axes))


def draw(data: Slices) -> Figure:
    """Draw a panel for each column."""
    count = len(data.slices)
    width = max(style.WIDTH, 2.6 * count)
    figure, panels = style.figure(count, width=width, sharey=True)
    values = np.concatenate([part.value for part in data.slices])
    best = values[np.argmax(sign(data.direction) * values)]
    low, high, outside = style.robust_limits(values, sign(data.direction), np.array([best]))
    panels[0].set_ylim(low, high)
    for axes, part in zip(panels, data.slices, strict=True):
        _panel(axes, part)

    beyond = "; some worse results outside" if outside else ""
    value = f"{style.shorten(data.objective)} ({data.direction})"
    style.label(panels[0], "", value, f"{style.shorten(data.study)}{beyond}")
    panels[0].set_xlabel(_name(data.slices[0].axis), parse_math=False)
    style.note(figure, describe_undrawable(data.left_out))
    return figure


def draw_contour(data: PairSlice) -> Figure:
    """Draw levels of the prediction, and each result in its colour."""
    figure, (axes,) = style.figure()
    scale: dict[str, Any] = {
        "cmap": style.GRADIENT if data.direction == "maximise" else f"{style.GRADIENT}_r"
    }
    finite = data.mean[np.isfinite(data.mean)]
    if len(finite) and np.ptp(finite) > 0:
        low, high, _ = style.robust_limits(data.value, sign(data.direction), finite)
        scale |= {"vmin": low, "vmax": high}
        across, up = data.grids
        drawn = axes.pcolormesh(
            across, up, data.mean.T, shading="nearest", rasterized=True, **scale
        )
        bar = figure.colorbar(drawn, ax=axes)
        bar.set_label(style.printable(data.objective), parse_math=False)

    _points(axes, data, data.value, **scale)
    return _finish(figure, axes, data, "mean prediction, and results")


def draw_rank(data: PairSlice) -> Figure:
    """Draw each result in the colour of its rank."""
    figure, (axes,) = style.figure()
    drawn = _points(axes, data, data.rank, cmap=f"{style.GRADIENT}_r", vmin=0.0, vmax=1.0)
    bar = figure.colorbar(drawn, ax=axes, ticks=[0.0, 0.25, 0.5, 0.75, 1.0])
    bar.ax.set_yticklabels(["best", "25 %", "50 %", "75 %", "worst"])
    bar.ax.invert_yaxis()
    return _finish(figure, axes, data, "rank of the results")


def _panel(axes: Axes, part: Slice) -> None:
    """Draw one column: the results, and the mean prediction with the quartiles of the trees."""
    many = len(part.value) > style.MANY
    axes.scatter(
        part.places, part.value, s=6 if many else 14, color=style.GREY, alpha=0.5, linewidths=0,
        rasterized=many,
    )  # fmt: skip
    if part.axis.scaling == "categories":
        axes.errorbar(
            part.grid, part.mean, yerr=[part.mean - part.low, part.high - part.mean], fmt="o",
            color=style.colour(0), capsize=3, zorder=3,
        )  # fmt: skip
    else:
        axes.plot(part.grid, part.mean, color=style.colour(0), lw=1.6, zorder=3)
        axes.fill_between(part.grid, part.low, part.high, color=style.colour(0), alpha=0.2, lw=0)

    _ticks(axes.xaxis, part.axis)
    axes.set_xlabel(_name(part.axis), parse_math=False)


def _points(axes: Axes, data: PairSlice, colours: Any, **scale: Any) -> Any:
    many = len(data.value) > style.MANY
    return axes.scatter(
        data.places[:, 0], data.places[:, 1], c=colours, s=10 if many else 30, edgecolors="white",
        linewidths=0.2 if many else 0.6, rasterized=many, zorder=3, **scale,
    )  # fmt: skip


def _finish(figure: Figure, axes: Axes, data: PairSlice, what: str) -> Figure:
    _ticks(axes.xaxis, data.across)
    _ticks(axes.yaxis, data.up)
    axes.grid(False)
    title = f"{style.shorten(data.study)}: {what}, {data.objective} ({data.direction})"
    style.label(axes, "", "", title)
    axes.set_xlabel(_name(data.across), parse_math=False)
    axes.set_ylabel(_name(data.up), parse_math=False)
    style.note(figure, describe_undrawable(data.left_out))
    return figure


def _ticks(axis: Any, about: SliceAxis) -> None:
    places = [tick for tick, _ in about.ticks]
    labels = [style.shorten(word, SHORT) for _, word in about.ticks]
    axis.set_ticks(places, labels, parse_math=False)


def _name(axis: SliceAxis) -> str:
    """Return the label of an axis: name, scale and share of the variance."""
    name = style.shorten(axis.name)
    parts = []
    if axis.scaling == "logarithmic":
        parts.append("logarithmic")

    if axis.share is not None:
        parts.append(f"{axis.share:.0%} of the variance")

    return f"{name}\n{', '.join(parts)}" if parts else name
