"""Distances of many pairs on several threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def solve_on_threads(
    solve: Callable[[Integers], Floats], pairs: Integers, threads: int, least: int
) -> Floats:
    """Return the distances of pairs, which do not depend on the number of threads.

    Args:
        solve: Returns the (k, p) distances of (p, 2) pairs; a compiled function that releases the
            interpreter's lock.
        pairs: (q, 2) positions of networks.
        threads: Number of threads, at least 1.
        least: Number of pairs below which a second thread costs more than it saves.

    Returns:
        (k, q) float64.
    """
    if threads == 1 or len(pairs) < 2 * least:
        return solve(pairs)

    # More parts than threads: pairs of large networks take long and may be adjacent.
    parts = np.array_split(pairs, min(4 * threads, len(pairs) // least))
    with ThreadPoolExecutor(threads) as pool:
        return np.concatenate(list(pool.map(solve, parts)), axis=1)
