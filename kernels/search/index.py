"""Index of prepared networks for nearest-neighbour queries.

| kind of distance         | data kept                 | search                                               |
|--------------------------|---------------------------|------------------------------------------------------|
| `FeatureDistance`        | sparse features           | all distances, at memory speed                       |
| `PairDistance` with a    | prepared layers, sketches | in order of a lower bound, until it exceeds the k-th |
| `lower_bound`            |                           |                                                      |
| any other `PairDistance` | prepared networks         | all distances, one by one                            |

The second search is exact: the lower bound (`PairDistance.lower_bound`) of every network that was
not compared is larger than the distance of the k-th nearest. It compares at most `MOST` networks,
so that its time is bounded: in indexes of up to that many networks every result is exact. In larger
ones, a result states how many of its networks are
certain: those nearer than the bound at which the search stopped.

Sparse features are packed as the concatenated entries of each component
(`archive.kernels.features.l1_blocks.Entries`): the numbers and values of the features of a vector,
or the places of a measure on a line with its distribution function. Features are numbered in the
order of their first occurrence; the array of their names is stored with them.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from archive.architecture.graph import Architecture
from archive.errors import UsageError
from archive.kernels.base import Distance, PairDistance
from archive.kernels.distances.tree_wasserstein.measures import cumulate
from archive.kernels.features import l1_blocks
from archive.kernels.features.embedding import Embedded, FeatureDistance, features_of
from archive.kernels.features.l1_blocks import Entries
from archive.kernels.packing import Arrays, join, pack, unpack

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST = 20_000
"""Largest number of networks that one query of a `PairDistance` compares."""

FIRST = 128
"""Networks in the first block between two checks of the bound; each block is twice as large as the
one before."""
ROUNDING = 1e-9
"""Relative rounding error of a bound: its weights are summed in another order."""

_SIDES = ("starts", "places", "values")


@dataclass(frozen=True, eq=False)
class NearestNeighbours:
    """Nearest networks of an index.

    Attributes:
        positions: (k,) in the index, nearest first; equal ones by position.
        distances: (k,) float64.
        certain: Number of leading networks that no network left out can precede; k for an exact
            result.
        compared: Number of networks compared.
    """

    positions: Integers
    distances: Floats
    certain: int
    compared: int


class Index(ABC):
    """Networks of one space, prepared for one distance.

    The order is by the mean of the unnormalised components, or by one component.

    Args:
        distance: The distance.
        space: Space of the networks.
        arrays: Stored `arrays` of an earlier index of the same distance and space.
    """

    def __init__(self, distance: Distance[Any], space: str, arrays: Arrays | None = None) -> None:
        self.distance = distance
        self.space = space
        self.arrays: Arrays = dict(arrays or {})

    @abstractmethod
    def add(self, networks: Sequence[Any]) -> None:
        """Add prepared networks, of this space."""

    @abstractmethod
    def nearest(
        self, network: Architecture, k: int, component: int | None, allowed: Integers
    ) -> NearestNeighbours:
        """Return the networks nearest to a query.

        Args:
            network: The query, of this space.
            k: Largest number of networks to return.
            component: Position of the component to order by; None for the mean of the unnormalised
                ones.
            allowed: Positions of the networks to search, ascending.
        """

    @property
    def storable(self) -> bool:
        """Whether the index can be restored from `arrays` alone."""
        return True


def index(distance: Distance[Any], space: str, arrays: Arrays | None = None) -> Index:
    """Return an index for a distance.

    Raises:
        UsageError: The distance is neither a `FeatureDistance` nor a `PairDistance`.
    """
    if isinstance(distance, FeatureDistance):
        return FeatureIndex(distance, space, arrays)

    if not isinstance(distance, PairDistance):
        raise UsageError(
            f"the kernel {distance.name} has no index: it is neither a "
            "FeatureDistance nor a PairDistance"
        )

    return (
        PrunedIndex(distance, space, arrays)
        if distance.lower_bound(space)
        else BruteForceIndex(distance, space)
    )


def component_of(distance: Distance[Any], name: str | None) -> int | None:
    """Return the position of a component by its name; None means the mean.

    Raises:
        UsageError: There is no such component.
    """
    if name is not None and name not in distance.components:
        raise UsageError(
            f"the kernel {distance.name} has the components "
            f"{', '.join(distance.components)}, got {name}"
        )

    return None if name is None else distance.components.index(name)


@final
class FeatureIndex(Index):
    """Index of sparse features; a query computes every distance."""

    def __init__(self, distance: FeatureDistance, space: str, arrays: Arrays | None = None) -> None:
        super().__init__(distance, space, arrays)
        self._features = distance

    def add(self, networks: Sequence[Any]) -> None:
        """Append the features."""
        self.arrays = add_features(self._features, self.arrays, networks)

    def nearest(
        self, network: Architecture, k: int, component: int | None, allowed: Integers
    ) -> NearestNeighbours:
        """Compute all distances and select the smallest."""
        values = feature_distances(
            self._features, self.arrays, self.distance.prepare(network), component
        )[allowed]
        order = _smallest(values, k)
        return NearestNeighbours(allowed[order], values[order], len(order), len(values))


class _PairIndex(Index):
    """Common part of the two indexes of a `PairDistance`: the comparison with chosen networks."""

    @abstractmethod
    def unpack(self, position: int) -> Any:
        """Return a prepared network."""

    def compare(self, query: Any, positions: Integers, component: int | None) -> Floats:
        assert isinstance(self.distance, PairDistance)
        if not len(positions):
            return np.zeros(0)

        networks = [query, *(self.unpack(int(position)) for position in positions)]
        pairs = np.stack([np.zeros(len(positions), np.int64), np.arange(1, len(networks))], axis=1)
        values = self.distance.pairs(networks, pairs)
        mean = component is None
        distances: Floats = (
            values[: self.distance.unnormalised].mean(axis=0) if mean else values[component]
        )
        return distances


@final
class PrunedIndex(_PairIndex):
    """Index of prepared networks and their sketches.

    A query compares in the order of a lower bound.
    """

    def __init__(
        self, distance: PairDistance[Any], space: str, arrays: Arrays | None = None
    ) -> None:
        super().__init__(distance, space, arrays)
        self._class: type[Any] | None = None
        bound = distance.lower_bound(space)
        assert bound is not None
        self._bound = bound

    def add(self, networks: Sequence[Any]) -> None:
        """Append the prepared networks and their sketches."""
        if not networks:
            return

        arrays = pack(networks)
        arrays["sketches"] = self._bound.describe(arrays)
        self.arrays = join(self.arrays, arrays) if self.arrays else arrays

    def unpack(self, position: int) -> Any:
        """Return the prepared network at a position."""
        assert self._class is not None
        # The key may be empty: pairs are compared by position.
        return unpack(self._class, self.arrays, position, "", self.space)

    def nearest(
        self, network: Architecture, k: int, component: int | None, allowed: Integers
    ) -> NearestNeighbours:
        """Compare in the order of the bound until it exceeds the k-th smallest distance."""
        query = self.distance.prepare(network)
        self._class = type(query)
        bounds = self._bounds(query, component)[allowed]
        order = np.argsort(bounds, kind="stable")
        done = 0
        size = max(FIRST, 2 * k)
        values = np.zeros(0)
        while done < len(order):
            worst = np.partition(values, k - 1)[k - 1] if len(values) >= k else np.inf
            # All networks that may belong to the k nearest, up to the block size and the limit.
            reach = int(np.searchsorted(bounds[order], worst, side="right"))
            end = min(done + size, reach, MOST)
            if end <= done:
                break

            values = np.concatenate(
                [values, self.compare(query, allowed[order[done:end]], component)]
            )
            done = end
            size = 2 * size

        nearest = np.lexsort((order[:done], values))[:k]
        floor = bounds[order[done]] if done < len(order) else np.inf
        certain = int((values[nearest] <= floor).sum())
        return NearestNeighbours(allowed[order[nearest]], values[nearest], certain, done)

    def _bounds(self, query: Any, component: int | None) -> Floats:
        arrays = pack([query])
        sketch = self._bound.describe(arrays)[0]
        unnormalised = self._bound.bound(sketch, self.arrays["sketches"]) * (1 - ROUNDING)
        if component is None or component < self.distance.unnormalised:
            return unnormalised

        totals = self.arrays["total"] + query.total
        bounds: Floats = unnormalised / np.where(totals > 0, totals, 1.0)
        return bounds


@final
class BruteForceIndex(_PairIndex):
    """List of prepared networks; a query computes every distance, up to `MOST`."""

    def __init__(self, distance: PairDistance[Any], space: str) -> None:
        super().__init__(distance, space)
        self._networks: list[Any] = []

    @property
    def storable(self) -> bool:
        """False: a plug-in's prepared networks are of an unknown class, and not in `arrays`."""
        return False

    def add(self, networks: Sequence[Any]) -> None:
        """Append prepared networks."""
        self._networks += networks

    def unpack(self, position: int) -> Any:
        """Return the prepared network at a position."""
        return self._networks[position]

    def nearest(
        self, network: Architecture, k: int, component: int | None, allowed: Integers
    ) -> NearestNeighbours:
        """Compute the distances to the first `MOST` networks and select the smallest."""
        compared = allowed[:MOST]
        values = self.compare(self.distance.prepare(network), compared, component)
        order = _smallest(values, k)
        certain = len(order) if len(compared) == len(allowed) else 0
        return NearestNeighbours(compared[order], values[order], certain, len(compared))


