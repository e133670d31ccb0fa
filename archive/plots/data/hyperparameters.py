"""Parallel coordinates of hyperparameters, decisions or sizes of the networks, and the value.

| symbol | meaning                                                           | shape  |
|--------|-------------------------------------------------------------------|--------|
| p_ij   | place of result i on axis j, from 0 at the bottom to 1 at the top | (n, k) |

The place is linear in the number, or in its logarithm where all numbers are positive and span a
factor of 100. Texts and truth values have evenly spaced places, in their order; options of a
decision in the order of the space.

An axis has one name: a decision that is called as a hyperparameter is `NAME (decision)`, a size
that is called as either of them `NAME (size)`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from archive import spaces
from archive.errors import ArchiveError, UnknownNameError, UsageError
from archive.plots.data.curves import evenly, rank_rows
from archive.plots.data.results import (
    LARGEST,
    Floats,
    Integers,
    RecordedResults,
    count_undrawable,
    describe_undrawable,
    mask_undrawable,
    pick,
    read,
    sum_left_out,
)
from archive.spaces.choices import Choices
from archive.spaces.parameters import Parameters
from archive.store.properties import from_json
from archive.store.records import Direction, Study
from archive.store.studies.configurations import configuration_columns, read_configurations
from archive.store.studies.rows import NETWORK
from archive.values import is_number

if TYPE_CHECKING:
    from archive.api import Archive


Scaling = Literal["linear", "logarithmic", "categories"]
AxisKind = Literal["hyperparameter", "decision", "size", "objective"]

MOST = 500
"""Most results that are drawn: beyond, lines cover each other."""
LABELS = 12
"""Most words of an axis that are labelled."""
SPAN = 100.0
"""Ratio of the largest to the smallest number from which an axis is logarithmic."""

_MOST_OPTIONS = 1000
"""Most values of a decision whose order is looked up."""

_ELEMENT = re.compile(r"\[\d+\]$")
_OF_NETWORKS = ("layers", "depth", "edges", "mass")
_ALIKE: Mapping[AxisKind, str] = {
    "hyperparameter": "hyperparameters",
    "decision": "decisions",
    "size": f"sizes of networks ({', '.join(_OF_NETWORKS)})",
}


@dataclass(frozen=True, eq=False)
class CoordinateAxis:
    """One axis.

    Attributes:
        name: Name of the hyperparameter, decision, size or objective.
        scaling: How numbers become places.
        places: (n,) float64 in [0, 1]; NaN where a result has no such entry, or it cannot be drawn.
        ticks: Places with their labels.
        left_out: Number of entries that cannot be drawn.
        kind: What the name belongs to.
    """

    name: str
    scaling: Scaling
    places: Floats
    ticks: tuple[tuple[float, str], ...]
    left_out: int = 0
    kind: AxisKind = "hyperparameter"


@dataclass(frozen=True, eq=False)
class AxisColumn:
    """A column that an axis may show.

    Attributes:
        kind: What the column holds.
        values: (n,) numbers, texts or truth values; None where a result has no such entry.
        order: Options of a decision in the order of the space; empty for any other column.
    """

    kind: AxisKind
    values: Sequence[Any]
    order: Sequence[str] = ()

    @property
    def differs(self) -> bool:
        """Whether two results have different entries."""
        return len(set(map(str, self.values))) > 1


@dataclass(frozen=True, eq=False)
class ParallelCoordinates:
    """Chosen results of one study.

    Attributes:
        study: Name of the study.
        objective: Name of the metric.
        direction: Whether larger or smaller values are better.
        number: (n,) numbers of the proposals, the worst first, so that the best are drawn on top.
        value: (n,) float64.
        axes: The axes; the last is the objective.
        results: Number of comparable results, of which n are chosen: the best tenth of n, and
            others in even steps of the ranking.
        known: Names of all hyperparameters, decisions and sizes that could be axes.
        left_out: Number of hyperparameters and values that cannot be drawn
            (`archive.plots.data.results`).
    """

    study: str
    objective: str
    direction: Direction
    number: Integers
    value: Floats
    axes: tuple[CoordinateAxis, ...]
    results: int
    known: tuple[str, ...]
    left_out: int


def parallel_coordinates(
    archive: Archive, study: str, names: Sequence[str] = (), *, most: int = MOST
) -> ParallelCoordinates:
    """Return hyperparameters, decisions or sizes of the results of a study beside their values.

    Args:
        archive: The archive.
        study: Name of the study.
        names: Names of hyperparameters, of named decisions of the space, and of `layers`, `depth`, `edges`, `mass` of the networks; empty for all hyperparameters and decisions
            that differ between results, or for the sizes where none does. A list of numbers, one
            for each layer say, is the axis `NAME (mean)`; `NAME[0]` is its first element.
        most: Most results.

    Raises:
        UnknownNameError: There is no study, or nothing of this name that could be an axis.
        UsageError: The study has no value yet, or nothing differs between its results.
    """
    networks = [NETWORK + name for name in _OF_NETWORKS]
    (results,) = read(archive, study, ["hyperparameters", *networks])
    rows = chosen(results, most)
    left_out = count_undrawable(results.value[results.comparable])
    if not len(rows):
        beyond = describe_undrawable(left_out, "; ")
        raise UsageError(f"the study {study!r} has no evaluation with a value yet{beyond}")

    settings = list(map(from_json, pick(results.columns["hyperparameters"], rows)))
    configurations = read_configurations(archive.connection, results.study)
    numbers = results.number[rows].tolist()
    decisions = _decision_columns(
        results.study, [configurations.get(number, {}) for number in numbers]
    )
    sizes = {}
    for name in _OF_NETWORKS:
        sizes[name] = AxisColumn("size", pick(results.columns[NETWORK + name], rows))

    columns = _together(hyperparameter_columns(settings), decisions, sizes)
    value = results.value[rows]
    axes = []
    for name, column in _select(study, columns, names).items():
        drawn = axis(name, column.values, column.order)
        axes.append(replace(drawn, kind=column.kind))

    axes.append(replace(axis(results.study.objective, value.tolist()), kind="objective"))
    return ParallelCoordinates(
        study,
        results.study.objective,
        results.study.direction,
        results.number[rows],
        value,
        tuple(axes),
        int(results.comparable.sum()),
        tuple(columns),
        left_out + sum_left_out(axes),
    )


def chosen(results: RecordedResults, most: int) -> Integers:
    """Return the positions of at most so many results, the worst first."""
    ranking = rank_rows(results)
    ranking = ranking[np.isfinite(mask_undrawable(results.value[ranking]))]
    if len(ranking) > most:
        top = most // 10
        ranking = np.concatenate(
            [ranking[:top], ranking[top:][evenly(len(ranking) - top, most - top)]]
        )

    return ranking[::-1]


def axis(name: str, column: Sequence[Any], order: Sequence[str] = ()) -> CoordinateAxis:
    """Return the axis of a column of numbers, texts or truth values; None stands for no entry.

    Args:
        name: Name of the axis.
        column: (n,) entries.
        order: All texts that the column may have, in the order of their places; empty for those
            that it has, sorted.
    """
    present = [value for value in column if value is not None]
    places = np.full(len(column), np.nan)
    if not order and all(map(is_number, present)):
        for index, value in enumerate(column):
            if value is not None:
                places[index] = _clip(value)

        return _numbers(name, places)

    words = list(order) or sorted(set(map(str, present)))
    position = {word: index / max(1, len(words) - 1) for index, word in enumerate(words)}
    for index, value in enumerate(column):
        if value is not None:
            places[index] = position[str(value)]

    ticks = tuple((position[word], word) for word in pick(words, evenly(len(words), LABELS)))
    return CoordinateAxis(name, "categories", places, ticks)


def hyperparameter_columns(settings: Sequence[Mapping[str, Any]]) -> dict[str, AxisColumn]:
    """Return the hyperparameters of results as columns by name; None where a result lacks one."""
    rows = [dict(_entries(setting)) for setting in settings]
    names = sorted(set(chain.from_iterable(rows)))
    return {name: AxisColumn("hyperparameter", _column(rows, name)) for name in names}


def _column(rows: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    return [row.get(name) for row in rows]


def _together(*groups: Mapping[str, AxisColumn]) -> dict[str, AxisColumn]:
    """Return all columns under distinct names; the first of a name keeps it."""
    columns: dict[str, AxisColumn] = {}
    for group in groups:
        for name, column in group.items():
            free = name
            while free in columns:
                free = f"{free} ({column.kind})"

            columns[free] = column

    return columns


def _select(
    study: str, columns: Mapping[str, AxisColumn], names: Sequence[str]
) -> dict[str, AxisColumn]:
    """Return the columns of these names; without names, those that differ."""
    for name in names:
        if name not in columns:
            raise UnknownNameError("axis", name, columns)

    if names:
        return {name: columns[name] for name in dict.fromkeys(names)}

    settings = {}
    elements = {}
    sizes = {}
    for name, column in columns.items():
        if not column.differs:
            continue

        if column.kind == "size":
            sizes[name] = column
        elif column.kind == "hyperparameter" and _ELEMENT.search(name):
            elements[name] = column
        else:
            settings[name] = column

    if not settings and not elements and not sizes:
        kinds = dict.fromkeys(_ALIKE[column.kind] for column in columns.values())
        alike = " and ".join(kinds)
        raise UsageError(
            f"all drawn results of the study {study!r} have the same {alike}: no "
            "axis tells them apart"
        )

    # Two lists of one mean differ in their elements.
    return settings or elements or sizes


def _entries(settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the hyperparameters; of a list of numbers, its mean and its elements."""
    for name, value in settings.items():
        if isinstance(value, list) and value and all(map(is_number, value)):
            yield f"{name} (mean)", sum(map(_clip, value)) / len(value)
            for index, element in enumerate(value):
                yield f"{name}[{index}]", element
        else:
            yield name, value


