"""Figure of value against cost, with the Pareto front of each study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archive.objectives import sign
from archive.plots.data import tradeoff
from archive.plots.data import tradeoff as tradeoff_data
from archive.plots.data.results import Integers, describe_undrawable
from archive.plots.data.tradeoff import ValueAndCost
from archive.plots.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from archive.api import Archive


def value_and_cost(
    archive: Archive, studies: str | Sequence[str], *, cost: str = "params"
) -> Figure:
    """Draw value against cost with the Pareto front of the studies together.

    Args:
        archive: The archive.
        studies: Names of studies of one task, protocol and objective.
        cost: A property of networks or a metric of results, smaller is better: `params`, `flops`,
            `latency_ms`, `peak_memory_bytes`; or `seconds`, `epochs`.

    Raises:
        UnknownNameError: There is no study of this name.
        UsageError: The studies are not comparable, or no result has the cost.
    """
    return draw(tradeoff_data.value_and_cost(archive, studies, cost))


def draw(data: ValueAndCost) -> Figure:
    """Draw results as marks and fronts as step lines: the best value for at most that cost."""
    figure, (axes,) = style.figure()
    handles = []
    many = len(data.value) > style.MANY
    for index in range(len(data.studies)):
        rows = data.study == index
        mark = style.MARKS[index % len(style.MARKS)]
        handles.append(
            axes.scatter(
                data.cost[rows], data.value[rows], s=6 if many else 18, marker=mark, color=style.colour(index),
                alpha=0.35 if many else 0.55, linewidths=0, rasterized=many,
            )
        )  # fmt: skip

    fronts = tradeoff.fronts(data)
    names = [*data.studies]
    for index, rows in enumerate(fronts):
        alone = len(fronts) == 1
        if len(rows):
            handles.append(_front(axes, data, rows, style.BEST if alone else style.colour(index)))
            names.append(
                f"front of {len(rows)}"
                if alone
                else (f"{data.studies[index]}: front of {len(rows)}")
            )

    style.legend(axes, handles, names, loc="center left", bbox_to_anchor=(1.0, 0.5))
    if style.spans_orders(data.cost):
        style.logarithmic(axes.xaxis)

    style.large_numbers(axes.xaxis)
    inside = data.value[np.concatenate(fronts)]
    low, high, outside = style.robust_limits(data.value, sign(data.direction), inside)
    axes.set_ylim(low, high)
    notes = [f"{outside} worse results outside"] * bool(outside) + [
        f"{data.missing} left out"
    ] * bool(data.missing)
    style.label(
        axes,
        f"{style.quantity(data.cost_name)}, smaller is better",
        f"{style.shorten(data.objective)} ({data.direction})",
        f"{len(data.value):,} results" + "".join(f"; {note}" for note in notes),
    )
    style.note(figure, describe_undrawable(data.left_out))
    return figure


def _front(axes: Axes, data: ValueAndCost, rows: Integers, colour: str) -> Any:
    """Draw one front up to the largest cost of all results, and return its line."""
    cost = data.cost[rows]
    value = data.value[rows]
    (line,) = axes.plot(
        np.append(cost, data.cost.max()), np.append(value, value[-1]), drawstyle="steps-post", color=colour, lw=1.4,
        zorder=3,
    )  # fmt: skip
    axes.scatter(cost, value, s=30, facecolors="white", edgecolors=colour, linewidths=1.2, zorder=4)
    return line
