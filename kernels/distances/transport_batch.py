"""Transport between the layers of many pairs of networks: buffers, call and errors of the compiled
solver.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from archive.errors import NumericalError
from archive.kernels.distances.transport import Arcs, SpanningTree, solve_pairs

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def solve(
    pairs: Integers,
    masses: Floats,
    labels: Integers,
    places: Floats,
    blocks: Integers,
    penalties: Floats,
    nu_str: Floats,
) -> Floats:
    """Return the distance of each pair at each nu_str.

    Args:
        pairs: (q, 2) positions in `blocks` of the two networks.
        masses: (layers,) float64, none of them 0; networks end to end, layers sorted by block.
        labels: (layers,) int64, rows of `penalties`.
        places: (layers, f) float64, scaled path lengths.
        blocks: (networks, blocks + 1) int64, where each block of each network begins.
        penalties: (labels, labels) float64, infinite between families.
        nu_str: (k,) float64, ascending.

    Returns:
        (k, q) float64.

    Raises:
        NumericalError: The simplex of a pair did not converge.
    """
    out = np.empty((len(nu_str), len(pairs)))
    widest = int(np.diff(blocks, axis=1).max())
    arcs, tree = workspace(widest, widest)
    slopes = slopes_of(places)
    failed = solve_pairs(
        np.ascontiguousarray(pairs),
        masses,
        labels,
        places,
        slopes,
        blocks,
        penalties,
        nu_str,
        arcs,
        tree,
        out,
    )
    if failed >= 0:
        raise NumericalError(f"the transport of pair {tuple(pairs[failed])} did not converge")

    return out


def slopes_of(places: Floats) -> Floats:
    """Return the path lengths of each layer from the input minus those to the output, (layers,)
    from (layers, f).
    """
    half = places.shape[1] // 2
    slopes: Floats = places[:, :half].sum(axis=1) - places[:, half:].sum(axis=1)
    return slopes


def workspace(rows: int, columns: int) -> tuple[Arcs, SpanningTree]:
    """Return buffers for blocks of at most this many rows and columns; one thread at a time may use
    them.
    """
    arcs = max(rows * columns, 1)
    nodes = rows + columns + 1
    ends = np.empty((2, arcs), np.int64)
    costs = np.empty((3, arcs))
    links = np.empty((7, nodes), np.int64)
    values = np.empty((2, nodes))
    return Arcs(*ends, *costs), SpanningTree(*links, *values)
