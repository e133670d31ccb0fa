"""Concatenated distances of several kernels, with a cache of whole rows to the members of a space.

An agent that ranks a listed space needs, after every evaluation, the distances of each known
network from every member. Rows are cached. Known networks are added one at a time, so that a
proposal computes one row instead of hundreds.

| symbol | meaning                                                         | shape       |
|--------|-----------------------------------------------------------------|-------------|
| M      | members of the space                                            | scalar      |
| c      | components of all distances together, in their order            | scalar      |
| rows   | distances of one known network from all members, in float32     | (c, M) each |
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from threading import Lock
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from archive.agents.acquisition.listing import Listing, Vectors
from archive.agents.surrogates.base import Array
from archive.architecture.graph import Architecture
from archive.architecture.networks import networks_by_key
from archive.kernels.base import Components, Distance
from archive.kernels.features import l1_blocks
from archive.kernels.features.embedding import EmbeddedDistance, FeatureDistance, features_of
from archive.kernels.features.l1_blocks import BlockPart
from archive.kernels.gram import Gram

MOST_BYTES = 2**29
"""Bytes of cached rows: 2,900 known networks of NAS-Bench-201 with five components."""
FEW = 1000
"""Number of columns below which a row to all members costs more than it saves."""
LARGE = 2000
"""Number of distances below which features are compared one network at a time."""


@final
class CachedDistances:
    """Distances for a Gaussian process, cached by row; threads may share one.

    The cache changes no result.

    Args:
        distances: One or more distances; their components are concatenated.
        listing: All networks of the space, where they can be listed and rows are cheap.
        most_bytes: Memory for cached rows; rows of a call that needs more are not cached.
    """

    def __init__(
        self,
        distances: Sequence[Distance[Any]],
        listing: Listing | None = None,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self.kinds = tuple(distances)
        self.listing = listing or Listing(())
        self.components = sum(len(kind.components) for kind in self.kinds)
        # Room for all members, and for as many other networks.
        most = max(8192, 2 * len(self.listing))
        self.grams = []
        for kind in self.kinds:
            self.grams.append(Gram(kind, max_networks=most, prepare=self._prepare(kind)))

        # Rows of members come from vectors of features if all distances have features, else from
        # the distances.
        self._featured = tuple(kind for kind in self.kinds if isinstance(kind, FeatureDistance))
        self._laid_out = len(self._featured) == len(self.kinds)
        self._rows: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        self._most_rows = most_bytes // max(4 * self.components * len(self.listing), 1)
        self._lock = Lock()

    def distances(
        self, first: Sequence[Architecture], second: Sequence[Architecture] | None = None
    ) -> Components:
        """Return the distances of all pairs, all components unnormalised: see `Distance.distances`.

        Distances to many members are rounded to single precision, whether cached or not.
        """
        if second is None or len(second) < FEW or (columns := self._columns(second)) is None:
            return self._components(self._compute(first, second))

        if len(first) > self._most_rows:
            return self._components(
                self._compute(first, second).astype(np.float32).astype(np.float64)
            )

        with self._lock:
            rows = self._member_rows(first)

        stack = np.empty((self.components, len(first), len(second)))
        for index, row in enumerate(rows):
            stack[:, index] = row[:, columns]

        return self._components(stack)

    def _prepare(self, kind: Distance[Any]) -> Callable[[Architecture], Any] | None:
        return partial(self.listing.prepare, kind) if isinstance(kind, FeatureDistance) else None

    def _columns(self, networks: Sequence[Architecture]) -> slice | NDArray[np.int64] | None:
        positions = self._positions(networks)
        columns = np.array(positions, np.int64)
        if (columns < 0).any():
            return None

        # A slice is copied several times as fast as an index array.
        return slice(positions[0], positions[-1] + 1) if (np.diff(columns) == 1).all() else columns

    def _member_rows(self, networks: Sequence[Architecture]) -> list[NDArray[np.float32]]:
        new = networks_by_key(networks, self._rows)
        if self._laid_out:
            inside = {}
            for key in new:
                if key in self.listing.position:
                    inside[key] = self.listing.position[key]

            if inside:
                self._keep(inside, self._member_distances(list(inside.values())))

            for key in inside:
                del new[key]

        if new:
            self._keep(new, self._to_members(list(new.values())))

        for network in networks:
            self._rows.move_to_end(network.key)

        while len(self._rows) > self._most_rows:
            self._rows.popitem(last=False)

        return [self._rows[network.key] for network in networks]

    def _keep(self, keys: Iterable[str], block: Array) -> None:
        rounded = block.astype(np.float32)
        for column, key in enumerate(keys):
            self._rows[key] = rounded[:, column].copy()

    def _member_distances(self, rows: Sequence[int]) -> Array:
        stack = np.zeros((self.components, len(rows), len(self.listing)))
        for out, member_vectors in zip(stack, self._member_vectors(), strict=True):
            member_vectors.rows(rows).add(1.0, False, 0, len(rows), out)

        return stack

    def _to_members(self, networks: Sequence[Architecture]) -> Array:
        """Return the distances of networks that are no members from all members."""
        stack = np.zeros((self.components, len(networks), len(self.listing)))
        if not self._laid_out:
            return self._compute(networks, self.listing.members)

        for out, part in zip(stack, self._rows_of(networks), strict=True):
            if part is None:
                return self._compute(networks, self.listing.members)

            part.add(1.0, False, 0, len(networks), out)

        return stack

    def _rows_of(self, networks: Sequence[Architecture]) -> Iterator[BlockPart | None]:
        for kind in self._featured:
            prepared = [self.listing.prepare(kind, network) for network in networks]
            for c, vectors in enumerate(self.listing.vectors(kind)):
                yield vectors.rows_of(features_of(prepared, c))

    def _compute(
        self, first: Sequence[Architecture], second: Sequence[Architecture] | None
    ) -> Array:
        inside = self._inside(first, second)
        if inside is not None:
            return self._compute_listed(*inside)

        parts = [gram.distances(first, second).stack for gram in self.grams]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _inside(
        self, first: Sequence[Architecture], second: Sequence[Architecture] | None
    ) -> tuple[list[int], list[int] | None] | None:
        """Return positions in the listing.

        None for small blocks, and where a network or distance is not listed.
        """
        large = len(first) * len(first if second is None else second) >= LARGE
        if (
            not large
            or not len(self.listing)
            or not all(isinstance(kind, EmbeddedDistance) for kind in self.kinds)
        ):
            return None

        rows = self._positions(first)
        columns = None if second is None else self._positions(second)
        if -1 in rows or (columns is not None and -1 in columns):
            return None

        # Merging sparse vectors is slower than comparing the features of distinct networks.
        for member_vectors in self._member_vectors():
            if not isinstance(member_vectors.columns, np.ndarray):
                return None

        return rows, columns

    def _positions(self, networks: Sequence[Architecture]) -> list[int]:
        """Return the positions of networks in the listing, -1 for other networks."""
        return [self.listing.position.get(network.key, -1) for network in networks]

    def _member_vectors(self) -> Iterator[Vectors]:
        """Return the vectors of the members, by component."""
        for kind in self._featured:
            yield from self.listing.vectors(kind)

    def _compute_listed(self, rows: list[int], columns: list[int] | None) -> Array:
        """Compute the distances from the vectors of the listing."""
        stack = np.zeros((self.components, len(rows), len(rows if columns is None else columns)))
        for out, member_vectors in zip(stack, self._member_vectors(), strict=True):
            part = member_vectors.block(rows, rows if columns is None else columns)
            l1_blocks.fill(out, [(1.0, part)], symmetric=columns is None)

        return stack

    def _components(self, stack: Array) -> Components:
        return Components.of_stack(stack, len(stack))
