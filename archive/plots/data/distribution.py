"""Empirical distribution of the values of studies.

| symbol | meaning                                                               | shape |
|--------|-----------------------------------------------------------------------|-------|
| y_i    | values in ascending order                                             | (n,)  |
| F_i    | share of the results with a value of at most y_i, i / n               | (n,)  |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from archive.errors import UsageError
from archive.plots.data.results import (
    Floats,
    RecordedResults,
    check_feasible,
    count_undrawable,
    describe_undrawable,
    mask_undrawable,
    quote_studies,
    read,
)
from archive.store.records import Direction

if TYPE_CHECKING:
    from archive.api import Archive


@dataclass(frozen=True, eq=False)
class ValueDistribution:
    """Distribution of the values of one study.

    Attributes:
        study: Name of the study.
        objective: Name of the metric.
        direction: Whether larger or smaller values are better.
        value: (n,) float64, ascending.
        share: (n,) float64.
        left_out: Number of values that cannot be drawn (`archive.plots.data.results`).
    """

    study: str
    objective: str
    direction: Direction
    value: Floats
    share: Floats
    left_out: int


def distributions(archive: Archive, studies: str | Sequence[str]) -> list[ValueDistribution]:
    """Return the distribution of the comparable values of each study.

    Args:
        archive: The archive.
        studies: Names of studies of one task, protocol and objective.

    Raises:
        UnknownNameError: There is no study of this name.
        UsageError: The studies are not comparable, or none has a value.
    """
    results = read(archive, studies)
    drawn = list(map(distribution, results))
    if not any(len(part.value) for part in drawn):
        check_feasible(results)
        left_out = sum(part.left_out for part in drawn)
        raise UsageError(
            f"no evaluation of {quote_studies(results)} has a value yet"
            f"{describe_undrawable(left_out, '; ')}"
        )

    return drawn


def distribution(results: RecordedResults) -> ValueDistribution:
    """Return the distribution of the comparable values of one study."""
    comparable = results.value[results.comparable]
    drawable = mask_undrawable(comparable)
    value = np.sort(drawable[np.isfinite(drawable)])
    share = np.arange(1, len(value) + 1) / max(1, len(value))
    return ValueDistribution(
        results.study.name,
        results.study.objective,
        results.study.direction,
        value,
        share,
        count_undrawable(comparable),
    )
