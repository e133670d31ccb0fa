"""Differences of two series of searches, seed by seed, in standard errors.

Searches of one seed share their random draws, so that their differences vary less than the searches do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def in_standard_errors(means: Floats, values: Floats) -> Floats:
    """Return (m,) means in standard errors of the means of (n, m) values, n >= 2; 0 where all values are equal."""
    errors = values.std(axis=0, ddof=1) / math.sqrt(len(values))
    # Where all seeds agree, the mean of their differences is 0 but for rounding.
    ratios: Floats = np.divide(means, errors, out=np.zeros_like(means), where=errors > 0.0)
    return ratios


def errors_of(first: Mapping[int, float], second: Mapping[int, float]) -> float | None:
    """Return the mean of `first - second` in standard errors of the differences.

    Args:
        first: Value of each search, by seed.
        second: Those of another series. Seeds that only one of them has are left out.

    Returns:
        Negative where the first values are smaller. None for fewer than two seeds, and where all differences are equal
        but not 0, so that they have no standard error.
    """
    differences = np.array([first[seed] - second[seed] for seed in first if seed in second])
    if len(differences) < 2:
        return None
    if np.allclose(differences, differences[0], rtol=1e-9, atol=1e-12):
        return 0.0 if abs(differences[0]) < 1e-9 else None
    return float(in_standard_errors(differences.mean(keepdims=True), differences[:, None])[0])
