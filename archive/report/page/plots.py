"""Plots of a report as charts with captions; plots without data are left out with a reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from archive import words
from archive.errors import ArchiveError, UsageError
from archive.objectives import sign
from archive.plots.data import curves, gains, network_map, predictions, progress, tradeoff
from archive.plots.data.curves import evenly
from archive.plots.data.results import (
    Floats,
    Integers,
    RecordedResults,
    check_feasible,
    count_undrawable,
    describe_undrawable,
    floats,
    mask_undrawable,
)
from archive.plots.figures.style import cost_unit, quantity, robust_limits, spans_orders
from archive.queries.pareto import ParetoSet
from archive.report.contents import (
    StudyReport,
    columns_of,
    costs_on_record,
    describe_reference,
)
from archive.report.page.charts import (
    MARKS,
    AxisScale,
    Chart,
    ReportPlot,
    describe_left_out,
    short,
)
from archive.report.page.findings import (
    cost_finding,
    curves_finding,
    gains_finding,
    hypervolume_finding,
    map_finding,
    predictions_finding,
    progress_finding,
)
from archive.store.properties import METRIC
from archive.values import rounded

if TYPE_CHECKING:
    from archive.api import Archive


OPERATIONS = 12
"""Most operations of the chart of gains."""
SHADES = 7
"""Classes of colour for values, `g0` for the worst."""


def plots(archive: Archive, report: StudyReport) -> Iterator[ReportPlot]:
    """Yield the plots of a report."""
    # The plot of an objective has the Pareto set.
    optimised = {objective.name for objective in report.study.further} if report.pareto else set()
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
            yield ReportPlot(heading, "", str(error), "")


def _of_objectives(report: StudyReport) -> list[tuple[str, Callable[[], ReportPlot]]]:
    """Return the plots of several objectives: Pareto sets in pairs, and the hypervolume."""
    front = report.pareto
    if front is None:
        return []

    makers: list[tuple[str, Callable[[], ReportPlot]]] = []
    for index, objective in enumerate(front.objectives[1:], 1):
        name = f"Pareto set: {report.study.objective} and {objective.name}"
        makers.append((name, partial(pareto_set, report.results, front, index)))

    return [*makers, ("Hypervolume", partial(hypervolume, front))]


def _progress(report: StudyReport, against: progress.Against) -> ReportPlot:
    data = progress.progress(report.results, against)
    if not len(data.improvements):
        check_feasible([report.results])
        raise UsageError(f"no evaluation has a value yet{describe_undrawable(data.left_out, '; ')}")

    low, high, _ = robust_limits(data.value, sign(data.direction), _late(data.best))
    unit, name = cost_unit(against, float(data.x[-1]))
    x = data.x / unit
    labels = (name, f"{data.objective} ({data.direction})")
    chart = Chart(
        AxisScale.around(x, margin=0.02, whole=against == "evaluations"),
        AxisScale(low, high),
        labels,
        f"best {data.objective} so far",
    )
    finite = np.flatnonzero(np.isfinite(data.value))
    rows = finite[evenly(len(finite), MARKS)]
    titles = _name_marks(data.number, data.value, rows)
    outside = chart.marks(x[rows], data.value[rows], "other", titles)
    steps, heights = data.steps
    chart.line(steps / unit, heights, "best", steps=True)
    best = data.improvements
    above = chart.marks(x[best], data.best[best], "best", _name_marks(data.number, data.best, best))
    caption = (
        f"Each mark is an evaluation{_part(len(rows), len(finite))}; the line is the best so far."
    )
    heading = "Best so far" if against == "evaluations" else "Best so far by training time"
    caption += describe_left_out(outside + above, data.left_out)
    return ReportPlot(heading, progress_finding(data, report.noise), caption, chart.svg())


def _late(best: Floats) -> Floats:
    """Return the best values after a tenth of the results: the first step would squash the rest."""
    return best[min(len(best) // 10, len(best) - 1) :]


def _cost(report: StudyReport, cost: str) -> ReportPlot:
    merged, *others = map(floats, columns_of(cost, report.results))
    for column in others:
        merged = np.where(np.isnan(merged), column, merged)

    data = tradeoff.tradeoff([report.results], [merged], cost)
    low, high, _ = robust_limits(data.value, sign(data.direction), data.value[data.front])
    scale = AxisScale.around(data.cost, logarithmic=spans_orders(data.cost))
    labels = (f"{quantity(cost)}, smaller is better", f"{data.objective} ({data.direction})")
    chart = Chart(scale, AxisScale(low, high), labels, f"{data.objective} and {quantity(cost)}")
    rest = np.setdiff1d(np.arange(len(data.value)), data.front)
    drawn = rest[evenly(len(rest), MARKS)]
    titles = _name_pairs(data.number, data.value, data.cost, drawn)
    outside = chart.marks(data.cost[drawn], data.value[drawn], "other", titles, 2.5)
    ends = (
        np.append(data.cost[data.front], scale.high),
        np.append(data.value[data.front], data.value[data.front][-1]),
    )
    chart.line(*ends, "best", steps=True)
    titles = _name_pairs(data.number, data.value, data.cost, data.front)
    chart.marks(data.cost[data.front], data.value[data.front], "best", titles, 4)
    caption = (
        f"Large marks are the Pareto front of {len(data.front)}: "
        f"no other evaluation is as cheap and better.{describe_left_out(outside, data.left_out)}"
    )
    finding = cost_finding(data, report.noise)
    return ReportPlot(f"Value and {quantity(cost)}", finding, caption, chart.svg())


def _curves(archive: Archive, report: StudyReport) -> ReportPlot:
    data = curves.learning_curves(archive, report.study.name, best=5, others=60)
    epochs = np.concatenate([curve.epochs for curve in data.curves])
    values = np.concatenate([curve.values for curve in data.curves])
    finite = values[np.isfinite(values)]
    low, high = (
        np.quantile(finite, [0.2, 1.0] if data.direction == "maximise" else [0.0, 0.8])
        if len(finite)
        else (0, 1)
    )
    chart = Chart(
        AxisScale.around(epochs, margin=0.02, whole=True), AxisScale.around(np.array([low, high])), ("epochs", data.metric),
        "learning curves",
    )  # fmt: skip
    best = [curve for curve in data.curves if curve.role == "best"]
    for curve in data.curves:
        kind = _line_of(best[::-1].index(curve)) if curve.role == "best" else curve.role
        chart.line(curve.epochs, curve.values, kind)
        if curve.role == "best":
            chart.marks(
                curve.epochs[-1:], curve.values[-1:], kind, [f"#{curve.number}: {curve.value:.5g}"]
            )

    key = []
    for position, curve in enumerate(best[::-1]):
        key.append((_line_of(position), f"#{curve.number}: {rounded(curve.value, report.noise)}"))

    others = len(data.curves) - len(best)
    grey = f", {others:,} others are grey" if others else ""
    outside = "The worst fifth of the values is outside the axes."
    caption = f"The best trainings have colours{grey}. {outside}"
    caption += describe_left_out(0, data.left_out)
    finding = curves_finding(data, report.noise)
    return ReportPlot("Learning curves", finding, caption, chart.svg(), tuple(key))


def _line_of(position: int) -> str:
    """Return the class of a training by its place, 0 for the best."""
    return "best" if position == 0 else f"s{position}"


def _predictions(report: StudyReport) -> ReportPlot:
    data = predictions.predictions([report.results])
    both = np.concatenate([data.predicted, data.observed])
    scale = AxisScale.around(np.quantile(both, [0.01, 0.99]), margin=0.08)
    labels = (f"predicted {data.objective}", f"observed {data.objective}")
    chart = Chart(scale, scale, labels, "predicted and observed values")
    ends = np.array([scale.low, scale.high])
    chart.line(ends, ends, "running")
    rows = evenly(len(data.observed), MARKS)
    titles = []
    for row in rows:
        spread = f"{data.predicted[row]:.4g} ± {data.std[row]:.2g}"
        titles.append(f"#{data.number[row]}: predicted {spread}")

    outside = chart.marks(data.predicted[rows], data.observed[rows], "m0", titles)
    within_one, two = data.coverage([0.6827, 0.9545])
    caption = (
        f"{len(data.observed):,} predictions, each made before its result; "
        f"{within_one:.0%} of the results within one standard deviation, "
        f"{two:.0%} within two (ideal: 68 % and 95 %).{describe_left_out(outside, data.left_out)}"
    )
    return ReportPlot("Predicted and observed", predictions_finding(data), caption, chart.svg())


def _gains(archive: Archive, report: StudyReport) -> ReportPlot:
    data = gains.operation_gains(archive, report.study.name)
    most = data.operations[:OPERATIONS]
    quantiles = np.array([gain.quantiles for gain in most])
    names = []
    for gain in most:
        names.append(f"{words.operation(gain.operation)[:26]} ({len(gain.gains)})")

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
    titles = []
    for gain, middle in zip(most, quantiles[:, 2], strict=True):
        titles.append(
            f"{gain.operation}: median {middle:.3g}; {gain.improved} of {len(gain.gains)} better; "
            f"{gain.raised:.3g} added to the best value"
        )

    chart.marks(quantiles[:, 2], np.arange(float(len(most))), "s0", titles, 5)
    caption = (
        "Score of a child minus its parent's: median, quartiles and the range from "
        f"5 % to 95 %, over {data.steps:,} steps, with the number of uses. An operation "
        f"of several in one step counts in full.{describe_left_out(0, data.left_out)}"
    )
    return ReportPlot("Gains of operations", gains_finding(data), caption, chart.svg())


def _map(archive: Archive, report: StudyReport) -> ReportPlot:
    data = network_map.network_map(archive, report.study.name, whole=False)
    (path,) = data.paths
    chart = Chart(
        AxisScale.around(data.places[:, 0]), AxisScale.around(data.places[:, 1]), ("first axis", "second axis"),
        "map of the networks", square=_fits(data.places),
    )  # fmt: skip
    finite = np.flatnonzero(np.isfinite(path.value))
    order = finite[np.argsort(sign(data.direction) * path.value[finite], kind="stable")]
    rows = order[evenly(len(order), MARKS)]
    places = data.places[path.at[rows]]
    titles = _name_marks(path.number, path.value, rows)
    chart.marks(
        places[:, 0], places[:, 1], _shades(sign(data.direction) * path.value[rows]), titles, 3.5
    )
    steps = data.places[path.incumbents]
    chart.line(steps[:, 0], steps[:, 1], "best")
    chart.marks(steps[-1:, 0], steps[-1:, 1], "best", ["the best network"] * len(steps[-1:]), 7)
    caption = (
        f"Similar networks, by {words.distance(data.distance)}, are close. Colour is the value, from "
        "pale for the worst; the line joins the best networks so far, and ends at the large mark."
        f"{describe_left_out(0, path.left_out)}"
    )
    return ReportPlot("Map of the networks", map_finding(path, data.kept), caption, chart.svg())


def _name_marks(number: Integers, value: Floats, rows: Integers) -> Iterator[str]:
    """Yield the hover titles of marks: number and value."""
    for row in rows:
        yield f"#{number[row]}: {value[row]:.5g}"


def _name_pairs(number: Integers, value: Floats, cost: Floats, rows: Integers) -> Iterator[str]:
    """Yield the hover titles of marks: number, value and cost."""
    for row in rows:
        yield f"#{number[row]}: {value[row]:.5g}, {cost[row]:.6g}"


def _fits(places: Floats) -> bool:
    """Return whether a wide chart with equal units has room for a map that is taller than wide."""
    extent = np.ptp(places, axis=0) if len(places) else np.ones(2)
    return bool(extent[1] <= 0.45 * extent[0])


def _shades(scores: Floats) -> list[str]:
    """Return the class of each score: equal parts between the 5 % quantile and the best."""
    low, high = (
        (float(np.quantile(scores, 0.05)), float(scores.max())) if len(scores) else (0.0, 1.0)
    )
    share = (scores - low) / ((high - low) or 1.0)
    return [f"g{int(shade)}" for shade in np.clip(share * SHADES, 0, SHADES - 1)]


def _part(drawn: int, count: int) -> str:
    return f" ({drawn:,} of {count:,} are drawn)" if drawn < count else ""


def pareto_set(results: RecordedResults, front: ParetoSet, objective: int) -> ReportPlot:
    """Return the plot of results in the first and another objective, with the Pareto set.

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
    x, y = map(mask_undrawable, recorded)
    left_out = count_undrawable(*recorded)
    if not np.isfinite(x + y).any():
        raise UsageError(f"no result can be drawn{describe_undrawable(left_out, '; ')}")

    best = mask_undrawable(np.array(front.values))
    across = best[:, objective]
    up = best[:, 0]
    low, high, _ = robust_limits(y, sign(first.direction), up)
    scale = AxisScale.around(np.append(x, across), logarithmic=spans_orders(np.append(x, across)))
    labels = (f"{quantity(other.name)} ({other.direction})", f"{first.name} ({first.direction})")
    chart = Chart(
        scale, AxisScale(low, high), labels, f"Pareto set of {first.name} and {other.name}"
    )
    members = np.array([view.number for view in front.proposals], np.int64)
    rest = np.flatnonzero(np.isfinite(x) & np.isfinite(y) & ~np.isin(results.number, members))
    rows = rest[evenly(len(rest), MARKS)]
    titles = _name_pairs(results.number, y, x, rows)
    outside = chart.marks(x[rows], y[rows], "other", titles, 2.5)
    # With three objectives the set is no line in two of them.
    if len(front.objectives) == 2:
        order = np.argsort(-sign(other.direction) * across, kind="stable")
        chart.line(across[order], up[order], "best", steps=True)

    titles = _name_pairs(members, up, across, np.arange(len(members)))
    chart.marks(across, up, "best", titles, 4)
    caption = (
        f"Large marks are the Pareto set of {len(members)}: "
        "no other result is as good in every objective."
    )
    caption += describe_left_out(outside, left_out)
    left, right = np.argmin(across), np.argmax(across)
    finding = (
        f"{first.name} goes from {up[left]:.4g} at {short(across[left])} to {up[right]:.4g} at "
        f"{short(across[right])} {quantity(other.name)}."
    )
    heading = f"Pareto set: {first.name} and {other.name}"
    return ReportPlot(heading, finding, caption, chart.svg())


