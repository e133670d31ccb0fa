"""Figure of value against cost, with the Pareto front."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from archive.plots.data.tradeoff import ValueAndCost
from archive.plots.figures import style
from archive.store.records import sign

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(data: ValueAndCost) -> Figure:
    """Draw each result as a mark and the front as a step line: the best value for at most that cost."""
    figure, (axes,) = style.figure()
    handles = []
    many = len(data.value) > style.MANY
    for at in range(len(data.studies)):
        rows = data.study == at
        mark = style.MARKS[at % len(style.MARKS)]
        handles.append(
            axes.scatter(
                data.cost[rows], data.value[rows], s=6 if many else 18, marker=mark, color=style.colour(at),
                alpha=0.35 if many else 0.55, linewidths=0, rasterized=many,
            )
        )  # fmt: skip
    cost, value = data.cost[data.front], data.value[data.front]
    end = max(float(data.cost.max()), float(cost[-1]))
    (front,) = axes.plot(
        np.append(cost, end), np.append(value, value[-1]), drawstyle="steps-post", color=style.DARK, lw=1.4, zorder=3
    )
    axes.scatter(cost, value, s=30, facecolors="white", edgecolors=style.DARK, linewidths=1.2, zorder=4)
    style.legend(
        axes,
        [*handles, front],
        [*data.studies, f"front of {len(data.front)}"],
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
    )
    if style.spans_orders(data.cost):
        axes.set_xscale("log")
    style.large_numbers(axes.xaxis)
    low, high, outside = style.robust_limits(data.value, sign(data.direction), value)
    axes.set_ylim(low, high)
    notes = [f"{outside} worse results outside"] * bool(outside) + [f"{data.left_out} left out"] * bool(data.left_out)
    style.label(
        axes,
        f"{style.quantity(data.cost_name)}, smaller is better",
        f"{style.shown(data.objective)} ({data.direction})",
        f"{len(data.value):,} results" + "".join(f"; {note}" for note in notes),
    )
    return figure
