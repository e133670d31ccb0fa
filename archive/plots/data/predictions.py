"""Predictions of surrogates beside observed values, and the coverage of their intervals.

| symbol   | meaning                                                                                | shape |
|----------|----------------------------------------------------------------------------------------|-------|
| m_i, s_i | median of the prediction of value i, and half the width of its central 68 %            | (n,)  |
| y_i      | the observed value                                                                     | (n,)  |
| c(q)     | share of the results with abs(y_i - m_i) <= z_q s_i, z_q the normal quantile (1 + q)/2 | (k,)  |

c(q) = q for all q is ideal for a normal prediction. A prediction is made before the result is
known, each by a surrogate fitted to the results at that time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

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
    quote_studies,
    read,
    study_names,
)

if TYPE_CHECKING:
    from archive.api import Archive

LEVELS = tuple(index / 20 for index in range(21))
"""Levels q of the central intervals."""


@dataclass(frozen=True, eq=False)
class PredictedAndObserved:
    """Predicted and observed values of all studies of a plot.

    Attributes:
        studies: Names of the studies.
        objective: Name of the metric.
        study: (n,) position in `studies`.
        number: (n,) numbers of the proposals.
        predicted: (n,) float64, in the task's own unit.
        std: (n,) float64.
        observed: (n,) float64, in the task's own unit.
        left_out: Number of values and predictions that cannot be drawn
            (`archive.plots.data.results`); these results are no part of n.
    """

    studies: tuple[str, ...]
    objective: str
    study: Integers
    number: Integers
    predicted: Floats
    std: Floats
    observed: Floats
    left_out: int

    @property
    def bias(self) -> float:
        """Mean of observed minus predicted."""
        return float(np.mean(self.observed - self.predicted))

    @property
    def rmse(self) -> float:
        """Root of the mean squared difference."""
        return float(np.sqrt(np.mean((self.observed - self.predicted) ** 2)))

    def coverage(self, levels: Sequence[float] = LEVELS) -> Floats:
        """Return the share of observations within each central interval, (len(levels),)."""
        distance = np.sort(
            np.abs(self.observed - self.predicted) / np.where(self.std > 0, self.std, np.nan)
        )
        widths = np.full(len(levels), np.inf)
        for index, level in enumerate(levels):
            if level < 1:
                widths[index] = NormalDist().inv_cdf((1 + level) / 2)

        # NaN sorts last: a prediction without a width is in no interval but the last.
        inside = np.searchsorted(distance[~np.isnan(distance)], widths, side="right") / len(
            distance
        )
        return np.where(np.isinf(widths), 1.0, inside)


def predicted_and_observed(archive: Archive, studies: str | Sequence[str]) -> PredictedAndObserved:
    """Return the predictions of the proposals of studies beside their values.

    Raises:
        UnknownNameError: There is no study of this name.
        UsageError: The studies are not comparable, or no result has a prediction.
    """
    return predictions(read(archive, studies, ["mean", "std"]))


def predictions(results: Sequence[RecordedResults]) -> PredictedAndObserved:
    """Return the predictions beside the values of results with the columns `mean` and `std`.

    Raises:
        UsageError: No result has a prediction.
    """
    study = []
    number = []
    predicted = []
    std = []
    observed = []
    left_out = 0
    for index, recorded in enumerate(results):
        mean = recorded.numbers("mean")
        width = recorded.numbers("std")
        usable = recorded.comparable & ~np.isnan(mean) & ~np.isnan(width)
        numbers = np.where(usable, [mean, width, recorded.value], np.nan)
        left_out += count_undrawable(numbers)
        rows = np.flatnonzero(np.isfinite(mask_undrawable(numbers)).all(axis=0))
        study.append(np.full(len(rows), index, np.int64))
        number.append(recorded.number[rows])
        predicted.append(sign(recorded.study.direction) * mean[rows])
        std.append(width[rows])
        observed.append(recorded.value[rows])

    if not sum(map(len, study)):
        check_feasible(results)
        raise UsageError(
            f"no result of {quote_studies(results)} has a prediction: the agent has no surrogate, "
            f"or the study only its first proposals{describe_undrawable(left_out, '; ')}"
        )

    return PredictedAndObserved(
        study_names(results),
        results[0].study.objective,
        np.concatenate(study),
        np.concatenate(number),
        np.concatenate(predicted),
        np.concatenate(std),
        np.concatenate(observed),
        left_out,
    )
