"""Figure of the empirical distribution of values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from archive.objectives import sign
from archive.plots.data import distribution as distribution_data
from archive.plots.data.distribution import ValueDistribution
from archive.plots.data.results import describe_undrawable, sum_left_out
from archive.plots.figures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from archive.api import Archive


def edf(archive: Archive, studies: str | Sequence[str]) -> Figure:
    """Draw the share of the results with at most each value.

    Args:
        archive: The archive.
        studies: Names of studies of one task, protocol and objective.

    Raises:
        UnknownNameError: There is no study of this name.
        UsageError: The studies are not comparable, or none has a value.
    """
    return draw(distribution_data.distributions(archive, studies))


def draw(distributions: Sequence[ValueDistribution]) -> Figure:
    """Draw one step line per study."""
    figure, (axes,) = style.figure()
    handles = []
    for index, part in enumerate(distributions):
        (line,) = axes.plot(
            part.value, part.share, drawstyle="steps-post", color=style.colour(index),
            linestyle=style.line(index), lw=1.6,
        )  # fmt: skip
        handles.append(line)

    first = distributions[0]
    values = np.concatenate([part.value for part in distributions])
    low, high, outside = style.robust_limits(values, sign(first.direction), np.empty(0))
    axes.set_xlim(low, high)
    axes.set_ylim(0.0, 1.02)
    if len(distributions) > 1:
        names = [part.study for part in distributions]
        style.legend(axes, handles, names, loc="center left", bbox_to_anchor=(1.0, 0.5))

    beyond = f"; {outside} worse results outside" if outside else ""
    style.label(
        axes,
        f"{style.shorten(first.objective)} ({first.direction})",
        "share of the results with at most this value",
        f"{len(values):,} results{beyond}",
    )
    style.note(figure, describe_undrawable(sum_left_out(distributions)))
    return figure
