"""Weisfeiler-Lehman subtree kernel: occurrences of neighbourhoods of up to h hops.

Shervashidze et al.: Weisfeiler-Lehman graph kernels (JMLR 2011), definition 4; on architectures:
Ru, Wan, Dong,
Osborne: Interpretable neural architecture search via Bayesian optimisation with Weisfeiler-Lehman
kernels (2021).

| symbol   | meaning                                                                        | feature              |
|----------|--------------------------------------------------------------------------------|----------------------|
| l_0(u)   | label of layer u                                                               | `0:conv3`            |
| l_i(u)   | label of u with the sorted l_{i-1} of its neighbours, i = 1 ... h              | `1:conv3(ip)`        |
| phi      | number of occurrences of each l_i, for i = 0 ... h                             | one number each      |
| k, d     | k(x, y) = <phi(x), phi(y)>, d(x, y) = ||phi(x) - phi(y)||                      |                      |

With attributes, a layer counts further features: `0:attention/kv_heads=2` for each of the settings
that its vocabulary names. They are no part of the labels, so that layers of one operation and size share the
features of their neighbourhoods whatever their settings.

Labels are compressed without a dictionary: long ones are replaced by their hash. So the name of a
feature does not depend on other networks, and networks can be prepared one by one.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, final, get_args
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from archive.architecture import operations
from archive.architecture.graph import Architecture
from archive.errors import UsageError
from archive.kernels.features.embedding import Embedded, EmbeddedDistance, matrix, vocabulary
from archive.kernels.features.paths import among, label
from archive.values import check_flag, check_whole

Floats = NDArray[np.float64]
Direction = Literal["in", "out", "both"]

MOST_ITERATIONS = 100
"""Most iterations: far above the number that distinguishes networks of 60 layers."""
MOST_READABLE = 100
"""Length up to which a label is not hashed, because labels are shown as the motifs of a network."""


@final
class WeisfeilerLehman(EmbeddedDistance):
    """Euclidean distance of the neighbourhood counts of the Weisfeiler-Lehman kernel.

    d(x, y) = ||phi(x) - phi(y)||, or the same of phi / ||phi||. A pseudo-metric: networks that h
    iterations of colour refinement in this direction do not distinguish are at distance 0. k,
    exp(-beta d) and exp(-beta d^2) are positive semi-definite.

    Layers on no path from input to output do not count. Preparing costs O(h * edges), with a sort
    for each layer. Choose it where motifs of a few layers determine the score, and for readable
    features. Shervashidze et al., section 3.2.

    Args:
        iterations: h, the radius of the neighbourhoods in hops, at most 100; 0 counts operations.
            On both NAS-Bench tables, 1 in both directions ranks cells better than 2 or 3, whose
            features few cells share.
        direction: Neighbours that a label includes: the layer's inputs (`"in"`), its outputs
            (`"out"`), or `"both"`, kept apart.
        normalised: Divide phi by its norm, so that size alone does not make networks distant;
            distances are then at most sqrt(2).
        attributes: Put binned units and strides into the labels
            (`archive.kernels.features.paths.label`), and count the settings of layers.

    Raises:
        UsageError: A setting is out of range.
    """

    name: ClassVar[str] = "weisfeiler-lehman"
    norm: ClassVar[Literal["l1", "l2"]] = "l2"

    def __init__(
        self,
        iterations: int = 1,
        direction: Direction = "both",
        normalised: bool = False,
        attributes: bool = False,
    ) -> None:
        if direction not in get_args(Direction):
            raise UsageError(
                f"direction must be one of {', '.join(get_args(Direction))}, got {direction!r}"
            )

        self.iterations = check_whole("iterations", iterations, MOST_ITERATIONS)
        self.direction = direction
        self.normalised = check_flag("normalised", normalised)
        self.attributes = check_flag("attributes", attributes)

    @property
    def components(self) -> tuple[str, ...]:
        """Return `weisfeiler-lehman`."""
        return (self.name,)

    def features(self, architecture: Architecture) -> tuple[Mapping[str, float], ...]:
        """Return phi, by name."""
        counts = subtree_counts(architecture, self.iterations, self.direction, self.attributes)
        length = 1.0
        if self.normalised:
            length = math.sqrt(sum(count * count for count in counts.values()))

        return ({name: count / length for name, count in counts.items()},)

    def kernel(
        self,
        first: Sequence[Embedded | Architecture],
        second: Sequence[Embedded | Architecture] | None = None,
    ) -> Floats:
        """Return the kernel matrix <phi(x), phi(y)> of all pairs.

        Args:
            first: m networks, prepared or not.
            second: n networks; None means `first`.

        Returns:
            (m, n) float64, positive semi-definite where both are the same.

        Raises:
            InvalidArchitectureError: The networks are of different spaces.
        """
        rows, columns = self._sides(first, second)
        # A feature of one side alone contributes 0.
        names = vocabulary(rows)
        x = matrix(rows, names)
        return x @ (x if columns is None else matrix(columns, names)).T


def subtree_counts(
    architecture: Architecture,
    iterations: int,
    direction: Direction = "both",
    attributes: bool = False,
) -> dict[str, int]:
    """Count the labels of all iterations, such as `1:conv3(conv3 ip|op)` in both directions."""
    live = architecture.live
    sides = []
    if direction != "out":
        sides.append(among(live, architecture.parents))

    if direction != "in":
        sides.append(among(live, architecture.children))

    original = {u: label(architecture.layers[u], attributes) for u in live}
    if operations.vocabulary(architecture.space).is_open:
        # Cells have few layers, and differ in which input is which.
        for u in live:
            original[u] += _uses(architecture, u)

    labels = original
    counts = _count_settings(architecture) if attributes else {}
    for i in range(iterations + 1):
        if i:
            # The previous label is implied: it is this one without the last hop. So a short name
            # shows the whole subtree.
            labels = {u: _compress(original[u] + _near(u, sides, labels)) for u in live}

        for text in labels.values():
            name = f"{i}:{text}"
            counts[name] = counts.get(name, 0) + 1

    return counts


def _uses(architecture: Architecture, u: int) -> str:
    """Return the attributes of a layer, and at which places its output is used but the first."""
    places = set()
    for child in architecture.children[u]:
        for argument in architecture.argument_of[u, child]:
            if argument:
                operation = label(architecture.layers[child])
                places.add(f"@{operation}.{argument}")

    return quote(architecture.layers[u].attributes.text, safe="") + "".join(sorted(places))


def _count_settings(architecture: Architecture) -> dict[str, int]:
    settings = operations.vocabulary(architecture.space).settings
    counts: dict[str, int] = {}
    for u in architecture.live:
        layer = architecture.layers[u]
        for setting in settings:
            value = layer.attributes.get(setting)
            if value is not None:
                name = f"0:{label(layer)}/{setting}={value}"
                counts[name] = counts.get(name, 0) + 1

    return counts


def _near(u: int, sides: Sequence[Mapping[int, list[int]]], labels: Mapping[int, str]) -> str:
    """Return the sorted labels of a layer's neighbours: `(conv3 ip)`, or `(conv3 ip|op)`."""
    texts = []
    for neighbours in sides:
        texts.append(" ".join(sorted(map(labels.__getitem__, neighbours[u]))))

    return f"({'|'.join(texts)})"


def _compress(text: str) -> str:
    if len(text) <= MOST_READABLE:
        return text

    # No label contains the sign: labels of operations are quoted.
    return "#" + hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
