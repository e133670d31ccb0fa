"""Charts of a study with several objectives: its results with the Pareto set, and the hypervolume
over time.
"""

from __future__ import annotations

import numpy as np

from archive.errors import UsageError
from archive.plots.data import drawable
from archive.plots.data.curves import evenly
from archive.plots.data.results import Floats, RecordedResults, floats
from archive.plots.figures.style import quantity, robust_limits, spans_orders
from archive.queries.hypervolume import ParetoSet
from archive.report.charts import MARKS, Chart, ReportPlot, undrawn
from archive.report.scales import AxisScale
from archive.store.properties import METRIC
from archive.store.records import sign


def pareto_set(results: RecordedResults, front: ParetoSet, objective: int) -> ReportPlot:
    """Return the plot of all results in the first objective and in another one, with the Pareto
    set.

    Args:
        results: The results, with the columns of all objectives.
        front: Their Pareto set.
        objective: Position of the other objective.

    Raises:
        UsageError: No result can be drawn.
    """
    first = front.objectives[0]
    other = front.objectives[objective]
    recorded = floats(results.columns[METRIC + other.name]), results.value
    x, y = map(drawable.kept, recorded)
    left_out = drawable.count(*recorded)
    if not np.isfinite(x + y).any():
        raise UsageError(f"no result can be drawn{drawable.sentence(left_out, '; ')}")

    best = drawable.kept(np.array(front.values))
    across = best[:, objective]
    up = best[:, 0]
    low, high, _ = robust_limits(y, sign(first.direction), up)
    scale = AxisScale.around(np.append(x, across), logarithmic=spans_orders(np.append(x, across)))
    labels = (f"{quantity(other.name)} ({other.direction})", f"{first.name} ({first.direction})")
    chart = Chart(
        scale, AxisScale(low, high), labels, f"Pareto set of {first.name} and {other.name}"
    )
    members = [view.number for view in front.proposals]
    rest = np.flatnonzero(np.isfinite(x) & np.isfinite(y) & ~np.isin(results.number, members))
    at = rest[evenly(len(rest), MARKS)]
    titles = (f"#{results.number[one]}: {y[one]:.5g}, {x[one]:.6g}" for one in at)
    outside = chart.marks(x[at], y[at], "other", titles, 2.5)
    # With three objectives the set is no line in two of them.
    if len(front.objectives) == 2:
        order = np.argsort(-sign(other.direction) * across, kind="stable")
        chart.line(across[order], up[order], "s0", steps=True)

    named = (
        f"#{number}: {value:.5g}, {cost:.6g}"
        for number, value, cost in zip(members, up, across, strict=True)
    )
    chart.marks(across, up, "s0", named, 4)
    caption = (
        f"Large marks are the Pareto set of {len(members)}: no other result is as good in "
        "every objective."
    )
    caption += undrawn(outside, left_out)
    return ReportPlot(f"Pareto set: {first.name} and {other.name}", caption, chart.svg())


def hypervolume(front: ParetoSet) -> ReportPlot:
    """Return the plot of the hypervolume that the results up to each proposal have reached.

    Raises:
        UsageError: No hypervolume can be drawn.
    """
    number, volume = np.array(front.history, np.float64).T
    left_out = drawable.count(volume)
    known = np.isfinite(drawable.kept(volume))
    if not known.any():
        raise UsageError(f"no hypervolume can be drawn{drawable.sentence(left_out, '; ')}")

    number = number[known]
    volume = volume[known]
    chart = Chart(
        AxisScale.around(number, margin=0.02),
        _from_zero(volume),
        ("proposals", "hypervolume"),
        "hypervolume",
    )
    # It decreases where a replicate lowers a mean.
    changes = np.flatnonzero(np.diff(volume, prepend=-1.0) != 0)
    drawn = np.unique(np.append(changes[evenly(len(changes), MARKS)], len(volume) - 1))
    chart.line(number[drawn], volume[drawn], "s0", steps=True)
    titles = (f"#{int(number[one])}: {volume[one]:.5g}" for one in drawn)
    chart.marks(number[drawn], volume[drawn], "s0", titles)
    reference = ", ".join(f"{each:.6g}" for each in front.reference)
    caption = (
        f"Volume between the Pareto set so far and the worst value of each objective ({reference})."
    )
    caption += undrawn(0, left_out)
    return ReportPlot("Hypervolume", caption, chart.svg())


def _from_zero(volume: Floats) -> AxisScale:
    high = float(volume.max())
    return AxisScale(0.0, 1.05 * high or 1.0)
