"""Pareto front of one value and one cost."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def front(costs: NDArray[np.float64], scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the positions on the front, from the cheapest to the best; of equal points, the first
    one only.

    A point is on the front if no other is at least as cheap and at least as good, and better in one
    of both. O(n log n).

    Args:
        costs: (n,), smaller is better; no NaN.
        scores: (n,), larger is better; no NaN.

    Returns:
        (k,) int64; costs and scores increase strictly along it.
    """
    order = np.lexsort((-scores, costs))
    before = np.concatenate([[-np.inf], np.maximum.accumulate(scores[order])[:-1]])[: len(order)]
    return order[scores[order] > before]
