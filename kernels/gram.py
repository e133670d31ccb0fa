"""Memory cache of distances: each network is prepared once, each pair computed once.

An agent that scores hundreds of candidates against one history needs thousands of pairs, most of
them repeatedly. `Gram` returns repeated pairs from memory. It is bounded, contains only values that
can be recomputed, and belongs to one process; agents share distances through the archive.

    pairs of the largest square block   a matrix, 8 bytes per pair and component: networks that a surrogate is fitted to
    other pairs                         a table in two generations, some 200 bytes per pair: candidates
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Generic, NamedTuple

import numpy as np
from numpy.typing import NDArray

from archive.architecture.graph import Architecture
from archive.kernels.base import Components, Distance, P, PairDistance, check_one_space, spread
from archive.values import require_at_least

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

BLOCK = 1_000_000
"""Number of pairs that are looked up in one step."""
SQUARE = 2048
"""Most networks of the matrix: 34 MB a component."""


class Gram(Generic[P]):
    """A distance with a memory cache by `Architecture.key`; threads may share one.

    Args:
        distance: The distance. Pairs are cached for a `PairDistance`, prepared networks for every
            distance.
        max_networks: Capacity in prepared networks; the least recently used is dropped first.
        max_pairs: Capacity in pairs, about 200 bytes each. Pairs that no recent call used are
            dropped first.
        prepare: A replacement of `distance.prepare` with the same result.

    Raises:
        UsageError: A bound is below 1.
    """

    def __init__(
        self,
        distance: Distance[P],
        *,
        max_networks: int = 8192,
        max_pairs: int = 400_000,
        prepare: Callable[[Architecture], P] | None = None,
    ) -> None:
        require_at_least(1, max_networks=max_networks, max_pairs=max_pairs)
        self.distance = distance
        self.max_networks = max_networks
        self._prepare = prepare or distance.prepare
        self._networks: OrderedDict[str, tuple[int, P]] = OrderedDict()
        self._pairs = _Memory(len(distance.components), max_pairs)
        self._square = _Square(np.empty(0, np.int64), np.empty((len(distance.components), 0, 0)))
        self._next = 0
        self._lock = Lock()

    def distances(
        self, first: Sequence[Architecture], second: Sequence[Architecture] | None = None
    ) -> Components:
        """Return the distances of all pairs, as `Distance.distances` does.

        Args:
            first: m networks.
            second: n networks; None means `first`.

        Returns:
            Components of shape (c, m, n).

        Raises:
            InvalidArchitectureError: The networks are of different spaces.
        """
        with self._lock:
            rows = list(map(self._look_up_prepared, first))
            columns = rows if second is None else list(map(self._look_up_prepared, second))
            while len(self._networks) > self.max_networks:
                self._networks.popitem(last=False)

            return self._block(rows, columns)

    def remember(
        self, first: Sequence[Architecture], second: Sequence[Architecture], stack: Floats
    ) -> None:
        """Cache distances of a `PairDistance` that were computed elsewhere.

        Args:
            first: m networks.
            second: n networks.
            stack: (c, m, n), as `distances` returns it; NaN marks an unknown distance.
        """
        with self._lock:
            i = self._numbers(first)
            j = self._numbers(second)
            low = np.minimum.outer(i, j)
            high = np.maximum.outer(i, j)
            rows, columns = np.nonzero((low < high) & ~np.isnan(stack).any(axis=0))
            codes = (low[rows, columns] << 32) | high[rows, columns]
            distinct, first_use = np.unique(codes, return_index=True)
            self._pairs.keep(distinct.tolist(), stack[:, rows[first_use], columns[first_use]])

    @property
    def remembered(self) -> tuple[int, int]:
        """Numbers of networks and of pairs in the cache."""
        return len(self._networks), len(self._pairs)

    def _numbers(self, architectures: Sequence[Architecture]) -> Integers:
        """Return the numbers of networks in the cache, (n,) int64."""
        numbered = map(self._look_up_prepared, architectures)
        return np.array([number for number, _ in numbered], np.int64)

    def _look_up_prepared(self, architecture: Architecture) -> tuple[int, P]:
        key = architecture.key
        numbered = self._networks.get(key)
        if numbered is None:
            # Numbers are never reused: pairs of a dropped network cannot be taken for pairs of
            # another.
            numbered = self._networks[key] = (self._next, self._prepare(architecture))
            self._next += 1

        self._networks.move_to_end(key)
        return numbered

    def _block(self, rows: list[tuple[int, P]], columns: list[tuple[int, P]]) -> Components:
        networks = dict([*rows, *columns])
        check_one_space(list(networks.values()))
        if not isinstance(self.distance, PairDistance):
            return self.distance.distances(
                [network for _, network in rows], [network for _, network in columns]
            )

        i = np.array([number for number, _ in rows], np.int64)
        j = np.array([number for number, _ in columns], np.int64)
        stack = np.empty((len(self.distance.components), len(i), len(j)))
        # Listing the pairs of a block takes about a hundred bytes per pair: for 5,000 networks at
        # once, gigabytes.
        height = max(BLOCK // max(len(j), 1), 1)
        for top in range(0, len(i), height):
            band = slice(top, top + height)
            if rows is not columns:
                stack[:, band] = self._spread(networks, i[band], j)
                continue

            stack[:, band, top:] = self._spread(networks, i[band], i[top:])
            stack[:, top:, band] = stack[:, band, top:].transpose(0, 2, 1)

        if rows is columns and len(self._square.numbers) <= len(networks) <= SQUARE:
            self._square = _Square.of(i, stack)

        return Components.of_stack(stack, self.distance.unnormalised)

    def _spread(self, networks: dict[int, P], i: Integers, j: Integers) -> Floats:
        return spread(
            lambda pairs: self._recall(networks, pairs), len(self.distance.components), i, j
        )

    def _recall(self, networks: dict[int, P], pairs: Integers) -> Floats:
        values, other = self._square.recall(pairs)
        if len(other):
            codes: list[int] = ((pairs[other, 0] << 32) | pairs[other, 1]).tolist()
            of_pairs, missing = self._pairs.recall(codes)
            if len(missing):
                of_pairs[:, missing] = self._compute(networks, pairs[other[missing]])

            self._pairs.keep(codes, of_pairs)
            values[:, other] = of_pairs

        return values

    def _compute(self, networks: dict[int, P], pairs: Integers) -> Floats:
        assert isinstance(self.distance, PairDistance)
        numbers, positions = np.unique(pairs, return_inverse=True)
        selected = [networks[int(number)] for number in numbers]
        # The smaller key first, as in the archive: a distance has the same digits whichever process
        # computed it.
        rank = np.argsort(np.argsort([network.key for network in selected]))
        ordered = positions.reshape(pairs.shape)
        swapped = rank[ordered[:, 0]] > rank[ordered[:, 1]]
        return self.distance.pairs(selected, np.where(swapped[:, None], ordered[:, ::-1], ordered))


class _Square(NamedTuple):
    """Distances (c, n, n) of all pairs of some networks, by their numbers, ascending."""

    numbers: Integers
    stack: Floats

    @classmethod
    def of(cls, numbers: Integers, stack: Floats) -> _Square:
        """Return the distances of a block of rows and columns that may repeat networks."""
        distinct, first = np.unique(numbers, return_index=True)
        return cls(distinct, stack[:, first[:, None], first])

    def recall(self, pairs: Integers) -> tuple[Floats, Integers]:
        """Return (c, q) values of pairs of numbers, and the positions of missing ones."""
        values = np.empty((len(self.stack), len(pairs)))
        if not len(self.numbers):
            return values, np.arange(len(pairs))

        position = np.minimum(np.searchsorted(self.numbers, pairs), len(self.numbers) - 1)
        inside = (self.numbers[position] == pairs).all(axis=1)
        values[:, inside] = self.stack[:, position[inside, 0], position[inside, 1]]
        return values, np.flatnonzero(~inside)


class _Memory:
    """Cache of columns by code: the old generation is dropped when the young one is full.

    A call moves all entries it uses into the young generation. Alternative: least recently used,
    whose bookkeeping for each of a hundred thousand pairs costs more than it saves.
    """

    def __init__(self, components: int, capacity: int) -> None:
        self.half = max(capacity // 2, 1)
        self.young = _Generation(components)
        self.old = _Generation(components)

    def __len__(self) -> int:
        return len(self.young.rows.keys() | self.old.rows.keys())

    def recall(self, codes: list[int]) -> tuple[Floats, Integers]:
        """Return (c, q) values and the positions of the missing ones."""
        values = np.empty((len(self.young.values), len(codes)))
        missing = np.arange(len(codes))
        for generation in (self.young, self.old):
            rows = generation.rows
            position = np.array([rows.get(codes[q], -1) for q in missing.tolist()], np.int64)
            values[:, missing[position >= 0]] = generation.values[:, position[position >= 0]]
            missing = missing[position < 0]

        return values, missing

    def keep(self, codes: list[int], values: Floats) -> None:
        """Cache the values; more than half of the capacity in one call is not cached."""
        fresh = [q for q, code in enumerate(codes) if code not in self.young.rows]
        if len(fresh) > self.half:
            return

        if len(self.young.rows) + len(fresh) > self.half:
            self.old = self.young
            self.young = _Generation(len(values))

        self.young.add([codes[q] for q in fresh], values[:, fresh])


class _Generation:
    """Table of columns that grows by doubling."""

    def __init__(self, components: int) -> None:
        self.rows: dict[int, int] = {}
        self.values: Floats = np.empty((components, 0))

    def add(self, codes: list[int], values: Floats) -> None:
        size = len(self.rows)
        if size + len(codes) > self.values.shape[1]:
            grown = np.empty((len(self.values), max(2 * size, size + len(codes))))
            grown[:, :size] = self.values[:, :size]
            self.values = grown

        self.values[:, size : size + len(codes)] = values
        self.rows.update(zip(codes, range(size, size + len(codes)), strict=True))
