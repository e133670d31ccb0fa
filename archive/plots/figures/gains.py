"""Figure of the gains of operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archive import words
from archive.plots.data import gains as gains_data
from archive.plots.data.gains import OperationGains
from archive.plots.data.results import describe_undrawable
from archive.plots.figures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from archive.api import Archive

ROW = 0.34
"""Inches of a row."""


def operation_gains(archive: Archive, study: str) -> Figure:
    """Draw what each operation gained; `archive.plots.data.gains` defines the gain and the raise.

    Args:
        archive: The archive.
        study: Name of the study.

    Raises:
        UnknownNameError: There is no study of this name.
        UsageError: No network of the study has a parent in it.
    """
    return draw(gains_data.operation_gains(archive, study))


def draw(data: OperationGains) -> Figure:
    """Draw the gains of each operation's children, and its part of the new best values."""
    rows = len(data.operations)
    figure, (left, right) = style.figure(
        2,
        width=style.WIDTH * 1.2,
        height=1.5 + ROW * max(rows, 3),
        width_ratios=[2.0, 1.0],
        sharey=True,
    )
    left.axvline(0.0, color=style.DARK, lw=0.9)
    for index, gain in enumerate(data.operations):
        ends = gain.quantiles
        left.plot([ends[0], ends[4]], [index, index], color=style.colour(0), lw=1.0)
        left.barh(
            index, ends[3] - ends[1], left=ends[1], height=0.5, color=style.colour(0), alpha=0.35
        )
        left.plot([ends[2]] * 2, [index - 0.3, index + 0.3], color=style.colour(0), lw=2.2)

    names = []
    for operation in data.operations:
        name = style.shorten(words.operation(operation.operation))
        uses = len(operation.gains)
        names.append(f"{name}  ({uses}, {operation.improved / uses:.0%} better)")

    left.set_yticks(range(rows), names, parse_math=False)
    left.set_ylim(rows - 0.4, -0.6)
    right.barh(
        range(rows),
        [operation.raised for operation in data.operations],
        height=0.5,
        color=style.BEST,
        alpha=0.8,
    )
    # The names stand on the left panel.
    right.tick_params(axis="y", labelleft=False, length=0)
    for axes in (left, right):
        axes.grid(False, axis="y")

    left.locator_params(axis="x", nbins=6)
    right.locator_params(axis="x", nbins=3)
    title = f"{style.shorten(data.study)}: {data.steps:,} steps; median, quartiles, 5 % to 95 %"
    style.label(left, f"gain of {style.shorten(data.objective)} from parent to child", "", title)
    style.label(right, "added to the best value", "", "sum over the study")
    style.note(figure, describe_undrawable(data.left_out))
    return figure
