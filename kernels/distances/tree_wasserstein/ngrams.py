"""n-grams of a network's operations, and the tree of n-grams.

Section 2.2 and appendix F.1 of the tree-Wasserstein paper (see
`archive.kernels.distances.tree_wasserstein.distance`).

| symbol        | meaning                                                                           |
|---------------|-----------------------------------------------------------------------------------|
| s             | an n-gram (s_1, …, s_n): the operations of n layers along a path                  |
| omega(s)      | share of the paths of n layers whose operations are s, eq. (3)                    |
| v_l(s_i)      | ancestor of s_i at depth l of the operation tree; s_i itself where that is deeper |
| v_l(s)        | (v_l(s_1), …, v_l(s_n)): the ancestor of s at depth l of the tree of n-grams      |
| w             | length of the edge from v_l(s) to v_{l-1}(s)                                      |

The paper draws the tree of 2-grams and gives no rule for it. Here v_l(s) and v_l(t) are one node
exactly when all s_i and t_i have the same ancestor at depth l. The length of an edge is the mean of
the edges of its operations at that depth,

    w = 1/n sum_i w_{v_l(s_i)},

but where the n operations are not all of one group of depth 1, deeper edges are multiplied by
MIXED, and the edge of depth 1 is longer by the amount that the deepest operations lose, so that
heights are unchanged. With MIXED = 0.2 and the tree of figure 8 these are the lengths of eq. (17):
0.9 + 0.1 for conv-conv, 0.99 + 0.01 for conv-pool, 1 for pool-pool.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Set
from itertools import pairwise

from archive.architecture.graph import Architecture
from archive.errors import InvalidArchitectureError
from archive.kernels.distances.tree_wasserstein.operation_trees import Node, OperationTree

Gram = tuple[str, ...]

MIXED = 0.2
MOST = 1_000_000
"""Limit of n-grams ending in a layer, summed over the layers: it bounds memory, and the time to
about a second."""


def ngrams(architecture: Architecture, n: int, operations: Set[str]) -> dict[Gram, int]:
    """Count the paths of n layers by their operations, without a list of the paths: their number is
    not limited.

    Args:
        architecture: The network.
        n: Layers in a path.
        operations: Operations that count; paths with other operations are left out.

    Raises:
        InvalidArchitectureError: The n-grams are more than `MOST`.
    """
    labels = [layer.op if layer.op in operations else None for layer in architecture.layers]
    ending: list[dict[Gram, int]] = [{} if label is None else {(label,): 1} for label in labels]
    for k in range(2, n + 1):
        longer: list[dict[Gram, int]] = []
        size = 0
        for label, parents in zip(labels, architecture.parents, strict=True):
            longer.append(
                {} if label is None else _extended([ending[parent] for parent in parents], label)
            )
            size += len(longer[-1])
            if size > MOST:
                raise InvalidArchitectureError(
                    f"{k}-grams must be at most {MOST} over all layers, got more; lower n"
                )

        ending = longer

    total: dict[Gram, int] = {}
    for counts in ending:
        for gram, count in counts.items():
            total[gram] = total.get(gram, 0) + count

    return total


def _extended(parents: Iterable[dict[Gram, int]], label: str) -> dict[Gram, int]:
    """Return the counts of the n-grams that end in a layer, from those of its parents."""
    extended: dict[Gram, int] = {}
    for counts in parents:
        for gram, count in counts.items():
            longer = (*gram, label)
            extended[longer] = extended.get(longer, 0) + count

    return extended


def gram_path(gram: Gram, tree: OperationTree) -> Iterator[tuple[str, float]]:
    """Yield the nodes from below the root down to an n-gram, with the lengths of their edges."""
    n = len(gram)
    paths = [tree.paths[operation] for operation in gram]
    levels = [
        [path[min(level, len(path)) - 1] for path in paths]
        for level in range(1, max(map(len, paths)) + 1)
    ]
    deeper = MIXED if len(set(levels[0])) > 1 else 1.0
    yield _named(levels[0]), sum(node.weight + (1 - deeper) * node.below for node in levels[0]) / n
    for above, nodes in pairwise(levels):
        passed = sum(
            node.weight for before, node in zip(above, nodes, strict=True) if before is not node
        )
        yield _named(nodes), deeper * passed / n


def _named(nodes: list[Node]) -> str:
    names = [node.name for node in nodes]
    return names[0] if len(names) == 1 else json.dumps(names)
