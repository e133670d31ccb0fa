"""Figure of the best value so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from archive.errors import UsageError
from archive.objectives import sign
from archive.plots.data import progress as progress_data
from archive.plots.data.progress import Against, BestSoFar, ProgressBand
from archive.plots.data.results import describe_undrawable, sum_left_out
from archive.plots.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from archive.api import Archive


Group = Literal["study", "agent"]


def best_so_far(
    archive: Archive,
    studies: str | Sequence[str],
    *,
    against: Against = "evaluations",
    by: Group = "study",
) -> Figure:
    """Draw the best value so far.

    Args:
        archive: The archive.
        studies: Names of studies of one task, protocol and objective.
        against: `evaluations`, or the `seconds` or `epochs` of their trainings, summed.
        by: `study` for a line each, `agent` for the median and the quartiles of the studies that an
            agent began.

    Raises:
        UnknownNameError: There is no study of this name.
        UsageError: The studies are not comparable, or one has no value, or no record of the
            quantity.
    """
    if by not in get_args(Group):
        raise UsageError(f"by must be one of {', '.join(get_args(Group))}, got {by!r}")

    read = progress_data.best_so_far(archive, studies, against)
    if by == "study":
        return draw(read)

    groups: dict[str, list[BestSoFar]] = {}
    for study in read:
        agent = archive.studies.get(study.study).config.get("agent")
        groups.setdefault(agent if isinstance(agent, str) else "no agent on record", []).append(
            study
        )

    bands = [progress_data.band(name, group) for name, group in groups.items()]
    return draw_bands(bands, read[0])


def draw(studies: Sequence[BestSoFar]) -> Figure:
    """Draw one step line per study; of a single study, each result as well.

    Raises:
        UsageError: No study has a value yet.
    """
    named = [study for study in studies if len(study.improvements)]
    if not named:
        beyond = describe_undrawable(studies[0].left_out, "; ")
        raise UsageError(
            f"the study {studies[0].study!r} has no evaluation with a value yet{beyond}"
        )

    figure, (axes,) = style.figure()
    unit, name = style.cost_unit(named[0].against, max(study.x[-1] for study in named))
    lines = []
    for index, shown in enumerate(named):
        x, y = shown.steps
        (line,) = axes.plot(
            x / unit,
            y,
            drawstyle="steps-post",
            color=style.BEST if len(named) == 1 else style.colour(index),
            linestyle=style.line(index),
            lw=1.8,
        )
        lines.append(line)

    first = named[0]
    if len(named) == 1:
        _results(axes, first, unit)
    else:
        style.legend(axes, lines, [study.study for study in named])

    objective = f"{style.shorten(first.objective)} ({first.direction})"
    if len(named) == 1:
        style.label(
            axes, name, objective, f"{style.shorten(first.study)}: the line is the best so far"
        )
    else:
        style.label(axes, name, f"best {objective} so far")

    _scale(axes, first.against)
    style.note(figure, describe_undrawable(sum_left_out(studies)))
    return figure


def draw_bands(bands: Sequence[ProgressBand], like: BestSoFar) -> Figure:
    """Draw the median of each group of studies, with a band from the lower to the upper quartile.

    Args:
        bands: The groups.
        like: One of the studies, for the labels.
    """
    figure, (axes,) = style.figure()
    unit, name = style.cost_unit(like.against, max(band.x[-1] for band in bands))
    lines = []
    for index, group in enumerate(bands):
        drawn: dict[str, Any] = {"color": style.colour(index), "linestyle": style.line(index)}
        lines += axes.plot(group.x / unit, group.median, drawstyle="steps-post", lw=1.8, **drawn)
        axes.fill_between(
            group.x / unit,
            group.low,
            group.high,
            step="post",
            color=style.colour(index),
            alpha=0.18,
            linewidth=0,
        )

    style.legend(axes, lines, [f"{band.name} ({band.studies})" for band in bands])
    title = "median of the studies of each agent; band: from the lower to the upper quartile"
    style.label(
        axes, name, f"best {style.shorten(like.objective)} so far ({like.direction})", title
    )
    _scale(axes, like.against)
    style.note(figure, describe_undrawable(sum_left_out(bands)))
    return figure


def _results(axes: Axes, study: BestSoFar, unit: float) -> None:
    finite = np.isfinite(study.value)
    x = study.x / unit
    many = bool(finite.sum() > style.MANY)
    size, alpha = (4, 0.35) if many else (12, 0.6)
    axes.scatter(
        x[finite],
        study.value[finite],
        s=size,
        color=style.GREY,
        alpha=alpha,
        linewidths=0,
        rasterized=many,
        zorder=1,
    )
    rows = study.improvements
    axes.scatter(
        x[rows],
        study.best[rows],
        s=26,
        color=style.BEST,
        edgecolors="white",
        linewidths=0.6,
        zorder=3,
    )
    low, high, outside = style.robust_limits(study.value, sign(study.direction), study.best)
    axes.set_ylim(low, high)
    if outside:
        up = study.direction == "minimise"
        note = f"{outside} worse results {'above' if up else 'below'} the axis"
        placement: dict[str, Any] = {
            "xy": (0.99, 0.98 if up else 0.02),
            "va": "top" if up else "bottom",
        }
        axes.annotate(
            note, xycoords="axes fraction", ha="right", fontsize=8.5, color=style.QUIET, **placement
        )


def _scale(axes: Axes, against: str) -> None:
    style.large_numbers(axes.xaxis)
    if against == "evaluations":
        style.whole_numbers(axes.xaxis)
