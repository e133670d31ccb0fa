"""Report as an HTML document: an escaping Jinja template, and a policy without requests."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from archive import __version__, drawing
from archive.agents.recommendation import Recommendation
from archive.architecture import diagram
from archive.architecture.choice_operations import decision_labels
from archive.errors import ArchiveError
from archive.objectives import sign
from archive.plots.figures.style import printable, quantity
from archive.queries.pareto import ParetoSet
from archive.report.contents import (
    MOST_VALUES,
    StudyReport,
    columns_of,
    costs_on_record,
    describe_reference,
    final_metrics,
    further_objectives,
    has_values,
)
from archive.report.page.charts import ReportPlot, short
from archive.store.metric_names import own_unit_metric, units_of
from archive.store.properties import METRIC
from archive.store.records import Evaluation, State
from archive.store.studies.creation import agent_names, kind_of
from archive.store.studies.studies import UNBOUNDED, describe_budget
from archive.values import is_duration, setting_text, settings_text, short_settings


class BestNetwork(NamedTuple):
    """One of the best networks, as the page shows it.

    Attributes:
        number: Number of the proposal.
        key: Key of the architecture.
        facts: Names and texts of its properties.
        picture: Its SVG; empty if this installation lacks the space.
        missing: Why there is no picture; empty for a picture.
    """

    number: int
    key: str
    facts: list[tuple[str, str]]
    picture: Markup
    missing: str


class Cell(NamedTuple):
    """A cell of the table: its text, and the number that it sorts by; empty for text."""

    text: str
    sort: str = ""


class ResultTable(NamedTuple):
    """The table of results.

    Attributes:
        headings: Headings of the columns.
        numeric: Number of columns of numbers, which come first.
        rows: Cells of each row.
    """

    headings: list[str]
    numeric: int
    rows: list[list[Cell]]


def render(report: StudyReport, plots: Sequence[ReportPlot]) -> str:
    """Return the document."""
    style = _text("report.css") + drawing.stylesheet()
    script = _text("report.js")
    environment = Environment(
        loader=PackageLoader("archive.report.page", ""),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    allowed = f"style-src {_digest(style)}; script-src {_digest(script)}"
    table = _make_table(report)
    return environment.get_template("report.html").render(
        study=report.study,
        version=__version__,
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        policy=f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'",
        style=Markup(style),
        script=Markup(script),
        facts=list(_facts(report)),
        best=[_best(report, recommendation) for recommendation in report.best],
        plots=[(plot, Markup(plot.chart)) for plot in plots if plot.chart],
        missing=[plot for plot in plots if not plot.chart],
        columns=table.headings,
        numeric=table.numeric,
        rows=table.rows,
        results=len(report.results),
        environment=list(_environment_facts(report)),
        failures=report.failures,
        commands=report.commands,
    )


def _printable(value: Any) -> Any:
    """Return a value of the template without control characters; markup stays."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _text(name: str) -> str:
    return (files("archive.report.page") / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _estimate(recommendation: Recommendation, better: float) -> str:
    """Return a recommended network with the estimate of its value, in words."""
    count = len(recommendation.evaluations)
    counted = "1 evaluation" if count == 1 else f"{count} evaluations"
    ends = []
    for end in (recommendation.low, recommendation.high):
        if end is not None:
            ends.append(better * end)

    ends.sort()
    within = f", 95 %: {ends[0]:.6g} to {ends[1]:.6g}" if ends else ""
    key = recommendation.architecture.key[:8]
    return f"{key}, expected {better * recommendation.score:.6g}{within} ({counted})"


def _best_facts(report: StudyReport) -> Iterator[tuple[str, str]]:
    """Yield the best value, and the configuration that it has."""
    best = report.best[0]
    own_unit = own_unit_metric(report.study)
    error = None if own_unit is None else best.metrics.get(own_unit)
    beside = "" if error is None else f", {own_unit} {error:.6g}"
    yield "best value", f"{best.value:.6g}{beside} (#{best.number})"
    named = report.configurations.get(best.number or 0)
    if named:
        yield "best configuration", settings_text(named)


def _facts(report: StudyReport) -> Iterator[tuple[str, str]]:
    study = report.study
    results = report.results
    agents = agent_names(study, results.columns["agent"])
    named = "; ".join(f"{objective.name}, {objective.direction}" for objective in study.objectives)
    yield "objectives" if study.further else "objective", named
    if (units := units_of(study)) is not None:
        yield "unit", units

    if study.constraints:
        yield "constraints", ", ".join(map(str, study.constraints))

    if report.pareto is not None:
        yield from _front_facts(report.pareto)
    elif report.best:
        yield from _best_facts(report)

    if report.recommended is not None:
        yield "recommended", _estimate(report.recommended, sign(study.direction))

    yield "task", f"{study.task}, protocol {study.protocol}"
    yield "space", study.space
    yield "agent", ", ".join(agents) or "none on record"
    counted = []
    for state in State:
        if count := report.counts.get(state):
            counted.append(f"{count:,} {state.value.lower()}")

    budget = f"{study.budget:,}" if study.budget < UNBOUNDED else describe_budget(study.budget)
    yield "proposals", f"{', '.join(counted) or 'none'}; budget {budget}"
    seconds = [*filter(is_duration, results.columns["seconds"])]
    if seconds:
        yield "training time", _duration(sum(seconds))

    reused = len(results) - results.columns["answered_from"].count(None)
    if reused:
        yield "known before", f"{reused:,} results were reused without a training"

    if report.sources:
        yield "warm-started from", ", ".join(report.sources)

    yield "created", _time(study.created)


def _front_facts(front: ParetoSet) -> Iterator[tuple[str, str]]:
    """Yield the best value of each objective in the Pareto set, and the extent of the set."""
    for index, objective in enumerate(front.objectives):
        better = sign(objective.direction)
        best = max(
            range(len(front.values)), key=lambda member: better * front.values[member][index]
        )
        yield (
            f"best {objective.name}",
            (f"{front.values[best][index]:.6g} (#{front.proposals[best].number})"),
        )

    yield "Pareto set", f"{len(front.proposals):,} of {len(front.history):,} results"
    yield "hypervolume", f"{front.hypervolume:.6g}, from {describe_reference(front)}"


def _best(report: StudyReport, evaluation: Evaluation) -> BestNetwork:
    facts = [(report.study.objective, f"{evaluation.value:.6g}")]
    for name in ("params", "flops", "latency_ms", "peak_memory_bytes"):
        if evaluation.metrics.get(name) is not None:
            facts.append((quantity(name), short(evaluation.metrics[name])))

    for name, value in sorted(final_metrics(evaluation).items()):
        if name != report.study.objective:
            facts.append((name, f"{value:.6g}"))

    network = report.networks.get(evaluation.architecture.key, evaluation.architecture)
    if network is not evaluation.architecture:
        facts.append(("network", network.key))

    facts.append(("layers", str(len(network.layers))))
    if evaluation.epochs is not None:
        facts.append(("epochs", f"{evaluation.epochs:g}"))

    if evaluation.seconds:
        facts.append(("training time", _duration(evaluation.seconds)))

    named = report.configurations.get(evaluation.number or 0, {})
    facts += [(name, setting_text(value)) for name, value in named.items()]
    facts += [(name, str(value)) for name, value in sorted(evaluation.hyperparameters.items())]
    try:
        labels = decision_labels(network, named)
        picture = Markup(diagram.svg(network, theme="page", labels=labels))
        missing = ""
    except ArchiveError as error:
        # A network of a space that this installation lacks.
        picture = Markup("")
        missing = str(error)

    return BestNetwork(evaluation.number or 0, evaluation.architecture.key, facts, picture, missing)


def _make_table(report: StudyReport) -> ResultTable:
    """Return the table of the shown results."""
    results = report.results
    numbers = _numbers(report)
    settings = [report.configurations.get(int(results.number[row]), {}) for row in report.shown]
    named = any(settings)
    rows = []
    for row, configuration in zip(report.shown, short_settings(settings), strict=True):
        cells = [
            Cell(str(results.number[row]), str(results.number[row])),
            _number(float(results.value[row]), "{:.6g}"),
        ]
        for _, values in numbers:
            cells.append(_number(values[row]))

        if named:
            cells.append(Cell(configuration))

        source = results.columns["answered_from"][row]
        notes = []
        if results.partial[row]:
            notes.append("partial")
        elif source:
            notes.append(f"known from {source}")

        if not results.feasible[row]:
            notes.append("violates a constraint")

        cells += [
            Cell(kind_of(results.columns["agent"][row] or "")),
            Cell(results.columns["architecture"][row][:8]),
            Cell(", ".join(notes)),
        ]
        rows.append(cells)

    numeric = ["number", report.study.objective]
    for heading, _ in numbers:
        numeric.append(heading)

    others = ["agent", "network", "note"]
    if named:
        others.insert(0, "configuration")

    return ResultTable([*numeric, *others], len(numeric), rows)


def _numbers(report: StudyReport) -> list[tuple[str, Sequence[Any]]]:
    """Return heading and values of the columns of numbers between the objective and the agent."""
    results = report.results
    columns = results.columns
    further = further_objectives(results)
    taken = {report.study.objective, *further}
    numbers: list[tuple[str, Sequence[Any]]] = []
    for name in further:
        numbers.append((name, columns[METRIC + name]))

    own_unit = own_unit_metric(report.study)
    if own_unit is not None and own_unit not in taken and METRIC + own_unit in columns:
        numbers.append((own_unit, columns[METRIC + own_unit]))

    trainings = [
        ("epochs", "training epochs", columns["epochs"]),
        ("seconds", "training seconds", columns["seconds"]),
    ]
    numbers += _with_values(trainings, taken)
    for name in costs_on_record(results):
        numbers.append((name, _first_known(columns_of(name, results))))

    # Agents maximise: their predictions have the opposite sign of a minimised objective.
    better = sign(report.study.direction)
    means = [None if value is None else better * value for value in columns["mean"]]
    if has_values(means):
        predicted = [
            ("predicted", "predicted mean", means),
            ("std", "predicted std", columns["std"]),
        ]
        numbers += _with_values(predicted, taken)

    return numbers


def _first_known(columns: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the first entry of each row that is not None; None without one."""
    values = []
    for row in zip(*columns, strict=True):
        values.append(next((value for value in row if value is not None), None))

    return values


def _with_values(
    columns: Sequence[tuple[str, str, Sequence[Any]]], taken: Collection[str]
) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield the columns that have a value; a name that an objective has becomes the longer name."""
    for name, longer, values in columns:
        if has_values(values):
            yield longer if name in taken else name, values


def _number(value: Any, form: str = "") -> Cell:
    if not isinstance(value, int | float) or not math.isfinite(value):
        return Cell("")

    text = form.format(value) if form else short(value)
    return Cell(text, f"{value:.7g}")


def _environment_facts(report: StudyReport) -> Iterator[tuple[str, str]]:
    """Yield each property of the environment with its values, and counts if it has several."""
    for name, values in report.environment.items():
        shown = []
        for value, count in values[:MOST_VALUES]:
            if len(values) > 1:
                value = f"{value} ({count:,})"

            shown.append(value)

        if len(values) > MOST_VALUES:
            shown.append(f"and {len(values) - MOST_VALUES:,} more")

        yield name, ", ".join(shown)


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.3g} s"

    if seconds < 7200:
        return f"{seconds / 60:.3g} min"

    return f"{seconds / 3600:,.1f} h"


def _time(milliseconds: int | None) -> str:
    # Beyond it, no calendar has the day.
    if milliseconds is None or not 0 <= milliseconds < 253_402_214_400_000:
        return "unknown"

    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
