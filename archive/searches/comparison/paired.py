"""Differences of two series of searches, seed by seed, in standard errors.

Searches of one seed share their random draws, so that their differences vary less than the searches
do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def in_standard_errors(means: Floats, values: Floats) -> Floats:
    """Return means in standard errors of the means of values, of n >= 2 seeds each.

    Args:
        means: (m,) float64.
        values: (n, m) float64.

    Returns:
        (m,) float64. Where all n values are equal but for rounding, there is no standard error: the
        result is then 0 for a mean of 0, and NaN for another one.
    """
    equal = np.isclose(values, values[0], rtol=1e-9, atol=1e-12).all(axis=0)
    errors = values.std(axis=0, ddof=1) / math.sqrt(len(values))
    ratios = np.where(np.abs(means) < 1e-9, 0.0, np.nan)
    divided: Floats = np.divide(means, errors, out=ratios, where=~equal)
    return divided


def errors_of(first: Mapping[int, float], second: Mapping[int, float]) -> float | None:
    """Return the mean of `first - second` in standard errors of the differences.

    Args:
        first: Value of each search, by seed.
        second: Those of another series. Seeds that only one of them has are left out.

    Returns:
        Negative where the first values are smaller. None for fewer than two seeds, and where all
        differences are equal but not 0, so that they have no standard error.
    """
    differences = np.array([first[seed] - second[seed] for seed in first if seed in second])
    if len(differences) < 2:
        return None

    ratio = float(in_standard_errors(differences.mean(keepdims=True), differences[:, None])[0])
    return None if math.isnan(ratio) else ratio
