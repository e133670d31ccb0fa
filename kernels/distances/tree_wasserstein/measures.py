"""Measures of a network: its n-grams with their tree, and its degrees and widths on a line.

Section 2.2, eqs. (3) and (4), and appendix F of the tree-Wasserstein paper (see
`archive.kernels.distances.tree_wasserstein.distance`).

| symbol        | meaning                                                                       |
|---------------|-------------------------------------------------------------------------------|
| s             | an n-gram (s_1, …, s_n): the operations of n layers along a path              |
| omega(s)      | share of the paths of n layers whose operations are s, eq. (3)                |
| v_l(s_i)      | ancestor of s_i at depth l of the operation tree, or s_i itself if deeper     |
| v_l(s)        | (v_l(s_1), …, v_l(s_n)): the ancestor of s at depth l of the tree of n-grams  |
| w             | length of the edge from v_l(s) to v_{l-1}(s)                                  |
| L             | layers that a path from the input reaches, with the input                     |
| eta_l         | hops on the longest path from the input to the layer l of L                   |
| M             | eta of the output                                                             |
| x_l           | indegree, or outdegree, of l as a share of their sum over L                   |
| omega         | sum over L of x_l at the place (eta_l + 1) / (M + 1), eq. (4)                 |

The paper draws the tree of 2-grams and gives no rule for it. Here v_l(s) and v_l(t) are one node
exactly when all s_i and t_i have the same ancestor at depth l. The length of an edge is the mean of
the edges of its operations at that depth,

    w = 1/n sum_i w_{v_l(s_i)},

but where the n operations are not all of one group of depth 1, deeper edges are multiplied by
MIXED, and the edge of depth 1 is longer by the amount that the deepest operations lose, so that
heights are unchanged. With MIXED = 0.2 and the tree of figure 8 these are the lengths of eq. (17):
0.9 + 0.1 for conv-conv, 0.99 + 0.01 for conv-pool, 1 for pool-pool.

Cases of eq. (4) that the paper leaves open: M is the greatest eta where no path leads to the
output; a degree counts all of a layer's neighbours, also those outside L; where all degrees are 0,
L is the input alone, which has all the mass. A layer without a path to the output can have a longer
path than the output, hence a place beyond 1.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from itertools import accumulate, pairwise
from operator import itemgetter

from archive.architecture.graph import Architecture
from archive.architecture.networks import take
from archive.architecture.operations import vocabulary
from archive.errors import InvalidArchitectureError
from archive.kernels.distances.tree_wasserstein.operation_trees import Node, OperationTree
from archive.kernels.features.l1_blocks import Steps

Gram = tuple[str, ...]

MIXED = 0.2
OCTAVE = 0.05
"""Length of an octave of a setting; siblings in the tree of `decoder` are 0.3 apart."""
_FINE = 10
MOST = 1_000_000
"""Limit of n-grams ending in a layer, summed over the layers.

