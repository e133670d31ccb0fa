"""Distances in the archive: each pair is computed once and shared by all studies.

    evaluated networks ── rows of new ones ──> stored by another agent or study: cached
                                └─────────> missing: computed in one block, stored, cached

The search loop calls this after every evaluation. Rows already complete are not read again, so that
one more network costs one row: one read, one block of n - 1 pairs, n - 1 relationships added.
`archive.kernels.stored` defines which distances are stored: OTMANN's for every study of networks of
layers, others where the agent uses them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from archive import kernels
from archive.architecture.graph import Architecture
from archive.kernels.base import PairDistance
from archive.kernels.stored import has_costly_distances, kinds, worth_storing

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.kernels.gram import Gram

ALL_PAIRS = 2000
"""Most architectures of which all pairs are stored: two million relationships."""

NEAREST = 64
"""Stored distances of each further architecture, the smallest ones."""

Pairs = list[tuple[str, str]]


class DistanceSync:
    """Stores the distances of a search in the archive, and fills the agent's caches with them.

    Safe to interrupt and to run in several processes: only whole pairs are stored, and two
    processes that compute a pair get the same value, with the smaller key first.

    Args:
        archive: The archive.
        grams: Distance caches of the agent (`Agent.grams`).
    """

    def __init__(self, archive: Archive, grams: Iterable[Gram[Any]] = ()) -> None:
        """Start without any pair."""
        self._archive = archive
        self._grams = list(grams)
        self._networks: dict[str, Architecture] = {}
        self._whole: dict[str, set[str]] = {}

    def keep(self, architectures: Mapping[str, Architecture]) -> int:
        """Compute and store the missing distances to these and earlier architectures.

        Beyond `ALL_PAIRS` architectures, only the `NEAREST` smallest distances of new architectures
        are stored.

        Args:
            architectures: Key to architecture; all calls of one space.

        Returns:
            Number of stored pairs, summed over the distances.
        """
        if not architectures:
            return 0

        space = next(iter(architectures.values())).space
        if not has_costly_distances(space):
            return 0

        self._networks.update(architectures)
        return sum(self._keep(distance, grams) for distance, grams in self._distances(space))

    def _distances(self, space: str) -> list[tuple[PairDistance[Any], list[Gram[Any]]]]:
        """Return each distance to store with the caches that use it."""
        by_name: dict[str, tuple[PairDistance[Any], list[Gram[Any]]]] = {}
        for distance, grams in [
            (kernels.get("otmann"), []),
            *((gram.distance, [gram]) for gram in self._grams),
        ]:
            if worth_storing(distance, space):
                assert isinstance(distance, PairDistance)
                by_name.setdefault(next(iter(kinds(distance))), (distance, []))[1].extend(grams)

        return list(by_name.values())

    def _keep(self, distance: PairDistance[Any], grams: Sequence[Gram[Any]]) -> int:
        many = len(self._networks) > ALL_PAIRS
        # In a long history of another search only new architectures are computed: the whole would
        # take hours.
        whole = self._whole.setdefault(
            next(iter(kinds(distance))), set(self._networks) if many else set()
        )
        new = sorted(self._networks.keys() - whole)
        keys = sorted(self._networks)
        if not new:
            return 0

        stack = self._read_stored(distance, new, keys)
        pairs = _list_missing(new, keys, stack)
        if pairs:
            values = _compute(distance, self._networks, pairs)
            _fill(stack, new, keys, pairs, values)
            kept = _nearest(pairs, values[0], new) if many else np.arange(len(pairs))
            pairs = [pairs[row] for row in kept]
            columns: dict[str, NDArray[np.float64]] = {}
            for name, part in kinds(distance).items():
                column = values[part][:, kept].T
                columns[name] = column[:, 0] if column.shape[1] == 1 else column

            self._archive.distances.store(pairs, columns)

        for gram in grams:
            first = list(map(self._networks.__getitem__, new))
            gram.remember(first, list(map(self._networks.__getitem__, keys)), stack)

        whole.update(new)
        return len(pairs)

    def _read_stored(
        self, distance: PairDistance[Any], new: Sequence[str], keys: Sequence[str]
    ) -> NDArray[np.float64]:
        """Return (c, m, n) distances, NaN where missing."""
        stack = np.full((len(distance.components), len(new), len(keys)), np.nan)
        store = self._archive.distances
        for name, part in kinds(distance).items():
            block = (
                store.matrix(keys, name) if list(new) == list(keys) else store.rows(new, keys, name)
            )
            inner = block if block.ndim == 3 else block[None]
            if inner.shape == stack[part].shape:
                stack[part] = inner

        return stack


def _list_missing(new: Sequence[str], keys: Sequence[str], stack: NDArray[np.float64]) -> Pairs:
    """Return the missing pairs of a (c, m, n) block, each once, smaller key first."""
    missing = np.isnan(stack).any(axis=0)
    pairs = set()
    for i, j in np.argwhere(missing):
        if new[i] != keys[j]:
            pairs.add((min(new[i], keys[j]), max(new[i], keys[j])))

    return sorted(pairs)


def _compute(
    distance: PairDistance[Any], architectures: Mapping[str, Architecture], pairs: Pairs
) -> NDArray[np.float64]:
    """Return (c, q) distances."""
    keys = sorted(set(chain.from_iterable(pairs)))
    row_of = _positions(keys)
    networks = [distance.prepare(architectures[key]) for key in keys]
    rows = list(map(row_of.__getitem__, chain.from_iterable(pairs)))
    return distance.pairs(networks, np.array(rows, np.int64).reshape(-1, 2))


def _positions(keys: Sequence[str]) -> dict[str, int]:
    return dict(zip(keys, range(len(keys)), strict=True))


def _nearest(pairs: Pairs, values: NDArray[np.float64], new: Sequence[str]) -> NDArray[np.int64]:
    """Return the positions of the pairs that are among the nearest of one of the new keys."""
    of: dict[str, list[int]] = {key: [] for key in new}
    for row, pair in enumerate(pairs):
        for key in pair:
            if key in of:
                of[key].append(row)

    kept: set[int] = set()
    for rows in of.values():
        kept.update(sorted(rows, key=lambda row: values[row])[:NEAREST])

    return np.array(sorted(kept), np.int64)


def _fill(
    stack: NDArray[np.float64],
    new: Sequence[str],
    keys: Sequence[str],
    pairs: Pairs,
    values: NDArray[np.float64],
) -> None:
    """Write the (c, q) distances of pairs into their entries of the (c, m, n) block."""
    row_of = _positions(new)
    column_of = _positions(keys)
    for a, b in ((0, 1), (1, 0)):
        entries: list[int] = []
        rows: list[int] = []
        columns: list[int] = []
        for position, pair in enumerate(pairs):
            if pair[a] in row_of:
                entries.append(position)
                rows.append(row_of[pair[a]])
                columns.append(column_of[pair[b]])

        stack[:, rows, columns] = values[:, entries]
