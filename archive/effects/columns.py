"""Columns of comparable values: one of each network for a task, protocol and pretraining."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from archive.effects.estimate import Floats
from archive.effects.recipes import Recipe, read_recipe
from archive.queries.results_by_task import TaskResults

COSTS = ("params", "flops")
"""Properties of networks that every report has."""

_RATIOS = frozenset([*COSTS, "activations", "samples_per_second", "seconds"])
_RATIO_ENDINGS = ("_ms", "_seconds", "_bytes")


def is_ratio(metric: str) -> bool:
    """Return whether a metric is compared by ratio: an amount of time, memory or work."""
    return metric in _RATIOS or metric.endswith(_RATIO_ENDINGS)


@dataclass(frozen=True, eq=False)
class Column:
    """Comparable values of n networks.

    Attributes:
        task: Name of the task.
        protocol: Name of the protocol.
        recipe: The recipe that the protocol names, with the pretraining.
        metric: Name of the metric.
        values: (n,) mean of each network, or of its logarithm; NaN without a result.
    """

    task: str
    protocol: str
    recipe: Recipe
    metric: str
    values: Floats

    @property
    def under(self) -> str:
        """Device of a speed, or objective that is not the task's own; empty for none."""
        return self.recipe.source if is_ratio(self.metric) else self.recipe.objective


def columns_of(
    results: Iterable[TaskResults], metrics: Mapping[str, str], places: Mapping[str, int]
) -> list[Column]:
    """Return the columns of results. A ratio has no value at zero or below.

    Args:
        results: Results by task and protocol.
        metrics: Name of the metric of each task.
        places: Position of each network by its key; other networks are left out.
    """
    columns = []
    for of_task in results:
        metric = metrics[of_task.task]
        ratio = is_ratio(metric)
        entries: dict[str, list[tuple[int, float]]] = {}
        for row in of_task.rows:
            if row.architecture not in places or not math.isfinite(row.value):
                continue

            if row.value > 0.0 or not ratio:
                entry = (places[row.architecture], row.value)
                entries.setdefault(row.pretraining or "", []).append(entry)

        for pretraining, rows in entries.items():
            recipe = read_recipe(of_task.protocol, pretraining)
            values = _means(rows, len(places), logarithmic=ratio)
            columns.append(Column(of_task.task, of_task.protocol, recipe, metric, values))

    return columns


def families_of(results: Iterable[TaskResults], places: Mapping[str, int]) -> list[str]:
    """Return the family of each network; empty where its results name none."""
    families = [""] * len(places)
    for of_task in results:
        for row in of_task.rows:
            if row.family and row.architecture in places:
                families[places[row.architecture]] = row.family

    return families


def _means(rows: Iterable[tuple[int, float]], count: int, *, logarithmic: bool) -> Floats:
    positions, values = np.array(list(rows), np.float64).T
    if logarithmic:
        values = np.log(values)

    networks = positions.astype(np.int64)
    sizes = np.bincount(networks, minlength=count)
    means = np.full(count, np.nan)
    np.divide(np.bincount(networks, values, minlength=count), sizes, out=means, where=sizes > 0)
    return means
