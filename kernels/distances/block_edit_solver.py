"""Compiled edit distances of many pairs of decoders (`archive.kernels.distances.block_edit`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from archive.kernels.compiled import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@compiled
def solve_pairs(
    pairs: Integers, blocks: Floats, starts: Integers, streams: Floats, row: Floats, out: Floats
) -> None:
    """Write the distance of each pair.

    Args:
        pairs: (q, 2) networks.
        blocks: (blocks, f), phi of all networks, concatenated.
        starts: (networks + 1,) position of each network's first block.
        streams: (networks, s), psi.
        row: (blocks of the longest network + 1,) buffer.
        out: (q,), written.
    """
    for q in range(pairs.shape[0]):
        left = pairs[q, 0]
        right = pairs[q, 1]
        first = blocks[starts[left] : starts[left + 1]]
        second = blocks[starts[right] : starts[right + 1]]
        total = _sequences(first, second, row)
        for s in range(streams.shape[1]):
            total += abs(streams[left, s] - streams[right, s])

        out[q] = total


@compiled
def _sequences(first: Floats, second: Floats, row: Floats) -> float:
    """Return A_nn', one row of A at a time."""
    row[0] = 0.0
    for j in range(second.shape[0]):
        row[j + 1] = row[j] + _norm(second[j])

    for i in range(first.shape[0]):
        removal = _norm(first[i])
        diagonal = row[0]
        row[0] = diagonal + removal
        for j in range(second.shape[0]):
            above = row[j + 1]
            cheapest = diagonal + _apart(first[i], second[j])
            cheapest = min(cheapest, above + removal)
            cheapest = min(cheapest, row[j] + _norm(second[j]))
            row[j + 1] = cheapest
            diagonal = above

    return float(row[second.shape[0]])


@compiled
def _norm(x: Floats) -> float:
    total = 0.0
    for f in range(x.shape[0]):
        total += x[f]

    return total


@compiled
def _apart(x: Floats, y: Floats) -> float:
    total = 0.0
    for f in range(x.shape[0]):
        total += abs(x[f] - y[f])

    return total
