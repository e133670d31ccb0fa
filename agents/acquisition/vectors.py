"""Vectors of the members of a listing, laid out for rows of distances from members and from other
networks.

| symbol | meaning                                                                      | shape               |
|--------|------------------------------------------------------------------------------|---------------------|
| M      | members                                                                      | scalar              |
| p      | names of features of a component, or intervals between places on a line      | scalar              |
| y      | the members' vectors of a component, whichever is smaller: transposed and    |                     |
|        | dense, or their entries (`archive.kernels.features.l1.parts.Entries`)        | (p, M) or (entries) |

Terms of a distance are added in the order of the features' names. A feature that no member has is
added at its place in that order, so that a row equals the one that the distance itself computes, to
the last bit.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from archive.agents.surrogates.base import Array
from archive.kernels.distances.tree_wasserstein.degrees import cumulated
from archive.kernels.features.l1 import parts as l1_parts


@final
@dataclass(frozen=True, eq=False)
class Vectors:
    """The vectors of one component of all members.

    Attributes:
        columns: y.
        euclidean: Whether their distance is Euclidean rather than L1.
        names: Names of the features by place, sorted; None for areas on a line.
        places: (p + 1,) float64, ends of the intervals on the line, sorted; None for named
            features.
    """

    columns: Array | l1_parts.Entries
    euclidean: bool
    names: Sequence[str] | None = None
    places: Array | None = None

    def rows(self, members: Sequence[int]) -> l1_parts.BlockPart:
        """Return the distances of some members from all of them, (m, M)."""
        y = self.columns
        if isinstance(y, l1_parts.Entries):
            return l1_parts.SparseRows(_chosen(y, members), y, self.euclidean)

        return l1_parts.DenseRows(np.ascontiguousarray(y[:, members].T), y, self.euclidean)

    def between(self, members: Sequence[int], others: Sequence[int]) -> l1_parts.BlockPart:
        """Return the distances of some members from others, bit for bit those of `rows`; of dense
        vectors only.
        """
        y = self.columns
        assert not isinstance(y, l1_parts.Entries)
        first = np.ascontiguousarray(y[:, members].T)
        second = np.ascontiguousarray(y[:, others])
        used = first.any(axis=0) | second.any(axis=1)
        return l1_parts.DenseRows(
            np.ascontiguousarray(first[:, used]), second[used], self.euclidean
        )

    def rows_of(self, features: Sequence[Mapping[str, float]]) -> l1_parts.BlockPart | None:
        """Return the distances of networks from all members, (m, M).

        Args:
            features: This component of the networks' features.

        Returns:
            None for a measure on a line with a place that no member has, because no interval ends
            at that place.
        """
        if self.names is None:
            return self._rows_on_line(features)

        others = sorted({name for part in features for name in part} - self._place.keys())
        y = self.columns
        if isinstance(y, l1_parts.Entries):
            between = {
                name: self._before(name) + (at + 1) / (len(others) + 1)
                for at, name in enumerate(others)
            }
            return l1_parts.SparseRows(
                l1_parts.entries_of(
                    features, {**self._place, **between} if between else self._place
                ),
                y,
                self.euclidean,
            )

        if not others:
            return l1_parts.DenseRows(l1_parts.dense(features, self._place), y, self.euclidean)

        place = {name: at for at, name in enumerate(sorted([*self.names, *others]))}
        widened = np.insert(y, [self._before(name) + 1 for name in others], 0.0, axis=0)
        return l1_parts.DenseRows(l1_parts.dense(features, place), widened, self.euclidean)

    @cached_property
    def _place(self) -> dict[str, int]:
        return {name: at for at, name in enumerate(self.names or ())}

    def _before(self, name: str) -> int:
        """Return the place before that of a name that no member has; -1 for the first."""
        return bisect_left(self.names or (), name) - 1

    def _rows_on_line(self, features: Sequence[Mapping[str, float]]) -> l1_parts.BlockPart | None:
        assert self.places is not None and not isinstance(self.columns, l1_parts.Entries)
        functions = [cumulated(part) for part in features]
        if not np.isin([place for steps in functions for place in steps[0]], self.places).all():
            return None

        return l1_parts.DenseRows(
            l1_parts.areas(functions, self.places), self.columns, euclidean=False
        )


def _chosen(entries: l1_parts.Entries, members: Sequence[int]) -> l1_parts.Entries:
    parts = [slice(*entries.starts[at : at + 2].tolist()) for at in members]
    starts = np.cumsum([0, *(part.stop - part.start for part in parts)], dtype=np.int64)
    places, values = (np.concatenate([column[part] for part in parts]) for column in entries[1:])
    return l1_parts.Entries(starts, places, values)