def _smallest(values: Floats, k: int) -> Integers:
    """Return the positions of the k smallest values, ascending; equal ones by position."""
    k = min(k, len(values))
    if not k:
        return np.zeros(0, np.int64)

    limit = np.partition(values, k - 1)[k - 1]
    near = np.flatnonzero(values <= limit)
    return near[np.argsort(values[near], kind="stable")][:k]


def add_features(distance: FeatureDistance, arrays: Arrays, networks: Sequence[Embedded]) -> Arrays:
    """Return the arrays of sparse features with further networks appended.

    Args:
        distance: The distance of the features.
        arrays: A result of this function, or nothing.
        networks: Prepared networks.
    """
    joined: Arrays = {}
    for part, comparison in enumerate(distance.comparisons):
        names = _feature_numbers(arrays, part)
        entries = _entries(features_of(networks, part), names, comparison)
        new: Arrays = {f"{part}.{side}": getattr(entries, side) for side in _SIDES}
        stored = {name: array for name, array in arrays.items() if name in new}
        joined.update(join(stored, new) if stored else new)
        joined[f"{part}.names"] = np.frombuffer(json.dumps(list(names)).encode(), np.uint8)

    return joined


def feature_distances(
    distance: FeatureDistance, arrays: Arrays, network: Embedded, component: int | None
) -> Floats:
    """Return the (n,) distances of a prepared network from all packed ones.

    Args:
        distance: The distance of the features.
        arrays: A result of `add_features`.
        network: A prepared network.
        component: Position of a component; None means the mean of all. A distance with weights
            has one component, the weighted sum of its parts.
    """
    from archive.kernels.features import l1_rows as l1

    parts = len(distance.comparisons)
    weights = np.full(parts, 1 / parts)
    if distance.part_weights is not None:
        weights = np.array(distance.part_weights)
    elif component is not None:
        weights = np.eye(parts)[component]

    out = np.zeros((1, len(arrays["0.starts"]) - 1 if arrays else 0))
    for part, comparison in enumerate(distance.comparisons if out.size else ()):
        weight = weights[part]
        if not weight:
            continue

        y = Entries(*(arrays[f"{part}.{side}"] for side in _SIDES))
        x = _entries([network.features[part]], _feature_numbers(arrays, part), comparison)
        if comparison == "line":
            l1.add_steps(*x, *y, weight, False, 0, 1, out)
        else:
            l1.add_sparse(*x, *y, comparison == "l2", weight, False, 0, 1, out)

    row: Floats = out[0]
    return row


def _feature_numbers(arrays: Arrays, part: int) -> dict[str, int]:
    """Return the numbers of a component's features by name."""
    stored = arrays.get(f"{part}.names")
    if stored is None:
        return {}

    names = json.loads(stored.tobytes())
    return dict(zip(names, range(len(names)), strict=True))


def _entries(vectors: Sequence[Any], numbers: dict[str, int], comparison: str) -> Entries:
    """Pack vectors or, for the comparison `line`, measures; new names are added to `numbers`."""
    if comparison == "line":
        return l1_blocks.entries_of_steps(list(map(cumulate, vectors)))

    for vector in vectors:
        for name in vector:
            numbers.setdefault(name, len(numbers))

    return l1_blocks.entries_of(vectors, numbers)