def hypervolume(front: ParetoSet) -> ReportPlot:
    """Return the plot of the hypervolume that the results up to each proposal have reached.

    Raises:
        UsageError: No hypervolume can be drawn.
    """
    number, volume = np.array(front.history, np.float64).T
    left_out = count_undrawable(volume)
    finite = np.isfinite(mask_undrawable(volume))
    if not finite.any():
        raise UsageError(f"no hypervolume can be drawn{describe_undrawable(left_out, '; ')}")

    number = number[finite]
    volume = volume[finite]
    chart = Chart(
        AxisScale.around(number, margin=0.02, whole=True),
        _from_zero(volume),
        ("proposals", "hypervolume"),
        "hypervolume",
    )
    # It decreases where a replicate lowers a mean.
    changes = np.flatnonzero(np.diff(volume, prepend=-1.0) != 0)
    drawn = np.unique(np.append(changes[evenly(len(changes), MARKS)], len(volume) - 1))
    chart.line(number[drawn], volume[drawn], "s0", steps=True)
    titles = _name_marks(number.astype(np.int64), volume, drawn)
    chart.marks(number[drawn], volume[drawn], "s0", titles)
    caption = (
        "Volume between the Pareto set so far and the worst value of each objective "
        f"({describe_reference(front)})."
    )
    caption += describe_left_out(0, left_out)
    finding = hypervolume_finding(number.tolist(), volume.tolist())
    return ReportPlot("Hypervolume", finding, caption, chart.svg())


def _from_zero(volume: Floats) -> AxisScale:
    high = float(volume.max())
    return AxisScale(0.0, 1.05 * high or 1.0)
