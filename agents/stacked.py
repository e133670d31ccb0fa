"""Distances of several kinds side by side, with a memory of whole rows to the members of a space.

An agent that can list its space asks after every evaluation how far each known network is from every member. Known
networks become one more at a time, so their rows are kept: a proposal computes one row instead of hundreds.

| symbol | meaning                                                         | shape       |
|--------|-----------------------------------------------------------------|-------------|
| M      | members of the space                                            | scalar      |
| c      | components of all distances together, in the order of the kinds | scalar      |
| rows   | distances of one known network from all members, in float32     | (c, M) each |
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import cached_property
from threading import Lock
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from archive.agents.surrogates.base import Array
from archive.graph import Architecture
from archive.kernels.base import Components, Distance
from archive.kernels.embedding import Embedded, EmbeddedDistance, matrix, vocabulary
from archive.kernels.gram import Gram
from archive.kernels.tree_wasserstein import TreeWasserstein
from archive.kernels.tree_wasserstein_degrees import cumulated

# Bytes of rows to keep: 2,900 known networks of NAS-Bench-201 with five components.
MOST_BYTES = 2**29
# Below so many columns a row of all members costs more than it will save.
FEW = 1000


@final
class Stacked:
    """What gives a Gaussian process its distances; threads may share one. The memory changes no result.

    Args:
        distances: One or more kinds.
        members: All networks of the space, where they can be listed and rows are cheap.
        most_bytes: Memory for rows; those of a call that needs more are not kept.
    """

    def __init__(
        self,
        distances: Sequence[Distance[Any]],
        members: Sequence[Architecture] | None = None,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        """Start with an empty memory."""
        self.kinds = tuple(distances)
        self.members = members or ()
        self.components = sum(len(kind.components) for kind in self.kinds)
        # Room for all members, and as many others again.
        self.grams = [Gram(kind, max_networks=max(8192, 2 * len(self.members))) for kind in self.kinds]
        self._position = {member.key: at for at, member in enumerate(self.members)}
        self._rows: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        self._most_rows = most_bytes // max(4 * self.components * len(self.members), 1)
        self._lock = Lock()

    def distances(self, first: Sequence[Architecture], second: Sequence[Architecture] | None = None) -> Components:
        """Return the distances of all pairs, all components unnormalised: see `Distance.distances`.

        Those from many members are rounded to single precision, whether they are remembered or not.
        """
        if second is None or len(second) < FEW or (columns := self._columns(second)) is None:
            return self._components(self._compute(first, second))
        if len(first) > self._most_rows:
            return self._components(self._compute(first, second).astype(np.float32).astype(np.float64))
        with self._lock:
            rows = self._remembered(first)
        stack = np.empty((self.components, len(first), len(second)))
        for at, row in enumerate(rows):
            stack[:, at] = row[:, columns]
        return self._components(stack)

    def _columns(self, networks: Sequence[Architecture]) -> slice | NDArray[np.int64] | None:
        found = [self._position.get(network.key, -1) for network in networks]
        columns = np.array(found, np.int64)
        if (columns < 0).any():
            return None
        # A slice is copied several times as fast as columns that are picked.
        return slice(found[0], found[-1] + 1) if (np.diff(columns) == 1).all() else columns

    def _remembered(self, networks: Sequence[Architecture]) -> list[NDArray[np.float32]]:
        new = {network.key: network for network in networks if network.key not in self._rows}
        inside = [key for key in new if key in self._position]
        if inside:
            self._keep(inside, self._between_members([self._position[key] for key in inside]))
        outside = [key for key in new if key not in self._position]
        if outside:
            self._keep(outside, self._compute([new[key] for key in outside], self.members))
        for network in networks:
            self._rows.move_to_end(network.key)
        while len(self._rows) > self._most_rows:
            self._rows.popitem(last=False)
        return [self._rows[network.key] for network in networks]

    def _keep(self, keys: Sequence[str], block: Array) -> None:
        rounded = block.astype(np.float32)
        self._rows.update((key, rounded[:, at].copy()) for at, key in enumerate(keys))

    def _between_members(self, rows: Sequence[int]) -> Array:
        from archive.kernels import l1

        stack = np.zeros((self.components, len(rows), len(self.members)))
        for out, (columns, euclidean) in zip(stack, self._vectors, strict=True):
            x = np.ascontiguousarray(columns[:, rows].T)
            l1.add_dense(x, columns, euclidean, 1.0, False, 0, len(rows), out)
        return stack

    @cached_property
    def _vectors(self) -> list[tuple[Array, bool]]:
        """The members' vectors of each component, (p, M), and whether their distance is Euclidean rather than L1."""
        return [pair for kind in self.kinds for pair in _vectors(kind, self.members)]

    def _compute(self, first: Sequence[Architecture], second: Sequence[Architecture] | None) -> Array:
        parts = [gram.distances(first, second).stack for gram in self.grams]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _components(self, stack: Array) -> Components:
        return Components.of_stack(stack, len(stack))


def listable(kind: Distance[Any]) -> bool:
    """Return whether the distances of one network from all members of a space take milliseconds."""
    return isinstance(kind, EmbeddedDistance | TreeWasserstein)


def _vectors(kind: Distance[Any], members: Sequence[Architecture]) -> list[tuple[Array, bool]]:
    prepared: list[Embedded] = [kind.prepare(member) for member in members]
    if isinstance(kind, EmbeddedDistance):
        return [(_laid_out(prepared, at), kind.norm == "l2") for at in range(len(kind.components))]
    assert isinstance(kind, TreeWasserstein)
    on_a_line = ("indegree", "outdegree", "units")
    return [
        (_areas([one.features[at] for one in prepared]) if part in on_a_line else _laid_out(prepared, at), False)
        for at, part in enumerate(kind.parts)
    ]


def _laid_out(prepared: Sequence[Embedded], component: int) -> Array:
    return np.ascontiguousarray(matrix(prepared, vocabulary(prepared, component), component).T)


def _areas(measures: Sequence[Mapping[str, float]]) -> Array:
    """Return the areas below distribution functions between one place and the next: (places - 1, M) float64."""
    functions = [cumulated(measure) for measure in measures]
    places = np.array(sorted({place for steps in functions for place in steps[0]}))
    areas = np.empty((len(functions), max(len(places) - 1, 0)))
    for row, (own, values) in zip(areas, functions, strict=True):
        row[:] = np.array([0.0, *values])[np.searchsorted(own, places[:-1], side="right")]
    return np.ascontiguousarray((areas * np.diff(places)).T)
