"""Charts of a report about parameters and decisions: their importance, and slices of the best."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from archive.errors import ArchiveError
from archive.objectives import sign
from archive.plots.data.columns import read_table
from archive.plots.data.curves import evenly
from archive.plots.data.importance import Analysis, ImportanceReport
from archive.plots.data.slices import Slice, Slices, slices_of
from archive.plots.figures.style import robust_limits
from archive.report.contents import StudyReport
from archive.report.page.charts import MARKS, AxisScale, Chart, ReportPlot, describe_left_out
from archive.report.page.findings import importance_finding, slice_finding

if TYPE_CHECKING:
    from archive.api import Archive

ROWS = 12
"""Most bars of importance."""
SLICES = 3
"""Slices of the columns with the largest shares of the variance."""


def matters(archive: Archive, report: StudyReport) -> Iterator[ReportPlot]:
    """Yield the plots; none of a study without an importance, such as one of few results."""
    try:
        analysis = Analysis(read_table(archive, report.study.name))
        importance = analysis.report()
        sliced = slices_of(analysis)
    except ArchiveError:
        return

    if importance.explained <= 0.0:
        return

    yield _bars(importance)
    for part in sliced.slices[:SLICES]:
        if len(part.grid):
            yield _slice(sliced, part)


def _bars(report: ImportanceReport) -> ReportPlot:
    names = []
    shares = []
    for column in report.parameters[:ROWS]:
        if column.variance is not None:
            names.append(column.name)
            shares.append(column.variance)

    for pair in report.pairs[: ROWS - len(names)]:
        names.append(f"{pair.first} × {pair.second}")
        shares.append(pair.variance)

    high = max(share.high for share in shares)
    label = f"share of the variance of {report.objective}"
    chart = Chart(AxisScale(0.0, max(high, 0.01)), names, (label, ""), "importance")
    middles = np.array([share.share for share in shares])
    chart.bars(len(shares), np.zeros(len(shares)), middles, "box", 0.6)
    lows = np.array([share.low for share in shares])
    highs = np.array([share.high for share in shares])
    chart.bars(len(shares), lows, highs, "range", 0.06)
    titles = []
    for name, share in zip(names, shares, strict=True):
        titles.append(f"{name}: {share.share:.1%}, 95 %: {share.low:.1%} to {share.high:.1%}")

    chart.marks(middles, np.arange(float(len(shares))), "s0", titles, 4)
    caption = (
        f"Share of the variance over the whole space that each explains alone, and pairs (×) beyond "
        f"both, by a random forest of {report.results:,} results (fANOVA). It explains "
        f"{report.explained:.0%} of the variance of results that it has not seen. A conditional "
        "parameter is judged among the results in which it exists."
    )
    return ReportPlot("What matters", importance_finding(report), caption, chart.svg())


def _slice(sliced: Slices, part: Slice) -> ReportPlot:
    name = part.axis.name
    better = sign(sliced.direction)
    best = part.value[np.argmax(better * part.value)]
    low, high, _ = robust_limits(part.value, better, np.append(part.mean, best))
    value = f"{sliced.objective} ({sliced.direction})"
    scale = AxisScale(-0.04, 1.04, marks=part.axis.ticks)
    logarithmic = ", logarithmic" if part.axis.scaling == "logarithmic" else ""
    labels = (f"{name}{logarithmic}", value)
    chart = Chart(scale, AxisScale(low, high), labels, f"{sliced.objective} and {name}")
    rows = evenly(len(part.value), MARKS)
    titles = [f"#{part.number[row]}: {part.value[row]:.5g}" for row in rows]
    outside = chart.marks(part.places[rows], part.value[rows], "other", titles, 2.5)
    if part.axis.scaling == "categories":
        means = [f"mean prediction {mean:.4g}" for mean in part.mean]
        chart.marks(part.grid, part.mean, "s0", means, 5)
    else:
        chart.line(part.grid, part.mean, "s0")

    caption = (
        "Each grey mark is an evaluation; the line, or the large marks, are the mean prediction of the forest over all other "
        f"parameters.{describe_left_out(outside, 0)}"
    )
    heading = f"{sliced.objective} and {name}"
    return ReportPlot(heading, slice_finding(sliced, part), caption, chart.svg())
