"""Outliers among scores: results of trainings that went wrong, such as a loss of 1,000 among losses below 1.

| symbol | meaning                                       | shape            |
|--------|-----------------------------------------------|------------------|
| y      | scores, larger is better                      | (n,) or (n, M)   |
| q, Q   | lower and upper quartile of each column       | scalar, or (M,)  |

    y is an outlier  <=>  y < q - FENCE (Q - q)

Only bad scores are outliers. Where the quartiles are equal, nothing says what is usual, and there are none.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FENCE = 20.0
"""Interquartile ranges; Tukey's fence for far outliers is at 3. Scores of architectures have long lower tails: cells of
NAS-Bench-201 without a connection are 16 of them below the lower quartile after 200 epochs, and are no accidents."""


def usual(scores: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which scores are no outliers, in the shape of the scores; at least one row, no NaN."""
    lower, upper = np.quantile(scores, [0.25, 0.75], axis=0)
    mask: NDArray[np.bool_] = (scores >= lower - FENCE * (upper - lower)) | (upper <= lower)
    return mask
