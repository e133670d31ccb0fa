"""Label-histogram lower bounds, a hundred times as fast as a transport.

| symbol | meaning                                                                             | shape   |
|--------|-------------------------------------------------------------------------------------|---------|
| a, b   | label histograms of two networks: weight, or number, of the layers of each label    | (L,)    |
| s      | a - b; P_f, N_f: sums of its positive and of its negative entries over the family f | scalars |
| mu_f   | the smallest cost of matching two different labels of the family f; at most c       | scalar  |
| u      | cost of a unit of weight without a partner in its family: 1 a side (OTMANN), or 1/2 | scalar  |

    otmann, wasserstein    d >= sum over f of  u |P_f - N_f| + min(mu_f, 2 u) min(P_f, N_f)                         (1)
    edit                   d >= max(sum of all P, sum of all N) + lambda | |S| - |S'| |                             (2)

Proof of (1): The bound drops the structural cost, which is >= 0, and replaces each label penalty
between different labels of a family by the smallest one. Neither increases the cost of a matching.
In the remaining transport, costs depend on "same label", "same family" or "neither" only. Its
optimum matches as much as possible within each label at cost 0. It then matches min(P_f, N_f)
within each family at mu_f, or outside the family at 2 u if that is cheaper. The rest is |P_f -
N_f|. OTMANN leaves it unmatched at 1 a unit. The Wasserstein distance matches it with another
family at 1 for a unit of either side, hence 1/2 each.

Proof of (2): Let m pairs of the n and n' layers be matched, s of them of equal kinds. The cost is
at least (n - m) + (n' - m) + (m - s), with m <= min(n, n') and s <= sum over kinds of min(a, b),
which gives max(P, N). In addition, each skip that only one network has costs an insertion of 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class TransportBound:
    """Lower bound of OTMANN and the Wasserstein distance, equation (1).

    Attributes:
        weights: Name of the array of layer weights.
        costs: (L, L) penalties between labels.
        family: (L,) family of each label.
        outside: u.
    """

    weights: str
    costs: Floats
    family: NDArray[np.int64]
    outside: float

    def describe(self, arrays: Arrays) -> Floats:
        """Return the label histograms: (n, L) weights."""
        starts = arrays[f"{self.weights}.starts"]
        rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        sums = np.zeros((len(starts) - 1, len(self.family)))
        np.add.at(sums, (rows, arrays["labels"]), arrays[self.weights])
        return sums

    def bound(self, sketch: Floats, sketches: Floats) -> Floats:
        """See `LowerBound.bound`."""
        bounds = np.zeros(len(sketches))
        for family in np.unique(self.family):
            labels = np.flatnonzero(self.family == family)
            difference = sketches[:, labels] - sketch[labels]
            more = np.maximum(difference, 0).sum(axis=1)
            less = np.maximum(-difference, 0).sum(axis=1)
            bounds += self.outside * np.abs(more - less)
            if len(labels) > 1:
                costs = self.costs[np.ix_(labels, labels)]
                inside = float(costs[~np.eye(len(labels), dtype=bool)].min())
                bounds += min(inside, 2 * self.outside) * np.minimum(more, less)

        return bounds


@dataclass(frozen=True)
class EditBound:
    """Lower bound of the edit distance, equation (2).

    Attributes:
        lam: Weight of the skips.
        bins: Bins of the histogram of kinds; kinds that share a bin can only lower the bound.
    """

    lam: float
    bins: int = 64

    def describe(self, arrays: Arrays) -> Floats:
        """Return the histograms of kinds, then the number of skips: (n, bins + 1)."""
        starts = arrays["kinds.starts"]
        skips = np.diff(arrays["skips.starts"])
        rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        counts = np.zeros((len(starts) - 1, self.bins + 1))
        np.add.at(counts, (rows, arrays["kinds"] % self.bins), 1.0)
        counts[:, -1] = skips
        return counts

    def bound(self, sketch: Floats, sketches: Floats) -> Floats:
        """See `LowerBound.bound`."""
        difference = sketches - sketch
        layers = difference[:, :-1]
        skips = np.abs(difference[:, -1])
        more = np.maximum(layers, 0).sum(axis=1)
        less = np.maximum(-layers, 0).sum(axis=1)
        bounds: Floats = np.maximum(more, less) + self.lam * skips
        return bounds
