"""Inputs of the trees: the features of an encoding that vary most over networks, as a dense matrix.

| symbol | meaning                                                               | shape  |
|--------|-----------------------------------------------------------------------|--------|
| m, V   | networks; distinct features of all networks seen                      | scalars|
| v      | variance of a feature over networks, in units of its largest square   | (V,)   |
| F      | columns: the features of greatest v, at most `MOST_COLUMNS`           | scalar |

A feature that a share p of the networks has, with value 1, has v = p (1 - p). Features of all
networks, or of hardly any, do not distinguish networks. Encodings of paths and neighbourhoods have
thousands of features, most of which occur in a handful of networks.

`Merged` has the distinct networks of a history, and `relevant` selects a few hundred of them for a
Gaussian process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from threading import Lock
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from archive.agents.acquisition.listing import Listing
from archive.agents.surrogates.base import Array
from archive.architecture.graph import Architecture
from archive.architecture.networks import network_keys, take
from archive.kernels.features.embedding import EmbeddedDistance

Singles = NDArray[np.float32]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_COLUMNS = 256
"""Columns of a matrix.

On 20,001 cells of NAS-Bench-101, 128 rank the best tenth worse (0.47 instead of 0.64, after 10,000
evaluations)."""


MOST_KNOWN = 300_000
"""Capacity of a cache in networks; the features of a network take some 0.7 kB."""


def forget(cache: dict[str, Any]) -> None:
    """Delete the oldest entries of a cache with more than `MOST_KNOWN`."""
    for key in list(islice(cache, max(len(cache) - MOST_KNOWN, 0))):
        del cache[key]


@final
class SparseFeatures:
    """Features of networks by key, computed once. Threads may share one.

    Args:
        kinds: Sources of the features.
        listing: Members of the space; their features are prepared together and cached on disk.
    """

    def __init__(self, kinds: Sequence[EmbeddedDistance], listing: Listing | None = None) -> None:
        self.kinds = tuple(kinds)
        self.listing = listing or Listing(())
        self._numbers: dict[tuple[int, str], int] = {}
        self._known: dict[str, tuple[Integers, Floats]] = {}
        self._lock = Lock()

    def varying(self, networks: Sequence[Architecture]) -> Integers:
        """Return the numbers of the features that vary most, in the order of their names: (F,)."""
        _, numbers, entries = self.entries(networks)
        values = entries.astype(np.float32)
        size = int(numbers.max(initial=-1)) + 1
        largest = np.zeros(size)
        np.maximum.at(largest, numbers, np.abs(values))
        scaled = values / np.maximum(largest[numbers], np.finfo(np.float32).tiny)
        mean = np.bincount(numbers, scaled, size) / len(networks)
        v = np.bincount(numbers, np.square(scaled), size) / len(networks) - np.square(mean)
        # The numbers of features depend on earlier calls, and the order of columns decides between
        # equal splits of a tree. Columns are therefore sorted by name.
        names = list(islice(self._numbers, size))
        order = sorted(
            np.flatnonzero(v > 1e-9).tolist(), key=lambda feature: (-v[feature], names[feature])
        )[:MOST_COLUMNS]
        return self.by_name(np.array(order, np.int64))

    def matrix(self, networks: Sequence[Architecture], columns: Integers) -> Singles:
        """Return the chosen features: (m, F) float32."""
        rows, numbers, values = self.entries(networks)
        column_of = np.full(len(self._numbers), -1, np.int64)
        column_of[columns] = np.arange(len(columns))
        used = column_of[numbers] >= 0
        # A constant column, so that trees can be fitted to networks that no feature tells apart.
        dense = np.zeros((len(networks), max(len(columns), 1)), np.float32)
        dense[rows[used], column_of[numbers[used]]] = values[used]
        return dense

    @property
    def count(self) -> int:
        """Number of distinct features of all networks seen."""
        return len(self._numbers)

    def by_name(self, numbers: Integers) -> Integers:
        """Return the numbers of features in the order of their components and names."""
        names = list(islice(self._numbers, int(numbers.max(initial=-1)) + 1))
        return np.array(sorted(numbers.tolist(), key=names.__getitem__), np.int64)

    def entries(self, networks: Sequence[Architecture]) -> tuple[Integers, Integers, Floats]:
        """Return row, number and value of each feature that is not 0, network by network."""
        if not networks:
            return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)

        with self._lock:
            parts = [self._known.get(network.key) or self._add(network) for network in networks]
            forget(self._known)

        numbers, values = zip(*parts, strict=True)
        rows = np.repeat(np.arange(len(parts)), list(map(len, numbers)))
        return rows, np.concatenate(numbers), np.concatenate(values)

    def _add(self, network: Architecture) -> tuple[Integers, Floats]:
        numbers: list[int] = []
        values: list[float] = []
        parts: list[Mapping[str, float]] = []
        for kind in self.kinds:
            parts += self.listing.prepare(kind, network).features

        for component, features in enumerate(parts):
            for name, value in features.items():
                numbers.append(self._numbers.setdefault((component, name), len(self._numbers)))
                values.append(value)

        added = np.array(numbers, np.int64), np.array(values)
        self._known[network.key] = added
        return added


@final
@dataclass(frozen=True, eq=False)
class Merged:
    """The distinct networks of a history in the order of their first evaluation; immutable.

    Attributes:
        networks: n networks.
        position: Key of each to its row.
        sums: (n,) float64, sums of their scores.
        counts: (n,) int64, numbers of their evaluations.
    """

    networks: tuple[Architecture, ...]
    position: Mapping[str, int]
    sums: Array
    counts: Integers

    @classmethod
    def of(cls, networks: Sequence[Architecture], scores: Array) -> Merged:
        """Merge evaluations, given by their networks and (m,) scores."""
        return cls((), {}, np.empty(0), np.empty(0, np.int64)).adding(networks, scores)

    def adding(self, networks: Sequence[Architecture], scores: Array) -> Merged:
        """Return the history with m more evaluations, equal bit for bit to one merge of all."""
        position = dict(self.position)
        count = len(self.networks)
        for key in network_keys(networks):
            position.setdefault(key, len(position))

        positions = np.array(list(map(position.__getitem__, network_keys(networks))), np.int64)
        rows, first = np.unique(positions, return_index=True)
        new = tuple(take(networks, first[rows >= count]))
        sums = np.concatenate([self.sums, np.zeros(len(new), self.sums.dtype)])
        counts = np.concatenate([self.counts, np.zeros(len(new), self.counts.dtype)])
        np.add.at(sums, positions, scores)
        np.add.at(counts, positions, 1)
        return Merged((*self.networks, *new), position, sums, counts)

    @property
    def means(self) -> Array:
        """The mean score of each network: (n,) float64."""
        means: Array = self.sums / self.counts
        return means


def relevant(values: Array, most: int) -> Integers:
    """Return the positions of networks for a Gaussian process, ascending.

    Half of them are the best networks, a quarter the latest, and the rest are spread over the
    others.

    Args:
        values: (n,) float64, in the order of evaluation.
        most: Number of positions; all if there are fewer networks.
    """
    if len(values) <= most:
        return np.arange(len(values))

    selected = np.zeros(len(values), np.bool_)
    selected[np.argsort(-values, kind="stable")[: most // 2]] = True
    selected[len(values) - most // 4 :] = True
    others = np.flatnonzero(~selected)
    selected[
        others[np.linspace(0, len(others) - 1, most - int(selected.sum())).astype(np.int64)]
    ] = True
    return np.flatnonzero(selected)
