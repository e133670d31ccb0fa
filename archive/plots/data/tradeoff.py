"""Value against a cost of the network or of its training, with the Pareto front."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from archive.errors import UsageError
from archive.objectives import COST_METRICS, sign
from archive.objectives.pareto import find_front
from archive.plots.data.results import (
    Booleans,
    Floats,
    Integers,
    RecordedResults,
    check_feasible,
    count_undrawable,
    describe_undrawable,
    mask_undrawable,
    pick,
    quote_studies,
    read,
    study_names,
)
from archive.store.properties import METRIC
from archive.store.records import Direction
from archive.store.studies.rows import NETWORK
from archive.values import is_number

if TYPE_CHECKING:
    from archive.api import Archive

COSTS = (*COST_METRICS, "seconds", "epochs", "layers", "depth", "edges", "mass")
"""Costs that an archive may have without further ado; every other metric is accepted as well."""

_OF_RESULT = ("seconds", "epochs")


@dataclass(frozen=True, eq=False)
class ValueAndCost:
    """Results of all studies of a plot with a value and a cost.

    Attributes:
        studies: Names of the studies.
        objective: Name of the metric.
        direction: Whether larger or smaller values are better.
        cost_name: Name of the cost.
        study: (n,) position in `studies`.
        number: (n,) numbers of the proposals.
        architecture: n keys.
        value: (n,) float64, in the task's own unit.
        cost: (n,) float64.
        front: (k,) positions of the Pareto front of all studies together, from the cheapest to the
            best.
        missing: Number of results without a comparable value or without the cost.
        left_out: Number of values and costs that cannot be drawn (`archive.plots.data.results`),
            and count as missing.
    """

    studies: tuple[str, ...]
    objective: str
    direction: Direction
    cost_name: str
    study: Integers
    number: Integers
    architecture: tuple[str, ...]
    value: Floats
    cost: Floats
    front: Integers
    missing: int
    left_out: int


def value_and_cost(
    archive: Archive, studies: str | Sequence[str], cost: str = "params"
) -> ValueAndCost:
    """Return values and costs of the results of studies.

    The cost is a property of the network (`params`), a metric of the result (`latency_ms`), or what
    its training took (`seconds`, `epochs`), as in the saved query `frontier`. A result that reuses
    another one took no training, and has no `seconds`. Smaller costs are better.

    Raises:
        UnknownNameError: There is no study of this name.
        UsageError: The studies are not comparable, or no result has a number as this cost.
    """
    names = cost_columns(cost)
    read_results = read(archive, studies, ["architecture", "answered_from", *names])
    return tradeoff(read_results, [cost_of(results, names) for results in read_results], cost)


def tradeoff(
    results: Sequence[RecordedResults], costs: Sequence[Floats], name: str
) -> ValueAndCost:
    """Return values and costs of results that were read before.

    Args:
        results: Results of s comparable studies, with the column `architecture`.
        costs: Cost of each result of each study; NaN where it is unknown.
        name: Name of the cost.

    Raises:
        UsageError: No result has a value and a cost.
    """
    left_out = 0
    missing = 0
    counts: list[int] = []
    numbers: list[Integers] = []
    values: list[Floats] = []
    known_costs: list[Floats] = []
    architectures: list[str] = []
    for result, cost in zip(results, costs, strict=True):
        value = np.where(result.comparable, result.value, np.nan)
        left_out += count_undrawable(value, cost)
        usable = np.isfinite(mask_undrawable(value)) & np.isfinite(mask_undrawable(cost))
        rows = np.flatnonzero(usable)
        counts.append(len(rows))
        missing += len(usable) - len(rows)
        numbers.append(result.number[rows])
        values.append(result.value[rows])
        known_costs.append(cost[rows])
        architectures += pick(result.columns["architecture"], rows.tolist())

    if not architectures:
        check_feasible(results)
        raise UsageError(
            f"no result of {quote_studies(results)} has the cost {name!r}; archive query run "
            f"network-costs --param study=STUDY shows the costs on record"
            f"{describe_undrawable(left_out, '; ')}"
        )

    first = results[0].study
    value = np.concatenate(values)
    cost = np.concatenate(known_costs)
    return ValueAndCost(
        study_names(results),
        first.objective,
        first.direction,
        name,
        np.repeat(np.arange(len(results)), counts),
        np.concatenate(numbers),
        tuple(architectures),
        value,
        cost,
        find_front(cost, sign(first.direction) * value),
        missing,
        left_out,
    )


def cost_columns(cost: str) -> list[str]:
    """Return the columns that may have a cost, in the order of precedence."""
    return [NETWORK + cost, METRIC + cost, *([cost] if cost in _OF_RESULT else [])]


def cost_of(results: RecordedResults, names: Sequence[str]) -> Floats:
    """Return the (n,) costs of results from these columns; NaN where none has a number.

    The results have the column `answered_from`: one that reuses another result took no seconds of
    training.
    """
    merged = np.full(len(results), np.nan)
    sources = results.columns["answered_from"]
    for name in names:
        column = np.full(len(results), np.nan)
        for row, value in enumerate(results.columns[name]):
            reused = name == "seconds" and sources[row] is not None
            if is_number(value) and not reused:
                column[row] = value

        merged = np.where(np.isnan(merged), column, merged)

    return merged


def fronts(data: ValueAndCost) -> list[Integers]:
    """Return the front of each study: positions of its results, from the cheapest to the best."""
    better = sign(data.direction)
    members = []
    for index in range(len(data.studies)):
        rows = np.flatnonzero(data.study == index)
        members.append(rows[find_front(data.cost[rows], better * data.value[rows])])

    return members


def on_front(data: ValueAndCost) -> Booleans:
    """Return (n,) whether each result is on the front."""
    mask = np.zeros(len(data.value), np.bool_)
    mask[data.front] = True
    return mask
