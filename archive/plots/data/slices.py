"""Slices: the value of results against one parameter or decision, or against two of them.

| symbol | meaning                                                                           | shape  |
|--------|-----------------------------------------------------------------------------------|--------|
| g      | places of the marginal prediction, from 0 at the low end of the domain to 1       | (g,)   |
| a      | marginal prediction: mean of the forest over all other columns                    | (g,)   |
|        | (`archive.plots.anova.trees`)                                                     | (g, h) |

Results show where the search has looked; the marginal prediction is a mean over the whole space. A
conditional parameter has the results, and the forest, of the set in which it exists.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from archive.errors import UsageError
from archive.objectives import sign
from archive.plots.data.columns import SearchedColumn, Ticks, read_table
from archive.plots.data.hyperparameters import Scaling
from archive.plots.data.importance import ActiveSet, Analysis
from archive.plots.data.results import Floats, Integers
from archive.store.records import Direction

if TYPE_CHECKING:
    from archive.api import Archive

PANELS = 6
"""Columns of a slice plot where none is named: those with the largest shares."""
PLACES = 40
"""Most places of a marginal prediction."""


@dataclass(frozen=True)
class SliceAxis:
    """The axis of one column.

    Attributes:
        name: Name of the parameter, decision or hyperparameter.
        scaling: How values become places.
        ticks: Places with their labels.
        share: Share of the variance that it explains alone; None where it is unknown.
    """

    name: str
    scaling: Scaling
    ticks: Ticks
    share: float | None


@dataclass(frozen=True, eq=False)
class Slice:
    """Results against one column.

    Attributes:
        axis: The axis.
        number: (n,) numbers of the proposals in which the parameter exists.
        places: (n,) float64 in [0, 1].
        value: (n,) float64.
        grid: (g,) float64; empty without a forest.
        mean: (g,) float64, a.
        low: (g,) float64, lower quartile of the trees.
        high: (g,) float64, upper quartile.
    """

    axis: SliceAxis
    number: Integers
    places: Floats
    value: Floats
    grid: Floats
    mean: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, eq=False)
class Slices:
    """Slices of one study.

    Attributes:
        study: Name of the study.
        objective: Name of the metric.
        direction: Whether larger or smaller values are better.
        slices: One for each column, the largest share first, or in the order of the request.
        names: Names of all columns.
        left_out: Number of values that cannot be drawn (`archive.plots.data.results`).
    """

    study: str
    objective: str
    direction: Direction
    slices: tuple[Slice, ...]
    names: tuple[str, ...]
    left_out: int


@dataclass(frozen=True, eq=False)
class PairSlice:
    """Results against two columns.

    Attributes:
        study: Name of the study.
        objective: Name of the metric.
        direction: Whether larger or smaller values are better.
        across: The horizontal axis.
        up: The vertical axis.
        number: (n,) numbers of the proposals in which both exist.
        places: (n, 2) float64 in [0, 1].
        value: (n,) float64.
        rank: (n,) float64 in [0, 1], 0 for the best value; equal values share their mean rank.
        grids: (g,) and (h,) float64, of both axes.
        mean: (g, h) float64, a; NaN without a forest.
        left_out: Number of values that cannot be drawn.
    """

    study: str
    objective: str
    direction: Direction
    across: SliceAxis
    up: SliceAxis
    number: Integers
    places: Floats
    value: Floats
    rank: Floats
    grids: tuple[Floats, Floats]
    mean: Floats
    left_out: int


def slices(archive: Archive, study: str, names: Sequence[str] = ()) -> Slices:
    """Return the results of a study against single columns.

    Args:
        archive: The archive.
        study: Name of the study.
        names: Names of parameters, decisions or hyperparameters that differ; empty for the six with
            the largest shares of the variance.

    Raises:
        UnknownNameError: There is no study, or no such column.
        UsageError: As of `archive.plots.data.importance.importance`.
    """
    return slices_of(Analysis(read_table(archive, study)), names)


def slices_of(analysis: Analysis, names: Sequence[str] = ()) -> Slices:
    """Return the slices of analysed results; for arguments and errors, see `slices`."""
    table = analysis.table
    if names:
        positions = [table.column(name) for name in dict.fromkeys(names)]
    else:
        ranked = analysis.report().parameters[:PANELS]
        positions = [table.column(column.name) for column in ranked]

    return Slices(
        table.study,
        table.objective,
        table.direction,
        tuple(_slice(analysis, position) for position in positions),
        tuple(column.name for column in table.columns),
        table.left_out,
    )


def pair_slice(archive: Archive, study: str, names: Sequence[str] = ()) -> PairSlice:
    """Return the results of a study against two columns.

    Args:
        archive: The archive.
        study: Name of the study.
        names: Names of two columns; empty for the pair that explains most together, alone and as a
            pair.

    Raises:
        UnknownNameError: There is no study, or no such column.
        UsageError: Not two names, the two never exist together, or as of
            `archive.plots.data.importance.importance`.
    """
    analysis = Analysis(read_table(archive, study))
    table = analysis.table
    if names and len(set(names)) != 2:
        raise UsageError(f"this plot has two different axes, got {len(set(names))}")

    if not names:
        names = _most_important_pair(analysis)

    first, second = (table.column(name) for name in names)
    across = table.columns[first]
    up = table.columns[second]
    rows = across.exists & up.exists
    if not rows.any():
        raise UsageError(f"{names[0]} and {names[1]} exist together in no result of {study!r}")

    value = table.value[rows]
    places = np.stack([across.places(across.codes[rows]), up.places(up.codes[rows])], axis=1)
    active = analysis.set_of(first, second)
    grids = (across.measure.grid(PLACES), up.measure.grid(PLACES))
    mean = np.full((len(grids[0]), len(grids[1])), np.nan)
    if active is not None and active.forest.boxes:
        inner = (active.columns.index(first), active.columns.index(second))
        mean = active.forest.surface(*inner, *grids)

    return PairSlice(
        table.study,
        table.objective,
        table.direction,
        _axis(across, _share(analysis.set_of(first), first)),
        _axis(up, _share(analysis.set_of(second), second)),
        table.number[rows],
        places,
        value,
        _ranks(-sign(table.direction) * value),
        (across.places(grids[0]), up.places(grids[1])),
        mean,
        table.left_out,
    )


def _most_important_pair(analysis: Analysis) -> tuple[str, str]:
    """Return the names of the pair with the largest share, the effects of each alone included."""
    report = analysis.report()
    if not report.pairs:
        raise UsageError(
            f"only {analysis.table.columns[0].name} differs between the results of "
            f"{analysis.table.study!r}: a plot of two axes needs another one"
        )

    alone = {}
    for column in report.parameters:
        alone[column.name] = column.variance.share if column.variance else 0.0

    best = max(
        report.pairs, key=lambda pair: pair.variance.share + alone[pair.first] + alone[pair.second]
    )
    return best.first, best.second


def _slice(analysis: Analysis, position: int) -> Slice:
    table = analysis.table
    column = table.columns[position]
    rows = column.exists
    active = analysis.set_of(position)
    grid = np.empty(0)
    predicted = np.empty((1, 0))
    if active is not None and active.forest.boxes:
        inner = active.columns.index(position)
        grid = active.measures[inner].grid(PLACES)
        predicted = active.forest.marginals(inner, grid)

    low, high = np.quantile(predicted, [0.25, 0.75], axis=0)
    return Slice(
        _axis(column, _share(active, position)),
        table.number[rows],
        column.places(column.codes[rows]),
        table.value[rows],
        column.places(grid),
        predicted.mean(axis=0),
        low,
        high,
    )


def _axis(column: SearchedColumn, share: float | None) -> SliceAxis:
    return SliceAxis(column.name, column.scaling, column.ticks, share)


def _share(active: ActiveSet | None, position: int) -> float | None:
    if active is None or not active.forest.boxes or position not in active.columns:
        return None

    return active.main(position).share


def _ranks(values: Floats) -> Floats:
    """Return the rank of each value in [0, 1], the least first; equal values share their mean."""
    from scipy.stats import rankdata

    ranks: Floats = (rankdata(values) - 1.0) / max(1, len(values) - 1)
    return ranks