def _numbers(name: str, recorded: Floats) -> CoordinateAxis:
    numbers = mask_undrawable(recorded)
    finite = numbers[np.isfinite(numbers)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    logarithmic = low > 0 and high / low >= SPAN
    scaled = np.log(numbers) if logarithmic else numbers
    ends = (math.log(low), math.log(high)) if logarithmic else (low, high)
    extent = ends[1] - ends[0]
    places = (scaled - ends[0]) / extent if extent else np.where(np.isfinite(numbers), 0.5, np.nan)
    labels = [] if extent else [(0.5, f"{low:.3g}")]
    for part in (0.0, 0.25, 0.5, 0.75, 1) if extent else ():
        labels.append((part, f"{_at(part, ends, logarithmic):.3g}"))

    scaling: Scaling = "logarithmic" if logarithmic else "linear"
    places = np.where(np.isfinite(places), places, np.nan)
    return CoordinateAxis(name, scaling, places, tuple(labels), count_undrawable(recorded))


def _at(part: float, ends: tuple[float, float], logarithmic: bool) -> float:
    scaled = ends[0] + part * (ends[1] - ends[0])
    return math.exp(scaled) if logarithmic else scaled


def _clip(number: float) -> float:
    """Return a number, or an infinite one in place of an integer that is too large for a float."""
    if abs(number) <= LARGEST or number != number:
        return number

    return math.inf if number > 0 else -math.inf


def _decision_columns(
    study: Study, configurations: Sequence[Mapping[str, Any]]
) -> dict[str, AxisColumn]:
    """Return the named decisions of results as columns; None where a result lacks one."""
    names = configuration_columns(configurations)
    orders = _options_of(study) if names else {}
    columns = {}
    for name in names:
        values = [configuration.get(name) for configuration in configurations]
        order = orders.get(name, [])
        # A space may have had other options.
        unknown = {str(value) for value in values if value is not None} - set(order)
        columns[name] = AxisColumn("decision", values, () if unknown else order)

    return columns


def _options_of(study: Study) -> dict[str, list[str]]:
    """Return the options of decisions that are no numbers, in the order of the space."""
    # A table of choices has the settings of its whole space.
    config = dict(study.space_config)
    config.pop("table", None)
    try:
        space = spaces.get(study.space, **config)
    except ArchiveError:
        return {}

    if isinstance(space, Choices):
        return {name: list(options) for name, options in space.options.items()}

    orders = {}
    if isinstance(space, Parameters):
        for parameter in space.parameters.parameters:
            values = parameter.domain.values() if parameter.domain.size <= _MOST_OPTIONS else ()
            if not all(map(is_number, values)):
                orders[parameter.name] = list(map(str, values))

    return orders