It bounds memory, and the time to about a second.
"""


def ngrams(architecture: Architecture, n: int, operations: Set[str]) -> dict[Gram, int]:
    """Count the paths of n layers by their operations.

    Paths are not listed, so their number is not limited.

    Args:
        architecture: The network.
        n: Layers in a path.
        operations: Operations that count; paths with other operations are left out.

    Raises:
        InvalidArchitectureError: The n-grams are more than `MOST`.
    """
    labels: list[str | None] = []
    ending: list[dict[Gram, int]] = []
    for layer in architecture.layers:
        counts = layer.op in operations
        labels.append(layer.op if counts else None)
        ending.append({(layer.op,): 1} if counts else {})

    for k in range(2, n + 1):
        longer: list[dict[Gram, int]] = []
        size = 0
        for label, parents in zip(labels, architecture.parents, strict=True):
            extended: dict[Gram, int] = {}
            if label is not None:
                extended = _extend(take(ending, parents), label)

            longer.append(extended)
            size += len(extended)
            if size > MOST:
                raise InvalidArchitectureError(
                    f"{k}-grams must be at most {MOST} over all layers, got more; lower n"
                )

        ending = longer

    total: dict[Gram, int] = {}
    for counts_of_layer in ending:
        for gram, count in counts_of_layer.items():
            total[gram] = total.get(gram, 0) + count

    return total


def _extend(parents: Iterable[dict[Gram, int]], label: str) -> dict[Gram, int]:
    """Return the counts of the n-grams that end in a layer, from the counts of its parents."""
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
    levels: list[list[Node]] = []
    for level in range(1, max(map(len, paths)) + 1):
        levels.append([path[min(level, len(path)) - 1] for path in paths])

    deeper = MIXED if len(set(levels[0])) > 1 else 1.0
    length = 0.0
    for node in levels[0]:
        length += node.weight + (1 - deeper) * node.below

    yield _name(levels[0]), length / n
    for above, nodes in pairwise(levels):
        passed = 0.0
        for before, node in zip(above, nodes, strict=True):
            if before is not node:
                passed += node.weight

        yield _name(nodes), deeper * passed / n


def _name(nodes: list[Node]) -> str:
    names = [node.name for node in nodes]
    return names[0] if len(names) == 1 else json.dumps(names)


def degrees(architecture: Architecture) -> tuple[dict[str, float], dict[str, float]]:
    """Return the measures of indegree and outdegree in O(edges).

    A measure maps places, as fractions (`"2/3"`), to mass.
    """
    eta = _longest_hops(architecture)
    reached = [(u, hops) for u, hops in enumerate(eta) if hops is not None]
    longest = max(map(itemgetter(1), reached))
    end = longest if eta[-1] is None else eta[-1]
    return (
        _degree_measure(architecture.parents, reached, longest, end),
        _degree_measure(architecture.children, reached, longest, end),
    )


def _degree_measure(
    neighbours: Sequence[Sequence[int]], reached: Sequence[tuple[int, int]], longest: int, end: int
) -> dict[str, float]:
    mass = [0] * (longest + 1)
    for u, hops in reached:
        mass[hops] += len(neighbours[u])

    if not any(mass):
        mass[0] = 1

    total = sum(mass)
    measure: dict[str, float] = {}
    for hops, count in enumerate(mass):
        if count:
            measure[_fraction(hops + 1, end + 1)] = count / total

    return measure


def widths(architecture: Architecture) -> dict[str, float]:
    """Return the distribution of log2(units) over the layers with units.

    Without such layers, all mass is at 0.
    """
    units = [layer.units for layer in architecture.layers if layer.units is not None]
    measure = {} if units else {"0.0": 1.0}
    for size, count in sorted(Counter(units).items()):
        measure[repr(math.log2(size))] = count / len(units)

    return measure


def cumulate(measure: Mapping[str, float]) -> Steps:
    """Return the cumulative distribution function of a measure on a line."""
    masses = sorted(zip(map(_place, measure), measure.values(), strict=True))
    values = list(accumulate(map(itemgetter(1), masses)))
    # The last value is exactly 1 in all functions, whatever the rounding of the sums.
    return tuple(map(itemgetter(0), masses)), (*values[:-1], 1.0)


def _longest_hops(architecture: Architecture) -> list[int | None]:
    eta: list[int | None] = [0, *([None] * (len(architecture.layers) - 1))]
    for u, parents in enumerate(architecture.parents[1:], start=1):
        hops = [before for before in take(eta, parents) if before is not None]
        eta[u] = max(hops) + 1 if hops else None

    return eta


def settings(architecture: Architecture, operations: Set[str]) -> dict[str, float]:
    """Return the settings of the layers as L1 features: a line below each operation and setting.

    A line has a place for each octave, so that the L1 distance is the Wasserstein distance of the
    shares of the layers along it, times the length of an octave, `OCTAVE`. Octaves above 2^10 count
    a tenth: bases of rotary positions are far apart, and differ little in effect.

    Args:
        architecture: The network.
        operations: Operations that count, as in `ngrams`.
    """
    names = vocabulary(architecture.space).settings
    layers = [layer for layer in architecture.layers if layer.op in operations]
    counts = Counter((layer.op, layer.attributes) for layer in layers) if names else Counter()
    features: dict[str, float] = {}
    for (op, attributes), count in counts.items():
        for name in names:
            value = attributes.get(name)
            if not isinstance(value, int | float):
                continue

            place = _octaves(float(value))
            for octave in range(math.ceil(place)):
                key = f"{op}/{name}:{octave}"
                share = count / len(layers) * min(place - octave, 1.0)
                features[key] = features.get(key, 0.0) + OCTAVE * share

    return dict(sorted(features.items()))


def _octaves(value: float) -> float:
    octaves = math.log2(1 + value)
    return octaves if octaves <= _FINE else _FINE + (octaves - _FINE) / 10


@lru_cache(maxsize=4096)
def _fraction(numerator: int, denominator: int) -> str:
    shared = math.gcd(numerator, denominator)
    return f"{numerator // shared}/{denominator // shared}"


def _place(name: str) -> float:
    numerator, slash, denominator = name.partition("/")
    return int(numerator) / int(denominator) if slash else float(name)
