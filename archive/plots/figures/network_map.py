"""Figure of the map of networks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from archive.plots.data import drawable
from archive.plots.data.network_map import NetworkMap, SearchPath
from archive.plots.figures import style
from archive.store.records import sign

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw(data: NetworkMap) -> Figure:
    """Draw all networks in grey, those of studies in colours, and the incumbents of each study as a
    path to a star.

    The colours of a single study are its values; of several studies, each has its own.
    """
    figure, (axes,) = style.figure(height=style.WIDTH * 0.78)
    count = len(data.places)
    many = count > style.MANY
    axes.scatter(
        data.places[:, 0],
        data.places[:, 1],
        s=_size(count),
        color="#c9c9c9",
        linewidths=0,
        rasterized=many,
    )
    handles = []
    for at, path in enumerate(data.paths):
        if len(data.paths) == 1:
            _values(axes, data, path)
        else:
            places = data.places[path.at]
            axes.scatter(
                places[:, 0], places[:, 1], s=_size(len(places)), color=style.colour(at), alpha=0.6, linewidths=0,
                marker=style.MARKS[at % len(style.MARKS)], rasterized=len(places) > style.MANY,
            )  # fmt: skip

        handles.append(_path(axes, data, path, at))

    axes.set_aspect("equal", adjustable="datalim")
    if handles:
        style.legend(axes, handles, [path.study for path in data.paths])

    title = f"{count:,} networks of {data.space}; the two axes have {data.kept:.0%} of the variance"
    style.label(axes, f"first axis (units of the distance {data.distance!r})", "second axis", title)
    style.note(figure, drawable.sentence(sum(path.left_out for path in data.paths)))
    return figure


def _values(axes: Axes, data: NetworkMap, path: SearchPath) -> None:
    order = np.argsort(np.nan_to_num(sign(data.direction) * path.value, nan=-np.inf), kind="stable")
    places = data.places[path.at][order]
    value = path.value[order]
    known = np.isfinite(value)
    if not known.any():
        return

    low, high, _ = style.robust_limits(value, sign(data.direction), value[known][-1:])
    # The best is dark in either direction.
    drawn = axes.scatter(
        places[known, 0], places[known, 1], s=_size(int(known.sum())) * 1.6, c=value[known], vmin=low, vmax=high,
        cmap=f"{style.GRADIENT}_r" if data.direction == "maximise" else style.GRADIENT, linewidths=0,
        rasterized=bool(known.sum() > style.MANY),
    )  # fmt: skip
    bar = axes.figure.colorbar(drawn, ax=axes, shrink=0.8)
    bar.set_label(f"{style.shown(data.objective)} ({data.direction})", parse_math=False)
    bar.outline.set_visible(False)


def _path(axes: Axes, data: NetworkMap, path: SearchPath, at: int) -> Any:
    colour = style.colour(1) if len(data.paths) == 1 else style.colour(at)
    steps = data.places[path.incumbents]
    (line,) = axes.plot(steps[:, 0], steps[:, 1], color="white", lw=3.4, zorder=3)
    (line,) = axes.plot(
        steps[:, 0],
        steps[:, 1],
        color=colour,
        lw=1.6,
        linestyle=style.line(at),
        marker=".",
        markersize=5,
        zorder=4,
    )
    if len(steps):
        x, y = steps[-1]
        axes.scatter(
            x, y, s=190, marker="*", color=colour, edgecolors=style.DARK, linewidths=0.9, zorder=5
        )

    return line


def _size(count: int) -> float:
    """Return the area of a mark, in square points, for so many of them."""
    return float(np.clip(30_000 / max(1, count), 1.5, 22.0))
