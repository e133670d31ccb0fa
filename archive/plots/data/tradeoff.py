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
    floats,
    mask_undrawable,
    read,
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
    values = [np.where(result.comparable, result.value, np.nan) for result in results]
    usable = [
        np.isfinite(mask_undrawable(value)) & np.isfinite(mask_undrawable(cost))
        for value, cost in zip(values, costs, strict=True)
    ]
    left_out = count_undrawable(*values, *costs)
    indices_of = [np.flatnonzero(mask) for mask in usable]
    counts = [len(indices) for indices in indices_of]
    if not sum(counts):
        check_feasible(results)
        raise UsageError(
            f"no result of {_list(results)} has the cost {name!r}; archive query run "
            "network-costs --param "
            f"study=STUDY shows the costs on record{describe_undrawable(left_out, '; ')}"
        )

    first = results[0].study
    value = np.concatenate(
        [result.value[rows] for result, rows in zip(results, indices_of, strict=True)]
    )
    cost = np.concatenate([cost[rows] for cost, rows in zip(costs, indices_of, strict=True)])
    architectures: list[str] = []
    for result, rows in zip(results, indices_of, strict=True):
        column = result.columns["architecture"]
        architectures += [column[row] for row in rows.tolist()]

    return ValueAndCost(
        tuple(result.study.name for result in results),
        first.objective,
        first.direction,
        name,
        np.repeat(np.arange(len(results)), counts),
        np.concatenate(
            [result.number[rows] for result, rows in zip(results, indices_of, strict=True)]
        ),
        tuple(architectures),
        value,
        cost,
        find_front(cost, sign(first.direction) * value),
        sum(map(len, usable)) - sum(counts),
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
    reused = [source is not None for source in results.columns["answered_from"]]
    for name in names:
        column = floats([value if is_number(value) else None for value in results.columns[name]])
        if name == "seconds":
            column[reused] = np.nan

        merged = np.where(np.isnan(merged), column, merged)

    return merged


def fronts(data: ValueAndCost) -> list[Integers]:
    """Return the front of each study: positions of its results, from the cheapest to the best."""
    better = sign(data.direction)
    rows = [np.flatnonzero(data.study == index) for index in range(len(data.studies))]
    return [row[find_front(data.cost[row], better * data.value[row])] for row in rows]


def on_front(data: ValueAndCost) -> Booleans:
    """Return (n,) whether each result is on the front."""
    mask = np.zeros(len(data.value), np.bool_)
    mask[data.front] = True
    return mask


def _list(results: Sequence[RecordedResults]) -> str:
    return ", ".join(repr(result.study.name) for result in results)
