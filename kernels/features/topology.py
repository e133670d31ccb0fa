"""Topology features of networks: the depth of their paths, the number of paths, and the size.

| symbol | meaning                                                                                  |
|--------|------------------------------------------------------------------------------------------|
| p      | a path from input to output                                                              |
| f      | a family of layers: `trained` (with weights), `windows` (look at neighbouring pixels),   |
|        | `trained-windows` (both)                                                                 |
| n_f(p) | layers of f on p                                                                         |
| k      | side of a layer's window in pixels; 1 for a layer without a window                       |
| c      | weights per pixel of the window: units of the layer times units of its inputs; 1 without |
|        | units                                                                                    |

    paths    max_p n_f(p), min_p n_f(p), mean_p n_f(p) for each f; log2 of the number of paths;
             1 if some path has no layer of any family (an identity, or nothing but skips)
    size     log2(1 + sum of k^2 c over the trained layers); in the space `torch`, log2(1 + number of trained numbers)

Local patterns (n-grams, Weisfeiler-Lehman subtrees) carry no information about patterns that were
never observed. These few numbers do: networks of equal depth, width and size are similar whatever
their operations. The features were designed for this archive and are in no paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Literal, final

from archive.architecture.graph import Architecture
from archive.architecture.layer_mass import count_parameters
from archive.architecture.networks import take
from archive.architecture.operations import Operation, vocabulary
from archive.kernels.features.embedding import EmbeddedDistance
from archive.kernels.features.paths import among

FAMILIES: Mapping[str, Callable[[Operation], bool]] = {
    "trained": lambda operation: operation.trained,
    "windows": lambda operation: operation.kernel > 1,
    "trained-windows": lambda operation: operation.trained and operation.kernel > 1,
}


@final
class TopologyFeatures(EmbeddedDistance):
    """L1 distance of depths, number of paths, and size of two networks.

    d(x, y) = sum_i |x_i - y_i| over the numbers of each component: two pseudo-metrics, as networks
    of equal features are at distance 0. Layers on no path from input to output do not count.
    exp(-beta d) is positive semi-definite for every beta > 0, as d is an L1 distance of features.

    Preparing costs O(edges). Choose it together with a distance of local patterns: alone it
    distinguishes few networks.
    """

    name: ClassVar[str] = "topology"
    norm: ClassVar[Literal["l1", "l2"]] = "l1"

    @property
    def components(self) -> tuple[str, ...]:
        """Return `paths` and `size`."""
        return ("paths", "size")

    def features(self, architecture: Architecture) -> tuple[Mapping[str, float], ...]:
        """Return the numbers of both components by name.

        Empty where no path leads to the output.
        """
        operations = _operations(architecture)
        live = architecture.live
        parents = among(live, architecture.parents)
        last = len(operations) - 1
        if not parents[last]:
            return {}, {}

        paths = _Paths(live, parents)
        numbers = {"paths": paths.logarithm}
        any_family = [0.0] * len(operations)
        for name, of_family in FAMILIES.items():
            counts = [float(of_family(operation)) for operation in operations]
            any_family = list(map(max, any_family, counts))
            numbers[f"{name}:longest"] = paths.extreme(counts, max)
            numbers[f"{name}:shortest"] = paths.extreme(counts, min)
            numbers[f"{name}:mean"] = paths.mean(counts)

        numbers["identity"] = float(paths.extreme(any_family, min) == 0.0)
        return numbers, {"size": _size(architecture, operations, live, parents)}


def _operations(architecture: Architecture) -> list[Operation]:
    """Return the operation of each layer, with window and weights according to its attributes."""
    words = vocabulary(architecture.space)
    operations = [words[layer.op] for layer in architecture.layers]
    if not words.attributes or words.is_open:
        return operations

    from archive.architecture.aten.weights import window

    changed = []
    for operation, layer in zip(operations, architecture.layers, strict=True):
        has_units = layer.units is not None
        changed.append(replace(operation, has_units=has_units, kernel=window(layer)))

    return changed


class _Paths:
    """Statistics of all paths from input to output, computed without a list of the paths."""

    def __init__(self, live: Sequence[int], parents: Mapping[int, list[int]]) -> None:
        """Count the paths to each layer, as logarithms: their number may be 2^1000."""
        self._live = live
        self._parents = parents
        self._last = live[-1]
        logarithms = {live[0]: 0.0}
        for u in live[1:]:
            logarithms[u] = _log2_sum(take(logarithms, parents[u]))

        self._logarithms = logarithms

    @property
    def logarithm(self) -> float:
        """Log2 of the number of paths."""
        return self._logarithms[self._last]

    def extreme(self, counts: list[float], choose: Callable[[list[float]], float]) -> float:
        """Return the extreme over all paths of the sum of a layer's counts along the path."""
        sums = {self._live[0]: counts[self._live[0]]}
        for u in self._live[1:]:
            sums[u] = counts[u] + choose(take(sums, self._parents[u]))

        return sums[self._last]

    def mean(self, counts: list[float]) -> float:
        """Return the mean over all paths of the sum of a layer's counts along the path."""
        sums = {self._live[0]: counts[self._live[0]]}
        for u in self._live[1:]:
            mean = 0.0
            for p in self._parents[u]:
                mean += 2.0 ** (self._logarithms[p] - self._logarithms[u]) * sums[p]

            sums[u] = counts[u] + mean

        return sums[self._last]


def _log2_sum(logarithms: list[float]) -> float:
    top = max(logarithms)
    return top + math.log2(sum(2.0 ** (logarithm - top) for logarithm in logarithms))


def _size(
    architecture: Architecture,
    operations: list[Operation],
    live: Sequence[int],
    parents: Mapping[int, list[int]],
) -> float:
    """Return log2(1 + weights) as far as the layers determine it.

    A layer without units emits the units of its inputs; inputs and cells emit 1.
    """
    words = vocabulary(architecture.space)
    if words.attributes and not words.is_open:
        return math.log2(1.0 + count_parameters(architecture))

    emitted: dict[int, int] = {}
    total = 0.0
    for u in live:
        operation = operations[u]
        units = architecture.layers[u].units
        incoming = sum(take(emitted, parents[u])) or 1
        if units:
            emitted[u] = units
        elif operation.group in ("input", "cell"):
            emitted[u] = 1
        else:
            emitted[u] = incoming

        if operation.trained:
            side = max(operation.kernel, 1)
            weights_per_pixel = units * incoming if units else 1
            total += side**2 * weights_per_pixel

    return math.log2(1.0 + total)
