"""Outliers among scores: results of trainings that went wrong, such as a loss of 1,000 among losses
below 1.

| symbol | meaning                                       | shape            |
|--------|-----------------------------------------------|------------------|
| y      | scores, larger is better                      | (n,) or (n, M)   |
| q, Q   | lower and upper quartile of each column       | scalar, or (M,)  |

    y is an outlier  <=>  y < q - FENCE (Q - q)

Only bad scores are outliers. Where the quartiles are equal, the usual spread is unknown, and there
are no outliers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FENCE = 20.0
"""Interquartile ranges; Tukey's fence for far outliers is at 3.

Scores of architectures have long lower tails: cells of NAS-Bench-201 without a connection are 16 of
them below the lower quartile after 200 epochs, and are no accidents."""

LARGEST = 1e150
"""Largest absolute value of a score that models can use: beyond it, variances in squared units
would overflow."""


def is_score(value: float) -> bool:
    """Return whether models can use a value.

    NaN, infinity and values beyond `LARGEST` count as failures.
    """
    return abs(value) <= LARGEST


def fences(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the least usual score of each column, -inf where nothing is an outlier; at least one
    row, no NaN.
    """
    lower, upper = np.quantile(scores, [0.25, 0.75], axis=0)
    least: NDArray[np.float64] = np.where(upper > lower, lower - FENCE * (upper - lower), -np.inf)
    return least


def usual(scores: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which scores are no outliers, in the shape of the scores; at least one row, no NaN."""
    mask: NDArray[np.bool_] = scores >= fences(scores)
    return mask
