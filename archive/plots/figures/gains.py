"""Figure of the gains of operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archive.plots.data import drawable
from archive.plots.data.gains import OperationGains
from archive.plots.figures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROW = 0.34
"""Inches of a row."""


def draw(data: OperationGains) -> Figure:
    """Draw the gains of the children of each operation on the left, its part of the raises of the
    best on the right.
    """
    rows = len(data.operations)
    figure, (left, right) = style.figure(
        2,
        width=style.WIDTH * 1.2,
        height=1.5 + ROW * max(rows, 3),
        width_ratios=[2.0, 1.0],
        sharey=True,
    )
    left.axvline(0.0, color=style.DARK, lw=0.9)
    for at, one in enumerate(data.operations):
        ends = one.quantiles
        left.plot([ends[0], ends[4]], [at, at], color=style.colour(0), lw=1.0)
        left.barh(
            at, ends[3] - ends[1], left=ends[1], height=0.5, color=style.colour(0), alpha=0.35
        )
        left.plot([ends[2]] * 2, [at - 0.3, at + 0.3], color=style.colour(0), lw=2.2)

    names = [
        (
            f"{style.shown(one.operation)}  ({len(one.gains)}, {one.improved / len(one.gains):.0%} "
            "better)"
        )
        for one in data.operations
    ]
    left.set_yticks(range(rows), names, parse_math=False)
    left.set_ylim(rows - 0.4, -0.6)
    right.barh(
        range(rows),
        [one.raised for one in data.operations],
        height=0.5,
        color=style.colour(1),
        alpha=0.8,
    )
    # The names stand on the left panel.
    right.tick_params(axis="y", labelleft=False, length=0)
    for axes in (left, right):
        axes.grid(False, axis="y")

    left.locator_params(axis="x", nbins=6)
    right.locator_params(axis="x", nbins=3)
    title = f"{style.shown(data.study)}: {data.steps:,} steps; median, quartiles, 5 % to 95 %"
    style.label(left, f"gain of {style.shown(data.objective)} from parent to child", "", title)
    style.label(right, "raise of the best", "", "sum over the study")
    style.note(figure, drawable.sentence(data.left_out))
    return figure
