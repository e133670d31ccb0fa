"""Measures on a line: indegrees and outdegrees of a network by relative depth, and the widths of
its layers.

Section 2.2, eq. (4), and appendix F.2 of the tree-Wasserstein paper (see
`archive.kernels.distances.tree_wasserstein.distance`).

| symbol | meaning                                                              |
|--------|----------------------------------------------------------------------|
| L      | layers that a path from the input reaches, with the input            |
| eta_l  | hops on the longest path from the input to the layer l of L          |
| M      | eta of the output                                                    |
| x_l    | indegree, or outdegree, of l as a share of their sum over L          |
| omega  | sum over L of x_l at the place (eta_l + 1) / (M + 1)                 |

Cases that the paper leaves open: M is the greatest eta where no path leads to the output; a degree
counts all of a layer's neighbours, also those outside L; where all degrees are 0, L is the input
alone, which has all the mass. A layer without a path to the output can have a longer path than the
output, hence a place beyond 1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from itertools import accumulate

from archive.architecture.graph import Architecture
from archive.kernels.features.l1.parts import Steps


def degrees(architecture: Architecture) -> tuple[dict[str, float], dict[str, float]]:
    """Return the measures of indegree and outdegree, by place as a fraction (`"2/3"`), in
    O(edges).
    """
    eta = _longest(architecture)
    reached = [(u, hops) for u, hops in enumerate(eta) if hops is not None]
    longest = max(hops for _, hops in reached)
    end = longest if eta[-1] is None else eta[-1]
    measures = []
    for neighbours in (architecture.parents, architecture.children):
        mass = [0] * (longest + 1)
        for u, hops in reached:
            mass[hops] += len(neighbours[u])

        if not any(mass):
            mass[0] = 1

        total = sum(mass)
        measures.append(
            {
                _fraction(hops + 1, end + 1): count / total
                for hops, count in enumerate(mass)
                if count
            }
        )

    return measures[0], measures[1]


def widths(architecture: Architecture) -> dict[str, float]:
    """Return the distribution of log2(units) over the layers with units; without such layers, all
    mass is at 0.
    """
    units = Counter(layer.units for layer in architecture.layers if layer.units is not None)
    total = units.total()
    return (
        {repr(math.log2(size)): count / total for size, count in sorted(units.items())}
        if total
        else {"0.0": 1.0}
    )


def cumulated(measure: Mapping[str, float]) -> Steps:
    """Return the cumulative distribution function of a measure on a line."""
    masses = sorted((_place(name), mass) for name, mass in measure.items())
    values = [*accumulate(mass for _, mass in masses)]
    # The last value is exactly 1 in all functions, whatever the rounding of the sums.
    return tuple(place for place, _ in masses), (*values[:-1], 1.0)


def _longest(architecture: Architecture) -> list[int | None]:
    eta: list[int | None] = [0, *([None] * (len(architecture.layers) - 1))]
    for u, parents in enumerate(architecture.parents[1:], start=1):
        hops = [before for parent in parents if (before := eta[parent]) is not None]
        eta[u] = max(hops) + 1 if hops else None

    return eta


@lru_cache(maxsize=4096)
def _fraction(numerator: int, denominator: int) -> str:
    shared = math.gcd(numerator, denominator)
    return f"{numerator // shared}/{denominator // shared}"


def _place(name: str) -> float:
    numerator, slash, denominator = name.partition("/")
    return int(numerator) / int(denominator) if slash else float(name)
