"""Profiles of networks: how often each operation, and each pair of joined operations, occurs in a
network.

| symbol | meaning                                                                                        | shape |
|--------|------------------------------------------------------------------------------------------------|-------|
| phi    | square roots of the numbers of layers `op@b` and of edges `op>op`; b = round(log2(units))      | (n, p)|
| d      | Euclidean distance of phi                                                                      |       |

The square root keeps one frequent operation from deciding alone, as in the Hellinger distance. A
profile is read from the stored text of a network (`archive.architecture.compact`), at about 30
microseconds a network of 20 layers. The kernel `weisfeiler-lehman` tells more networks apart, at
ten times that.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def matrix(codes: Sequence[str]) -> csr_array:
    """Return the profiles of n networks, (n, p) float64, from their texts; features in order of
    first occurrence.
    """
    from scipy.sparse import csr_array

    column: dict[str, int] = {}
    starts = [0]
    places = []
    counts = []
    for code in codes:
        for name, count in profile(code).items():
            places.append(column.setdefault(name, len(column)))
            counts.append(count)

        starts.append(len(places))

    shape = (len(codes), max(1, len(column)))
    return csr_array(
        (np.sqrt(np.array(counts, np.float64)), np.array(places), np.array(starts)), shape=shape
    )


def profile(code: str) -> Counter[str]:
    """Return the profile of one network: numbers of `op@b` and `op>op`."""
    layers, *numbers, edges = json.loads(code)
    plain = [_parts(layer) for layer in layers]
    if numbers:
        plain = [plain[at] for at in numbers[0]]

    counted = Counter(f"{op}@{width}" for op, width in plain)
    counted.update(f"{plain[edge[0]][0]}>{plain[edge[1]][0]}" for edge in edges)
    return counted


def _parts(layer: Any) -> tuple[str, int | str]:
    """Return the operation of a layer and its binned units; without units, an empty text."""
    if isinstance(layer, str):
        return layer, ""

    units = layer[1]
    return layer[0], round(math.log2(units)) if units else ""
