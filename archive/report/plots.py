"""Plots of a report, as charts with a caption each; those that a study has no data for are left out
with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from archive.errors import ArchiveError, UsageError
from archive.plots.data import curves, drawable, gains, network_map, predictions, progress, tradeoff
from archive.plots.data.curves import evenly
from archive.plots.data.results import Floats, Integers, check_feasible, floats
from archive.plots.figures.style import cost_unit, quantity, robust_limits, spans_orders
from archive.report import fronts
from archive.report.charts import MARKS, Chart, ReportPlot, undrawn
from archive.report.contents import StudyReport, columns_of, costs_on_record
from archive.report.scales import AxisScale
from archive.store.records import sign

if TYPE_CHECKING:
    from archive.api import Archive

OPERATIONS = 12
"""Most operations of the chart of gains."""
SHADES = 10
"""Classes of colour for values, `q0` for the worst."""


def plots(archive: Archive, report: StudyReport) -> Iterator[ReportPlot]:
    """Yield the plots of a report."""
    # The plot of an objective has the Pareto set.
    optimised = {each.name for each in report.study.further} if report.pareto else set()
    costs = [cost for cost in costs_on_record(report.results) if cost not in optimised]
    makers: list[tuple[str, Callable[[], ReportPlot]]] = [
        ("Best so far", lambda: _progress(report, "evaluations")),
        ("Best so far by training time", lambda: _progress(report, "seconds")),
        *_of_objectives(report),
        *((f"Value and {quantity(cost)}", partial(_cost, report, cost)) for cost in costs),
        ("Learning curves", lambda: _curves(archive, report)),
        ("Predicted and observed", lambda: _predictions(report)),
        ("Gains of operations", lambda: _gains(archive, report)),
        ("Map of the networks", lambda: _map(archive, report)),
    ]
    for heading, make in makers:
        try:
            yield make()
        except ArchiveError as error:
            # A study without a surrogate, curves or lineage has no such plot; the page says why.
            yield ReportPlot(heading, str(error), "")


def _of_objectives(report: StudyReport) -> list[tuple[str, Callable[[], ReportPlot]]]:
    """Return the plots of a study with several objectives: the Pareto set in two of them each, and
    its hypervolume.
    """
    front = report.pareto
    if front is None:
        return []

    pairs = [
        partial(fronts.pareto_set, report.results, front, at)
        for at in range(1, len(front.objectives))
    ]
    names = [
        f"Pareto set: {report.study.objective} and {each.name}" for each in front.objectives[1:]
    ]
    return [*zip(names, pairs, strict=True), ("Hypervolume", partial(fronts.hypervolume, front))]


def _progress(report: StudyReport, against: progress.Against) -> ReportPlot:
    data = progress.progress(report.results, against)
    if not len(data.improvements):
        check_feasible([report.results])
        raise UsageError(f"no evaluation has a value yet{drawable.sentence(data.left_out, '; ')}")

    low, high, _ = robust_limits(data.value, sign(data.direction), data.best)
    unit, name = cost_unit(against, float(data.x[-1]))
    x = data.x / unit
    labels = (name, f"{data.objective} ({data.direction})")
    chart = Chart(
        AxisScale.around(x, margin=0.02),
        AxisScale(low, high),
        labels,
        f"best {data.objective} so far",
    )
    known = np.flatnonzero(np.isfinite(data.value))
    at = known[evenly(len(known), MARKS)]
    titles = (f"#{data.number[one]}: {data.value[one]:.5g}" for one in at)
    outside = chart.marks(x[at], data.value[at], "other", titles, 2)
    steps, heights = data.steps
    chart.line(steps / unit, heights, "s0", steps=True)
    best = data.improvements
    chart.marks(
        x[best],
        data.best[best],
        "s0",
        (f"#{data.number[one]}: {data.best[one]:.5g}" for one in best),
    )
    caption = (
        f"Each mark is an evaluation{_part(len(at), len(known))}; the line is the best so far."
    )
    heading = "Best so far" if against == "evaluations" else "Best so far by training time"
    return ReportPlot(heading, caption + undrawn(outside, data.left_out), chart.svg())


def _cost(report: StudyReport, cost: str) -> ReportPlot:
    columns = [floats(column) for column in columns_of(cost, report.results)]
    merged = columns[0]
    for column in columns[1:]:
        merged = np.where(np.isnan(merged), column, merged)

    data = tradeoff.tradeoff([report.results], [merged], cost)
    low, high, _ = robust_limits(data.value, sign(data.direction), data.value[data.front])
    scale = AxisScale.around(data.cost, logarithmic=spans_orders(data.cost))
    labels = (f"{quantity(cost)}, smaller is better", f"{data.objective} ({data.direction})")
    chart = Chart(scale, AxisScale(low, high), labels, f"{data.objective} and {quantity(cost)}")
    rest = np.setdiff1d(np.arange(len(data.value)), data.front)
    at = rest[evenly(len(rest), MARKS)]

    def titles(rows: Integers) -> Iterator[str]:
        return (f"#{data.number[one]}: {data.value[one]:.5g}, {data.cost[one]:.6g}" for one in rows)

    outside = chart.marks(data.cost[at], data.value[at], "other", titles(at), 2.5)
    ends = (
        np.append(data.cost[data.front], scale.high),
        np.append(data.value[data.front], data.value[data.front][-1]),
    )
    chart.line(*ends, "s0", steps=True)
    chart.marks(data.cost[data.front], data.value[data.front], "s0", titles(data.front), 4)
    caption = (
        f"Large marks are the Pareto front of {len(data.front)}: no other evaluation is as cheap "
        "and better."
        f"{undrawn(outside, data.left_out)}"
    )
    return ReportPlot(f"Value and {quantity(cost)}", caption, chart.svg())


def _curves(archive: Archive, report: StudyReport) -> ReportPlot:
    data = curves.learning_curves(archive, report.study.name, best=5, others=60)
    epochs = np.concatenate([one.epochs for one in data.curves])
    values = np.concatenate([one.values for one in data.curves])
    known = values[np.isfinite(values)]
    low, high = (
        np.quantile(known, [0.02, 1.0] if data.direction == "maximise" else [0.0, 0.98])
        if len(known)
        else (0, 1)
    )
    chart = Chart(
        AxisScale.around(epochs, margin=0.02), AxisScale.around(np.array([low, high])), ("epochs", data.metric),
        "learning curves",
    )  # fmt: skip
    best = [one for one in data.curves if one.role == "best"]
    for one in data.curves:
        kind = f"s{best[::-1].index(one)}" if one.role == "best" else one.role
        chart.line(
            one.epochs,
            np.where(
                (one.values >= chart.y.low) & (one.values <= chart.y.high), one.values, np.nan
            ),
            kind,
        )
        if one.role == "best":
            chart.marks(one.epochs[-1:], one.values[-1:], kind, [f"#{one.number}: {one.value:.5g}"])

    ranking = ", ".join(f"#{one.number}" for one in best[::-1])
    caption = (
        f"The best trainings in colours ({ranking}), {len(data.curves) - len(best)} others in grey."
    )
    caption += undrawn(0, data.left_out)
    return ReportPlot("Learning curves", caption, chart.svg())


def _predictions(report: StudyReport) -> ReportPlot:
    data = predictions.predictions([report.results])
    both = np.concatenate([data.predicted, data.observed])
    scale = AxisScale.around(np.quantile(both, [0.01, 0.99]), margin=0.08)
    labels = (f"predicted {data.objective}", f"observed {data.objective}")
    chart = Chart(scale, scale, labels, "predicted and observed values")
    ends = np.array([scale.low, scale.high])
    chart.line(ends, ends, "running")
    at = evenly(len(data.observed), MARKS)
    titles = (
        f"#{data.number[one]}: predicted {data.predicted[one]:.4g} ± {data.std[one]:.2g}"
        for one in at
    )
    outside = chart.marks(data.predicted[at], data.observed[at], "m0", titles)
    one, two = data.coverage([0.6827, 0.9545])
    caption = (
        f"{len(data.observed):,} predictions, each made before its result. RMSE {data.rmse:.3g}; "
        f"{one:.0%} of the "
        f"results within one standard deviation, {two:.0%} within two (ideal: 68 % and 95 %)."
        f"{undrawn(outside, data.left_out)}"
    )
    return ReportPlot("Predicted and observed", caption, chart.svg())


def _gains(archive: Archive, report: StudyReport) -> ReportPlot:
    data = gains.operation_gains(archive, report.study.name)
    most = data.operations[:OPERATIONS]
    quantiles = np.array([np.quantile(one.gains, [0.05, 0.25, 0.5, 0.75, 0.95]) for one in most])
    names = [f"{one.operation[:20]} ({len(one.gains)})" for one in most]
    label = f"gain of {data.objective} from parent to child"
    chart = Chart(
        AxisScale.around(np.append(quantiles.ravel(), 0.0)),
        names,
        (label, ""),
        "gains of operations",
    )
    chart.line(np.zeros(2), np.array([chart.y.low, chart.y.high]), "running")
    chart.bars(len(most), quantiles[:, 0], quantiles[:, 4], "range", 0.08)
    chart.bars(len(most), quantiles[:, 1], quantiles[:, 3], "box", 0.5)
    titles = (
        (
            f"{one.operation}: median {middle:.3g}; {one.improved} of {len(one.gains)} better; "
            "raise "
            f"{one.raised:.3g}"
        )
        for one, middle in zip(most, quantiles[:, 2], strict=True)
    )
    chart.marks(quantiles[:, 2], np.arange(float(len(most))), "s1", titles, 5)
    caption = (
        "Score of a child minus that of its parent: median, quartiles and the range from 5 % to "
        "95 %, over "
        f"{data.steps:,} steps, with the number of uses. An operation of several in one step "
        "counts in full."
        f"{undrawn(0, data.left_out)}"
    )
    return ReportPlot("Gains of operations", caption, chart.svg())


def _map(archive: Archive, report: StudyReport) -> ReportPlot:
    data = network_map.network_map(archive, report.study.name, whole=False)
    (path,) = data.paths
    chart = Chart(
        AxisScale.around(data.places[:, 0]), AxisScale.around(data.places[:, 1]), ("first axis", "second axis"),
        "map of the networks", square=_fits(data.places),
    )  # fmt: skip
    known = np.flatnonzero(np.isfinite(path.value))
    order = known[np.argsort(sign(data.direction) * path.value[known], kind="stable")]
    at = order[evenly(len(order), MARKS)]
    places = data.places[path.at[at]]
    titles = (f"#{path.number[one]}: {path.value[one]:.5g}" for one in at)
    chart.marks(
        places[:, 0], places[:, 1], _shades(sign(data.direction) * path.value[at]), titles, 3.5
    )
    steps = data.places[path.incumbents]
    chart.line(steps[:, 0], steps[:, 1], "s1")
    chart.marks(steps[-1:, 0], steps[-1:, 1], "s1", ["the best network"] * len(steps[-1:]), 7)
    caption = (
        f"Similar networks are close; the two axes have {data.kept:.0%} of the variance of their "
        f"{data.distance}s. "
        "Colour is the value, and the line joins the best networks so far."
        f"{undrawn(0, path.left_out)}"
    )
    return ReportPlot("Map of the networks", caption, chart.svg())


def _fits(places: Floats) -> bool:
    """Return whether a wide chart with equal units has room for a map that is taller than wide."""
    extent = np.ptp(places, axis=0) if len(places) else np.ones(2)
    return bool(extent[1] <= 0.45 * extent[0])


def _shades(scores: Floats) -> list[str]:
    """Return the class of each score: tenths between the 5 % quantile and the best."""
    low, high = (
        (float(np.quantile(scores, 0.05)), float(scores.max())) if len(scores) else (0.0, 1.0)
    )
    share = (scores - low) / ((high - low) or 1.0)
    return [f"q{int(each)}" for each in np.clip(share * SHADES, 0, SHADES - 1)]


def _part(drawn: int, count: int) -> str:
    return f" ({drawn:,} of {count:,} are drawn)" if drawn < count else ""
