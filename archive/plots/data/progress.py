"""Best value so far, against evaluations or the cost of their trainings.

| symbol  | meaning                                                           | shape |
|---------|-------------------------------------------------------------------|-------|
| x_t     | evaluations, seconds or epochs that the first t results took      | (n,)  |
| best_t  | best comparable value among the first t results                   | (n,)  |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from archive.errors import UsageError
from archive.objectives import sign
from archive.plots.data.results import (
    Floats,
    Integers,
    RecordedResults,
    check_feasible,
    count_undrawable,
    describe_undrawable,
    mask_undrawable,
    read,
    sum_left_out,
)
from archive.store.records import Direction

if TYPE_CHECKING:
    from archive.api import Archive

Against = Literal["evaluations", "seconds", "epochs"]
"""Quantity on the horizontal axis: results, or the summed cost of their trainings."""


@dataclass(frozen=True, eq=False)
class BestSoFar:
    """Progress of one study.

    Attributes:
        study: Name of the study.
        objective: Name of the metric.
        direction: Whether larger or smaller values are better.
        against: Quantity of `x`.
        number: (n,) numbers of the proposals, in the order of their results.
        x: (n,) float64, results so far, or seconds or epochs of training so far. A reused result
            took none.
        value: (n,) float64, the value of each result; NaN where it is not comparable
            (`RecordedResults.comparable`).
        best: (n,) float64, the best value so far; NaN before the first comparable one.
        left_out: Number of values and costs that cannot be drawn (`archive.plots.data.results`),
            and count as unknown.
    """

    study: str
    objective: str
    direction: Direction
    against: Against
    number: Integers
    x: Floats
    value: Floats
    best: Floats
    left_out: int

    @property
    def steps(self) -> tuple[Floats, Floats]:
        """Corners (s,), (s,) of the step line of `best`: the improvements, then the last result.

        Empty where no result is comparable.
        """
        rows = self.improvements
        if len(rows):
            rows = np.append(rows, len(self.best) - 1)

        return self.x[rows], self.best[rows]

    @property
    def improvements(self) -> Integers:
        """Positions at which the best value changed, the first comparable result included."""
        before = np.concatenate([[np.nan], self.best[:-1]])
        return np.flatnonzero(~np.isnan(self.best) & (np.isnan(before) | (self.best != before)))


def best_so_far(
    archive: Archive, studies: str | Sequence[str], against: Against = "evaluations"
) -> list[BestSoFar]:
    """Return the progress of studies of one task, protocol and objective.

    Raises:
        UnknownNameError: There is no study of this name.
        UsageError: The quantity is unknown, the studies are not comparable, or one has no record of
            the quantity.
    """
    if against not in get_args(Against):
        raise UsageError(f"against must be one of {', '.join(get_args(Against))}, got {against!r}")

    columns = [] if against == "evaluations" else [against, "answered_from"]
    recorded = read(archive, studies, columns)
    check_feasible(recorded)
    return [progress(results, against) for results in recorded]


@dataclass(frozen=True, eq=False)
class ProgressBand:
    """Progress of several studies together, for instance of one agent with several seeds.

    Attributes:
        name: Name of the group.
        studies: Number of studies.
        x: (m,) float64, as in `BestSoFar`, as far as the shortest study goes.
        median: (m,) float64, median of the best values so far.
        low: (m,) float64, their lower quartile.
        high: (m,) float64, their upper quartile.
        left_out: Number of values and costs that cannot be drawn.
    """

    name: str
    studies: int
    x: Floats
    median: Floats
    low: Floats
    high: Floats
    left_out: int


def band(name: str, group: Sequence[BestSoFar]) -> ProgressBand:
    """Return median and quartiles of the progress of studies, at each x where one of them improves.

    They begin where all studies have a value and end where the first study ends.

    Raises:
        UsageError: A study has no comparable result, or one ends before another one has a value.
    """
    lines = [study.steps for study in group]
    for member, (x, _) in zip(group, lines, strict=True):
        if not len(x):
            beyond = describe_undrawable(member.left_out, "; ")
            raise UsageError(
                f"the study {member.study!r} has no evaluation with a value yet{beyond}"
            )

    axes, heights = zip(*lines, strict=True)
    begin = max(x[0] for x in axes)
    end = min(x[-1] for x in axes)
    if begin > end:
        raise UsageError(
            f"the studies of {name!r} have no common {group[0].against}: plot them apart"
        )

    common = np.unique(np.concatenate(axes))
    common = common[(common >= begin) & (common <= end)]
    best = np.empty((len(group), len(common)))
    for row, x, y in zip(best, axes, heights, strict=True):
        row[:] = y[np.searchsorted(x, common, side="right") - 1]

    low, median, high = np.quantile(best, [0.25, 0.5, 0.75], axis=0)
    return ProgressBand(name, len(group), common, median, low, high, sum_left_out(group))


def progress(results: RecordedResults, against: Against = "evaluations") -> BestSoFar:
    """Return the progress of one study; against a cost, with its column and `answered_from`.

    Raises:
        UsageError: No result has the cost.
    """
    recorded = np.where(results.comparable, results.value, np.nan)
    value = mask_undrawable(recorded)
    better = sign(results.study.direction)
    # -inf loses against every value, and stands for "none yet".
    running = (
        np.maximum.accumulate(np.where(np.isnan(value), -np.inf, better * value))
        if len(value)
        else value
    )
    best = np.where(np.isneginf(running), np.nan, better * running)
    study = results.study
    cost = None if against == "evaluations" else _cost(results, against)
    x = (
        np.arange(1.0, len(results) + 1)
        if cost is None
        else np.cumsum(np.nan_to_num(mask_undrawable(cost)))
    )
    left_out = count_undrawable(recorded, *([] if cost is None else [cost]))
    return BestSoFar(
        study.name,
        study.objective,
        study.direction,
        against,
        results.number,
        x,
        value,
        best,
        left_out,
    )


def _cost(results: RecordedResults, against: Against) -> Floats:
    """Return the cost of each training; NaN for a reused result, and where it is unknown."""
    cost = results.numbers(against)
    for row, source in enumerate(results.columns["answered_from"]):
        if source is not None:
            cost[row] = np.nan

    if len(results) and np.isnan(mask_undrawable(cost)).all():
        raise UsageError(
            f"no training of the study {results.study.name!r} has a record of its {against}: "
            f"plot against evaluations{describe_undrawable(count_undrawable(cost), '; ')}"
        )

    return cost
