"""Importance of parameters, decisions and hyperparameters for the objective of a study.

Two questions have two answers:

    share        which part of the variance over the whole space a column explains (fANOVA,
                 `archive.plots.anova.trees`), alone and together with another column
    near_best    which columns tell the best tenth of the results from the others (PED-ANOVA,
                 `archive.plots.anova.ped_anova`); the columns of a study share 1

A conditional parameter is analysed among the results in which it exists: `share` is its share of
the variance there, by a forest of these results alone, and the best tenth is theirs. On this set,
columns have the ranges and options that occur in it. Constraints between parameters are not known
to the measure: it is uniform on each column.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np

from archive.errors import UsageError
from archive.objectives import sign
from archive.plots.anova import forest, ped_anova
from archive.plots.anova.forest import AnovaForest, ImportanceShare
from archive.plots.anova.measures import CodeMeasure
from archive.plots.data.columns import LEAST, ColumnTable, read_table
from archive.plots.data.results import Booleans, Floats

if TYPE_CHECKING:
    from archive.api import Archive

MOST_PAIRED = 8
"""Most columns of a set of results that are paired: those with the largest shares."""


@dataclass(frozen=True)
class ColumnImportance:
    """Importance of one column.

    Attributes:
        name: Name of the parameter, decision or hyperparameter.
        kind: What the name belongs to.
        results: Number of results in which it exists; a conditional parameter is analysed among
            these.
        variance: Share of the variance that it explains alone; null with fewer than ten results.
        near_best: ImportanceShare in telling the best tenth of the results from the others; null with fewer
            than 20 results.
    """

    name: str
    kind: Literal["hyperparameter", "decision", "size", "objective"]
    results: int
    variance: ImportanceShare | None
    near_best: ImportanceShare | None


@dataclass(frozen=True)
class PairImportance:
    """Importance of two columns together.

    Attributes:
        first: Name of a column.
        second: Name of another one.
        results: Number of results in which both exist.
        variance: Share of the variance that they explain together, beyond the shares of each alone.
    """

    first: str
    second: str
    results: int
    variance: ImportanceShare


@dataclass(frozen=True)
class ImportanceReport:
    """Importance of the columns of a study.

    Attributes:
        study: Name of the study.
        objective: Name of the metric.
        direction: Whether larger or smaller values are better.
        results: Number of results.
        explained: Share of the variance that the forest predicts of results that it has not seen;
            at 0 or below, the shares of the variance mean nothing.
        parameters: The columns, the largest share of the variance first.
        pairs: Pairs of columns, the largest share first; of each set of results those of its eight
            most important columns.
    """

    study: str
    objective: str
    direction: Literal["maximise", "minimise"]
    results: int
    explained: float
    parameters: list[ColumnImportance]
    pairs: list[PairImportance]


def importance(archive: Archive, study: str) -> ImportanceReport:
    """Return the importance of the columns of a study.

    Args:
        archive: The archive.
        study: Name of the study.

    Raises:
        UnknownNameError: There is no study of this name.
        UsageError: There are fewer than ten results, nothing with a name differs between them, or
            all have one value.
    """
    return Analysis(read_table(archive, study)).report()


@dataclass(frozen=True, eq=False)
class ActiveSet:
    """Results in which certain columns exist, with a forest.

    Attributes:
        rows: (n,) the results.
        columns: Positions of the columns that differ among these results.
        everywhere: Positions of those that exist in each of them.
        own: Positions of the columns that exist in these results only.
        measures: Distributions of `columns`.
        forest: Fitted to `columns`.
    """

    rows: Booleans
    columns: tuple[int, ...]
    everywhere: tuple[int, ...]
    own: tuple[int, ...]
    measures: tuple[CodeMeasure, ...]
    forest: AnovaForest

    def main(self, column: int) -> ImportanceShare:
        """Return the share of a column, by its position in the table."""
        return self.forest.main(self.columns.index(column))

    def pair(self, first: int, second: int) -> ImportanceShare:
        """Return the share of two columns together."""
        return self.forest.pair(self.columns.index(first), self.columns.index(second))


class Analysis:
    """Importance and marginal predictions of a table of results.

    Args:
        table: The table.
        seed: Seed of the forests and the bootstrap samples.
        trees: Trees of the forest of all results.

    Raises:
        UsageError: All results have one value.
    """

    def __init__(self, table: ColumnTable, *, seed: int = 0, trees: int = forest.TREES) -> None:
        """Check the values."""
        self.table = table
        self._seed = seed
        self._trees = trees
        if not float(np.ptp(table.value)):
            raise UsageError(
                f"all results of the study {table.study!r} have the same {table.objective}: "
                "there is no difference to explain"
            )

    def report(self) -> ImportanceReport:
        """Return the importance of all columns."""
        variances: dict[int, ImportanceShare] = {}
        pairs = []
        for active in self.sets:
            if active.forest.boxes:
                for column in active.own:
                    variances[column] = active.main(column)

                pairs += self._pairs(active)

        near_best = self._near_best()
        columns = []
        for position, searched in enumerate(self.table.columns):
            columns.append(
                ColumnImportance(
                    searched.name,
                    searched.kind,
                    int(searched.exists.sum()),
                    variances.get(position),
                    near_best.get(position),
                )
            )

        columns.sort(key=lambda column: -(column.variance.share if column.variance else -1.0))
        pairs.sort(key=lambda pair: -pair.variance.share)
        return ImportanceReport(
            self.table.study,
            self.table.objective,
            self.table.direction,
            len(self.table.value),
            self.sets[0].forest.explained,
            columns,
            pairs,
        )

    @cached_property
    def sets(self) -> list[ActiveSet]:
        """All results, and each set of enough results in which conditional columns exist."""
        masks = {b"": np.ones(len(self.table.value), np.bool_)}
        owners: dict[bytes, list[int]] = {b"": []}
        for position, column in enumerate(self.table.columns):
            exists = column.exists
            key = b"" if exists.all() else exists.tobytes()
            masks.setdefault(key, exists)
            owners.setdefault(key, []).append(position)

        sets = []
        for key, rows in masks.items():
            if rows.sum() >= LEAST:
                sets.append(self._fit(rows, owners[key]))

        return sets

    def set_of(self, *columns: int) -> ActiveSet | None:
        """Return the smallest set in which columns exist everywhere; None with too few results."""
        best = None
        for active in self.sets:
            inside = all(column in active.everywhere for column in columns)
            if inside and any(column in active.own for column in columns):
                best = active

        return best

    def _fit(self, rows: Booleans, active: list[int]) -> ActiveSet:
        columns = []
        everywhere = []
        measures = []
        whole = bool(rows.all())
        for position, column in enumerate(self.table.columns):
            part = column.at(rows)
            if not part.differs:
                continue

            measure = column.measure
            columns.append(position)
            if part.exists.all():
                everywhere.append(position)
                if not whole:
                    measure = measure.restrict(part.codes)

            measures.append(measure)

        codes = np.stack([self.table.columns[column].codes[rows] for column in columns], axis=1)
        trees = self._trees if whole else min(self._trees, forest.FEWER_TREES)
        grown = forest.grow(codes, self.table.value[rows], measures, trees=trees, seed=self._seed)
        return ActiveSet(
            rows,
            tuple(columns),
            tuple(everywhere),
            tuple(column for column in active if column in columns),
            tuple(measures),
            grown,
        )

    def _pairs(self, active: ActiveSet) -> list[PairImportance]:
        """Return the pairs of the most important columns, at least one of them of this set."""
        ranked = sorted(active.everywhere, key=lambda column: -active.main(column).share)
        pairs = []
        for first, second in combinations(ranked[:MOST_PAIRED], 2):
            if first in active.own or second in active.own:
                pairs.append(
                    PairImportance(
                        self.table.columns[first].name,
                        self.table.columns[second].name,
                        int(active.rows.sum()),
                        active.pair(first, second),
                    )
                )

        return pairs

    def _near_best(self) -> dict[int, ImportanceShare]:
        """Return the importance near the best results by position; enough results have one."""
        rng = np.random.default_rng(self._seed)
        scores = sign(self.table.direction) * self.table.value
        whole: dict[int, float] = {}
        repeated: dict[int, Floats] = {}
        for active in self.sets:
            rows = active.rows
            if rows.sum() < ped_anova.LEAST or not active.own:
                continue

            columns = [self.table.columns[column] for column in active.own]
            codes = np.stack([column.codes[rows] for column in columns], axis=1)
            measures = [column.measure for column in columns]
            means, samples = ped_anova.importances(codes, scores[rows], measures, rng)
            for index, column in enumerate(active.own):
                whole[column] = float(means[index])
                repeated[column] = samples[:, index]

        total = sum(whole.values())
        if not total > 0.0:
            return {}

        sums = np.sum(list(repeated.values()), axis=0)
        shares = {}
        for column, mean in whole.items():
            shares[column] = ImportanceShare.of_repeats(repeated[column] / sums, mean / total)

        return shares
