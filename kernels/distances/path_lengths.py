"""Path lengths of every layer from the input and to the output, per group of layers.

NASBOT, section 3 and appendix A.3, algorithm 1. A length is the number of a group's layers on a
path, with the layer itself and without the path's end (ip or op). With the group of all layers it
is the number of hops.

| symbol   | meaning                                                      | shape           |
|----------|--------------------------------------------------------------|-----------------|
| weights  | 1 where the layer belongs to the group, else 0               | (n, groups)     |
| delta_ip | least, greatest and mean (random walk) length from the input | (n, 3 * groups) |
| delta_op | the same to the output                                       | (n, 3 * groups) |

Columns are ordered by group, then shortest, longest, random walk. A random walk hops to a child
(towards the output) or a parent (towards the input) chosen uniformly. The length of a layer without
inputs, or without outputs, is its weight.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from archive.architecture.graph import Architecture
from archive.kernels.compiled import compiled

Floats = NDArray[np.float64]


def path_lengths(architecture: Architecture, weights: Floats) -> tuple[Floats, Floats]:
    """Return all path lengths of a network in O(edges * groups).

    Args:
        architecture: The network.
        weights: (n, groups), 1 where a layer belongs to a group.

    Returns:
        The lengths from the input and to the output:
        delta_ip: (n, 3 * groups).
        delta_op: (n, 3 * groups).
    """
    edges = np.array(architecture.edges, np.int64).reshape(-1, 2)
    counted = np.ascontiguousarray(weights, np.float64)
    delta_ip = np.repeat(counted, 3, axis=1)
    delta_op = np.repeat(counted, 3, axis=1)
    delta_ip[0] = delta_op[-1] = 0.0
    by_head = np.argsort(edges[:, 1], kind="stable")
    _walk(np.ascontiguousarray(edges[by_head, ::-1]), counted, delta_ip)
    _walk(np.ascontiguousarray(edges[::-1]), counted, delta_op)
    return delta_ip, delta_op


@compiled
def _walk(hops: NDArray[np.int64], weights: Floats, lengths: Floats) -> None:
    """Write the lengths of all layers with hops, from the lengths at the ends of the hops.

    Args:
        hops: (edges, 2) of a layer and its successor on the path, grouped by layer, the successor's
            hops always first.
        weights: (n, groups).
        lengths: (n, 3 * groups), initialised for layers without hops.
    """
    choices = 0
    for e in range(hops.shape[0]):
        u = hops[e, 0]
        v = hops[e, 1]
        choices = choices + 1 if e > 0 and hops[e - 1, 0] == u else 1
        complete = e + 1 == hops.shape[0] or hops[e + 1, 0] != u
        for g in range(weights.shape[1]):
            shortest = lengths[v, 3 * g]
            longest = lengths[v, 3 * g + 1]
            walk = lengths[v, 3 * g + 2]
            if choices > 1:
                shortest = min(shortest, lengths[u, 3 * g])
                longest = max(longest, lengths[u, 3 * g + 1])
                walk += lengths[u, 3 * g + 2]

            if complete:
                shortest += weights[u, g]
                longest += weights[u, g]
                walk = walk / choices + weights[u, g]

            lengths[u, 3 * g] = shortest
            lengths[u, 3 * g + 1] = longest
            lengths[u, 3 * g + 2] = walk
