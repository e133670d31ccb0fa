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
from archive.architecture import diagram
from archive.architecture.choice_operations import decision_labels
from archive.drawing import Sheet
from archive.drawing.palette import page_css
from archive.errors import ArchiveError
from archive.objectives import sign
from archive.plots.figures.style import printable, quantity
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
from archive.report.page.findings import answer, describe_estimate, method, question
from archive.store.metric_names import own_unit_metric, units_of
from archive.store.properties import METRIC
from archive.store.records import Evaluation, State
from archive.store.studies.creation import agent_names, kind_of
from archive.store.studies.studies import UNBOUNDED, describe_budget
from archive.values import is_duration, rounded, setting_text, short_settings

OTHERS = 4
"""Most networks with pictures beside the answer: a full row of the page."""
LARGE = Sheet(620, 640)
SMALL = Sheet(280, 300)
"""Space of the picture of the answer, and of the others: legible, and scrolled to where it is less."""


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
    style = page_css() + _text("report.css") + drawing.stylesheet()
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
    shown = None if report.chosen is None else report.chosen.architecture.key
    others = [other for other in report.best if other.architecture.key != shown]
    return environment.get_template("report.html").render(
        study=report.study,
        version=__version__,
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        policy=f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'",
        style=Markup(style),
        script=Markup(script),
        question=question(report),
        method=method(report),
        headline=_headline(report),
        answer=list(answer(report)),
        chosen=None if report.chosen is None else _best(report, report.chosen, brief=False),
        others=[_best(report, other, brief=True) for other in others[:OTHERS]],
        plots=[(plot, Markup(plot.chart)) for plot in plots if plot.chart],
        missing=[plot for plot in plots if not plot.chart],
        facts=list(_facts(report)),
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


def _headline(report: StudyReport) -> tuple[str, str]:
    """Return the value of the answer and its interval; empty texts where there is none."""
    better = sign(report.study.direction)
    if report.pareto is not None:
        return f"{len(report.pareto.proposals):,}", "networks in the Pareto set"

    if report.recommended is not None:
        text = describe_estimate(report.recommended, better, report.noise)
        value, _, interval = text.partition(" (")
        words = interval.removesuffix(")").replace("95 %:", "95 % interval")
        return value, words or "measured"

    if report.chosen is None:
        return "", ""

    return rounded(report.chosen.value, report.noise), "measured"


def _facts(report: StudyReport) -> Iterator[tuple[str, str]]:
    """Yield the settings of the study, and what became of its proposals."""
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
        yield (
            "hypervolume",
            f"{report.pareto.hypervolume:.4g}, from {describe_reference(report.pareto)}",
        )

    if report.noise is not None:
        yield "noise of an evaluation", f"{report.noise:.2g}"

    yield "task", f"{study.task}, protocol {study.protocol}"
    yield "space", study.space
    if agents:
        yield "agent", ", ".join(agents)

    counts = []
    for state in State:
        if count := report.counts.get(state):
            counts.append(f"{count:,} {state.value.lower()}")

    budget = f"{study.budget:,}" if study.budget < UNBOUNDED else describe_budget(study.budget)
    yield "proposals", f"{', '.join(counts) or 'none'}; budget {budget}"
    seconds = [*filter(is_duration, results.columns["seconds"])]
    if seconds:
        yield "training time", _duration(sum(seconds))

    reused = len(results) - results.columns["answered_from"].count(None)
    if reused:
        yield "known before", f"{reused:,} results were reused without a training"

    if report.sources:
        yield "warm-started from", ", ".join(report.sources)

    yield "created", _time(study.created)


def _best(report: StudyReport, evaluation: Evaluation, *, brief: bool) -> BestNetwork:
    network = report.networks.get(evaluation.architecture.key, evaluation.architecture)
    named = report.configurations.get(evaluation.number or 0, {})
    facts = list(_values(report, evaluation))
    if not brief:
        facts += _costs(report, evaluation)
        if network is not evaluation.architecture:
            facts.append(("network", network.key))

        facts.append(("layers", str(len(network.layers))))

    facts += [(name, setting_text(value)) for name, value in named.items()]
    facts += [(name, str(value)) for name, value in sorted(evaluation.hyperparameters.items())]
    try:
        labels = decision_labels(network, named)
        sheet = SMALL if brief else LARGE
        picture = Markup(diagram.svg(network, theme="page", labels=labels, sheet=sheet))
        missing = ""
    except ArchiveError as error:
        # A network of a space that this installation lacks.
        picture = Markup("")
        missing = str(error)

    return BestNetwork(evaluation.number or 0, evaluation.architecture.key, facts, picture, missing)


def _values(report: StudyReport, evaluation: Evaluation) -> Iterator[tuple[str, str]]:
    """Yield the values of a network in the objective, its own unit and the tests, and its size."""
    yield report.study.objective, rounded(evaluation.value, report.noise)
    own_unit = own_unit_metric(report.study)
    for name, value in sorted(evaluation.metrics.items()):
        if name != report.study.objective and (name == own_unit or name.startswith("test_")):
            yield name, rounded(value, None if name == own_unit else report.noise)

    if evaluation.metrics.get("params") is not None:
        yield quantity("params"), short(evaluation.metrics["params"])


def _costs(report: StudyReport, evaluation: Evaluation) -> Iterator[tuple[str, str]]:
    """Yield the other costs and metrics of a network, and its training."""
    for name in ("flops", "latency_ms", "peak_memory_bytes"):
        if evaluation.metrics.get(name) is not None:
            yield quantity(name), short(evaluation.metrics[name])

    shown = (report.study.objective, own_unit_metric(report.study))
    for name, value in sorted(final_metrics(evaluation).items()):
        if name not in shown and not name.startswith("test_"):
            yield name, rounded(value)

    if evaluation.epochs is not None:
        yield "epochs", f"{evaluation.epochs:g}"

    if evaluation.seconds:
        yield "training time", _duration(evaluation.seconds)


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
            _value(float(results.value[row]), report.noise),
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


def _number(value: Any) -> Cell:
    if not isinstance(value, int | float) or not math.isfinite(value):
        return Cell("")

    return Cell(short(value), f"{value:.7g}")


def _value(value: float, error: float | None) -> Cell:
    return Cell(rounded(value, error), f"{value:.7g}") if math.isfinite(value) else Cell("")


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
