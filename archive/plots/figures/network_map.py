"""Figure of the map of networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archive import words
from archive.objectives import sign
from archive.plots.data import network_map as network_map_data
from archive.plots.data.network_map import LANDMARKS, PROFILE, NetworkMap, SearchPath
from archive.plots.data.regions import name_regions
from archive.plots.data.results import describe_undrawable, sum_left_out
from archive.plots.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from archive.api import Archive

MOST_NAMES = 8
"""Groups whose names stand on the map."""


def network_map(
    archive: Archive,
    studies: str | Sequence[str] = (),
    *,
    space: str | None = None,
    distance: str = PROFILE,
    whole: bool = True,
    landmarks: int = LANDMARKS,
    **settings: Any,
) -> Figure:
    """Draw the networks of a space on a plane, and the incumbents of studies as paths.

    Args:
        archive: The archive.
        studies: Names of studies to draw as paths.
        space: Name of the space; None for the studies' space, or the only one.
        distance: `profile`, or the name of a kernel.
        whole: Whether to draw all networks of the space in the archive, or only the studies'.
        landmarks: Most landmarks of the embedding.
        **settings: Settings of the kernel.

    Raises:
        UnknownNameError: There is no such study, space or kernel.
        UsageError: The studies are of different spaces or not comparable, or there is no network.
    """
    where: dict[str, Any] = {
        "space": space,
        "distance": distance,
        "whole": whole,
        "landmarks": landmarks,
    }
    return draw(network_map_data.network_map(archive, studies, **where, **settings))


def draw(data: NetworkMap) -> Figure:
    """Draw networks in grey, the studies' in colours, and incumbents as a path to a star.

    The colours of a single study are its values; of several studies, each has its own.
    """
    figure, (axes,) = style.figure(height=style.WIDTH * 0.78)
    count = len(data.places)
    many = count > style.MANY
    axes.scatter(
        data.places[:, 0],
        data.places[:, 1],
        s=_size(count),
        color=style.GRID,
        linewidths=0,
        rasterized=many,
    )
    handles = []
    for index, path in enumerate(data.paths):
        if len(data.paths) == 1:
            _values(axes, data, path)
        else:
            places = data.places[path.at]
            axes.scatter(
                places[:, 0], places[:, 1], s=_size(len(places)), color=style.colour(index), alpha=0.6, linewidths=0,
                marker=style.MARKS[index % len(style.MARKS)], rasterized=len(places) > style.MANY,
            )  # fmt: skip

        handles.append(_path(axes, data, path, index))

    _name_regions(axes, data)
    axes.set_aspect("equal", adjustable="datalim")
    if handles:
        style.legend(axes, handles, [path.study for path in data.paths])

    title = f"{count:,} networks of {data.space}; the two axes have {data.kept:.0%} of the variance"
    unit = f"units of the distance by {words.distance(data.distance)}"
    style.label(axes, f"first axis ({unit})", "second axis", title)
    style.note(figure, describe_undrawable(sum_left_out(data.paths)))
    return figure


def _name_regions(axes: Axes, data: NetworkMap) -> None:
    """Write what the networks of the largest groups share on their places."""
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=2.5, foreground="white")]
    for region in name_regions(data.places, data.clusters, data.traits)[:MOST_NAMES]:
        axes.annotate(
            region.name,
            (region.x, region.y),
            xytext=(0, 6),
            textcoords="offset points",
            ha="center",
            fontsize="small",
            color=style.DARK,
            path_effects=halo,
            parse_math=False,
            zorder=6,
        )


def _values(axes: Axes, data: NetworkMap, path: SearchPath) -> None:
    order = np.argsort(np.nan_to_num(sign(data.direction) * path.value, nan=-np.inf), kind="stable")
    places = data.places[path.at][order]
    value = path.value[order]
    finite = np.isfinite(value)
    if not finite.any():
        return

    low, high, _ = style.robust_limits(value, sign(data.direction), value[finite][-1:])
    # The best is dark in either direction.
    drawn = axes.scatter(
        places[finite, 0], places[finite, 1], s=_size(int(finite.sum())) * 1.6, c=value[finite], vmin=low, vmax=high,
        cmap=f"{style.GRADIENT}_r" if data.direction == "maximise" else style.GRADIENT, linewidths=0,
        rasterized=bool(finite.sum() > style.MANY),
    )  # fmt: skip
    bar = axes.figure.colorbar(drawn, ax=axes, shrink=0.8)
    bar.set_label(f"{style.shorten(data.objective)} ({data.direction})", parse_math=False)
    bar.outline.set_visible(False)


def _path(axes: Axes, data: NetworkMap, path: SearchPath, index: int) -> Any:
    colour = style.BEST if len(data.paths) == 1 else style.colour(index)
    steps = data.places[path.incumbents]
    (line,) = axes.plot(steps[:, 0], steps[:, 1], color="white", lw=3.4, zorder=3)
    (line,) = axes.plot(
        steps[:, 0],
        steps[:, 1],
        color=colour,
        lw=1.6,
        linestyle=style.line(index),
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
