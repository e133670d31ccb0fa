"""Learning curves of chosen trainings: the best ones, others in even steps, and those that run.

A study of a hundred thousand trainings has gigabytes of curves. The choice is made from the values
alone, and the curves of the chosen trainings are read by their ids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from archive.errors import UnknownNameError, UsageError
from archive.plots.data.results import (
    Floats,
    Integers,
    RecordedResults,
    count_undrawable,
    floats,
    mask_undrawable,
    pick,
    read,
    sum_left_out,
)
from archive.queries.proposals import CURVES_IN_TRAINING, CURVES_OF_RESULTS
from archive.store.properties import CURVE, EPOCH, with_prefix
from archive.store.records import Direction

if TYPE_CHECKING:
    from archive.api import Archive

Role = Literal["best", "other", "running"]

BEST = 10
OTHERS = 100
RUNNING = 50
"""Default numbers of curves: of the best trainings, of others, and most running ones."""


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """Curve of one training.

    Attributes:
        number: Number of the proposal.
        role: Whether it is one of the best, another one, or still running.
        epochs: (k,) float64.
        values: (k,) float64, the metric after each epoch; NaN where it was not measured or cannot
            be drawn (`archive.plots.data.results`).
        value: The objective at the end; NaN while it runs.
        left_out: Number of values that cannot be drawn.
    """

    number: int
    role: Role
    epochs: Floats
    values: Floats
    value: float
    left_out: int


@dataclass(frozen=True, eq=False)
class LearningCurves:
    """Curves of one study.

    Attributes:
        study: Name of the study.
        metric: Name of the metric of the curves.
        direction: Whether larger or smaller values of the objective are better.
        curves: The others by number, then the running ones, then the best ones with the best last:
            drawn in this order, the best are on top.
        results: Number of results of the study.
    """

    study: str
    metric: str
    direction: Direction
    curves: tuple[LearningCurve, ...]
    results: int

    @property
    def left_out(self) -> int:
        """Number of values that cannot be drawn."""
        return sum_left_out(self.curves)


def learning_curves(
    archive: Archive,
    study: str,
    metric: str | None = None,
    *,
    best: int = BEST,
    others: int = OTHERS,
) -> LearningCurves:
    """Return curves of a study.

    Args:
        archive: The archive.
        study: Name of the study.
        metric: Name of the metric; None for the objective, or for the nearest metric that the
            curves have.
        best: Number of curves of the best trainings.
        others: Most curves of other trainings.

    Raises:
        UnknownNameError: There is no study of this name, or the chosen curves have no such metric.
        UsageError: No chosen training has a curve.
    """
    (results,) = read(archive, study, ["id"])
    roles = choice(results, best, others)
    ids = pick(results.columns["id"], roles)
    rows = archive.connection.read(lambda tx: tx.run(CURVES_OF_RESULTS, ids=ids).data())
    by_id = {row["id"]: _curve_in(row) for row in rows}
    running = archive.connection.read(
        lambda tx: tx.run(CURVES_IN_TRAINING, study=study, limit=RUNNING).data()
    )
    in_training = list(map(_curve_in, running))
    name = _metric(results, metric, [*by_id.values(), *in_training])
    drawn = []
    for id_, (row, role) in zip(ids, roles.items(), strict=True):
        number = int(results.number[row])
        value = float(results.value[row])
        drawn.append(_curve(number, role, by_id.get(id_, {}), name, value))

    for proposal, curve in zip(running, in_training, strict=True):
        drawn.append(_curve(proposal["number"], "running", curve, name, np.nan))

    order = {"other": 0, "running": 1, "best": 2}
    curves = sorted(
        (curve for curve in drawn if len(curve.epochs)), key=lambda curve: order[curve.role]
    )
    return LearningCurves(study, name, results.study.direction, tuple(curves), len(results))


def _curve_in(row: Mapping[str, Any]) -> dict[str, Any]:
    return with_prefix(CURVE, dict(row["curve"]))


def choice(results: RecordedResults, best: int, others: int) -> dict[int, Role]:
    """Return positions of results: others in even steps, then the best ones, the best last."""
    top = rank_rows(results)[:best]
    rest = np.setdiff1d(np.arange(len(results)), top)
    roles: dict[int, Role] = dict.fromkeys(rest[evenly(len(rest), others)].tolist(), "other")
    return roles | dict.fromkeys(top[::-1].tolist(), "best")


def rank_rows(results: RecordedResults) -> Integers:
    """Return the positions of comparable results, best first, then by number."""
    usable = np.flatnonzero(results.comparable)
    order: Integers = usable[np.lexsort((results.number[usable], -results.score[usable]))]
    return order


def evenly(count: int, most: int) -> Integers:
    """Return at most so many positions among `count`, in even steps, with first and last."""
    if count <= most:
        return np.arange(count)

    return np.unique(np.linspace(0, count - 1, max(most, 0)).round().astype(np.int64))


def _metric(
    results: RecordedResults, metric: str | None, curves: Sequence[Mapping[str, Any]]
) -> str:
    metrics = set(chain.from_iterable(curves)) - {EPOCH}
    if not metrics:
        raise UsageError(f"the study {results.study.name!r} has no learning curve")

    if metric is None:
        # The objective may be a value that no curve has, such as one that is measured after the
        # training.
        objective = results.study.objective
        usual = (objective, f"valid_{objective}", "valid_loss", "train_loss", *sorted(metrics))
        return next(name for name in usual if name in metrics)

    if metric not in metrics:
        raise UnknownNameError("metric of the curves", metric, metrics)

    return metric


def _curve(
    number: int, role: Role, curve: Mapping[str, Any], name: str, value: float
) -> LearningCurve:
    values = floats(curve.get(name, []))
    epochs = floats(curve.get(EPOCH, []))
    left_out = count_undrawable(values)
    return LearningCurve(
        number, role, epochs[: len(values)], mask_undrawable(values), value, left_out
    )
