"""Columns of a study's results as codes: parameters, decisions, hyperparameters.

| symbol | meaning                                                                       | shape  |
|--------|-------------------------------------------------------------------------------|--------|
| code   | place of a number or an ordered option in [0, 1], position of another option; | (n,)   |
|        | NaN where a parameter does not exist                                          |        |

A space of parameters has a column for each of them, another space for each of its decisions
(`archive.spaces.base.Space.decisions`). Recorded hyperparameters are further columns; their domain
is the range, or the options, of the results. Columns that do not differ are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from archive import spaces
from archive.architecture import compact
from archive.errors import ArchiveError, UnknownNameError, UsageError
from archive.parameters.domains import json_text
from archive.plots.anova.measures import MOST_LEVELS, CodeMeasure
from archive.plots.data.curves import evenly
from archive.plots.data.hyperparameters import (
    LABELS,
    AxisKind,
    Scaling,
    axis,
    hyperparameter_columns,
)
from archive.plots.data.results import (
    Booleans,
    Floats,
    Integers,
    RecordedResults,
    count_undrawable,
    describe_undrawable,
    mask_undrawable,
    read,
)
from archive.spaces.base import Space
from archive.spaces.decisions import ABSENT, Decisions
from archive.spaces.parameters import Parameters
from archive.store.properties import from_json
from archive.store.studies.configurations import read_configurations
from archive.values import is_number

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.parameters.leaves import Parameter
    from archive.store.records import Direction, Study

Ticks = tuple[tuple[float, str], ...]

LEAST = 10
"""Fewest results of an analysis."""


@dataclass(frozen=True, eq=False)
class SearchedColumn:
    """One column.

    Attributes:
        name: Name of the parameter, decision or hyperparameter.
        kind: What the name belongs to.
        codes: (n,) float64.
        measure: Distribution of the codes in the space.
        scaling: How values become codes.
        ticks: Places with their labels.
    """

    name: str
    kind: AxisKind
    codes: Floats
    measure: CodeMeasure
    scaling: Scaling
    ticks: Ticks

    @property
    def exists(self) -> Booleans:
        """(n,) whether the parameter exists in each result."""
        return ~np.isnan(self.codes)

    @property
    def differs(self) -> bool:
        """Whether two results have different codes."""
        codes = self.codes[self.exists]
        return len(codes) > 0 and bool((codes != codes[0]).any())

    def places(self, codes: Floats) -> Floats:
        """Return codes as places on an axis, from 0 to 1."""
        return codes / max(1, self.measure.options - 1) if self.measure.options else codes

    def at(self, rows: Integers | Booleans) -> SearchedColumn:
        """Return the column of some of the results."""
        return replace(self, codes=self.codes[rows])


@dataclass(frozen=True, eq=False)
class ColumnTable:
    """Results of one study with their columns.

    Attributes:
        study: Name of the study.
        objective: Name of the metric.
        direction: Whether larger or smaller values are better.
        number: (n,) numbers of the proposals.
        value: (n,) float64, finite.
        columns: The columns that differ.
        left_out: Number of values that are too large to draw.
    """

    study: str
    objective: str
    direction: Direction
    number: Integers
    value: Floats
    columns: tuple[SearchedColumn, ...]
    left_out: int

    def column(self, name: str) -> int:
        """Return the position of a column.

        Raises:
            UnknownNameError: No column that differs has this name.
        """
        names = [column.name for column in self.columns]
        if name not in names:
            raise UnknownNameError("parameter that differs", name, names)

        return names.index(name)


def read_table(archive: Archive, study: str) -> ColumnTable:
    """Return the whole, finite results of a study with their columns.

    Results that do not meet the constraints of the study are included: their values are measured as
    well. Results at rungs count only in a study without a whole one.

    Args:
        archive: The archive.
        study: Name of the study.

    Raises:
        UnknownNameError: There is no study of this name.
        UsageError: There are too few results, or nothing with a name differs between them.
    """
    (results_read,) = read(archive, study, ["hyperparameters", "code"])
    values = mask_undrawable(results_read.value)
    finite = np.isfinite(values)
    whole = finite & ~results_read.partial
    results = results_read.at(np.flatnonzero(whole if whole.any() else finite))
    space = _space_of(results.study)
    columns = list(_space_columns(archive, results, space))
    rows = np.ones(len(results), np.bool_)
    if columns:
        # A result outside the space has no code at all.
        rows = np.any([column.exists for column in columns], axis=0)

    names = {column.name for column in columns}
    for column in _hyperparameter_columns(results):
        if column.name not in names:
            columns.append(column)

    left_out = count_undrawable(results_read.value)
    if rows.sum() < LEAST:
        outside = int((~rows).sum())
        beyond = f"; {outside} are no networks that its decisions describe" if outside else ""
        raise UsageError(
            f"the study {study!r} has {int(rows.sum())} whole results, and an analysis needs "
            f"{LEAST}{beyond}{describe_undrawable(left_out, '; ')}"
        )

    kept_columns = []
    for column in columns:
        part = column.at(rows)
        if part.differs:
            kept_columns.append(part)

    if not kept_columns:
        raise UsageError(_explain_nothing(results.study, space, bool(columns)))

    kept = results.at(np.flatnonzero(rows))
    return ColumnTable(
        study,
        results.study.objective,
        results.study.direction,
        kept.number,
        kept.value,
        tuple(kept_columns),
        left_out,
    )


def _explain_nothing(study: Study, space: Space | None, has_columns: bool) -> str:
    if has_columns:
        return f"all results of the study {study.name!r} have the same parameters"

    if space is None:
        return f"the space {study.space!r} of the study {study.name!r} is not known here"

    return (
        f"the networks of the space {study.space!r} have no decisions with names, and the results "
        f"of the study {study.name!r} no hyperparameters"
    )


def _space_of(study: Study) -> Space | None:
    """Return the space of a study; None where it is not known here."""
    # The networks of a table have the decisions of the whole space, wherever the table is.
    config = {name: value for name, value in study.space_config.items() if name != "table"}
    try:
        return spaces.get(study.space, **config)
    except ArchiveError:
        return None


def _space_columns(
    archive: Archive, results: RecordedResults, space: Space | None
) -> Iterator[SearchedColumn]:
    if isinstance(space, Parameters):
        configurations = read_configurations(archive.connection, results.study)
        named = [configurations.get(number, {}) for number in results.number.tolist()]
        yield from parameter_columns(space, named)
        return

    decisions = None if space is None else space.decisions()
    if decisions is not None:
        yield from _decision_columns(results, decisions)


def parameter_columns(
    space: Parameters, configurations: Sequence[Mapping[str, Any]]
) -> Iterator[SearchedColumn]:
    """Yield the columns of parameters; a configuration outside the space has no codes."""
    parameters = space.parameters
    codes = np.full((len(configurations), len(parameters)), np.nan)
    for row, configuration in zip(codes, configurations, strict=True):
        try:
            row[:] = parameters.encode([parameters.supply(configuration)])[0]
        except ArchiveError:
            continue

    for position, parameter in enumerate(parameters.parameters):
        if parameter.domain.size > 1:
            yield _parameter_column(parameter, codes[:, position])


def _parameter_column(parameter: Parameter, codes: Floats) -> SearchedColumn:
    domain = parameter.domain
    logarithmic = getattr(domain, "log", False)
    if not domain.ordered:
        labels = list(map(_word, domain.values()))
        return _option_column(parameter.name, codes, labels)

    levels = 0
    if domain.size <= MOST_LEVELS and not logarithmic:
        values = domain.values()
        # The last value of a domain in steps may be below the upper bound.
        if domain.encode(values[-1]) == 1.0:
            levels = len(values)

    marks: dict[str, float] = {}
    for tick in _tick_places(levels):
        value = domain.decode(tick)
        marks.setdefault(_word(value), float(domain.encode(value)))

    scaling: Scaling = "linear"
    if logarithmic:
        scaling = "logarithmic"
    elif not all(is_number(domain.decode(end)) for end in (0.0, 1.0)):
        scaling = "categories"

    ticks = tuple((tick, word) for word, tick in marks.items())
    return SearchedColumn(
        parameter.name, "decision", codes, CodeMeasure(levels=levels), scaling, ticks
    )


def _tick_places(levels: int) -> list[float]:
    """Return the places of ticks: of each level where there are few."""
    count = levels if 0 < levels <= LABELS // 2 else 5
    places: list[float] = np.linspace(0.0, 1.0, count).tolist()
    return places


def _option_column(
    name: str, codes: Floats, labels: Sequence[str], kind: AxisKind = "decision"
) -> SearchedColumn:
    """Return the column of options without an order."""
    last = max(1, len(labels) - 1)
    shown = evenly(len(labels), LABELS).tolist()
    ticks = tuple((position / last, labels[position]) for position in shown)
    measure = CodeMeasure(options=len(labels))
    return SearchedColumn(name, kind, codes, measure, "categories", ticks)


def _decision_columns(results: RecordedResults, decisions: Decisions) -> Iterator[SearchedColumn]:
    """Yield the columns of decisions; a network that they do not describe has no codes."""
    codes = np.full((len(results), len(decisions.decisions)), np.nan)
    for row, text in zip(codes, results.columns["code"], strict=True):
        if text is None:
            continue

        try:
            network = compact.decode("", results.study.space, "", text)
            vector = decisions.encode(network)
        except ArchiveError:
            continue

        if vector is not None:
            positions = np.array(vector, np.float64)
            row[:] = np.where(positions == ABSENT, np.nan, positions)

    for position, decision in enumerate(decisions.decisions):
        column = _option_column(decision.name, codes[:, position], decision.choices)
        if decision.ordered:
            last = max(1, len(decision.choices) - 1)
            measure = CodeMeasure(levels=len(decision.choices))
            column = replace(column, codes=column.codes / last, measure=measure)

        yield column


def _hyperparameter_columns(results: RecordedResults) -> Iterator[SearchedColumn]:
    """Yield the columns of recorded hyperparameters, with the domain of the results."""
    settings = list(map(from_json, results.columns["hyperparameters"]))
    for name, recorded in hyperparameter_columns(settings).items():
        drawn = axis(name, recorded.values)
        if drawn.scaling == "categories":
            words = sorted({str(value) for value in recorded.values if value is not None})
            codes = np.full(len(results), np.nan)
            for row, value in enumerate(recorded.values):
                if value is not None:
                    codes[row] = words.index(str(value))

            yield _option_column(name, codes, words, "hyperparameter")
        else:
            yield SearchedColumn(
                name, "hyperparameter", drawn.places, CodeMeasure(), drawn.scaling, drawn.ticks
            )


def _word(value: Any) -> str:
    if isinstance(value, str):
        return value

    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.3g}"

    return json_text(value)
