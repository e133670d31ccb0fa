"""Distinct networks of a history, and the choice of a few hundred of them for a Gaussian
process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from archive.agents.surrogates.base import Array
from archive.agents.surrogates.many.features import Integers
from archive.architecture.graph import Architecture


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
        """Return the history with m more evaluations; equal, to the last bit, to one that merges
        all at once.
        """
        position = dict(self.position)
        known = len(self.networks)
        at = np.array([position.setdefault(one.key, len(position)) for one in networks], np.int64)
        rows, first = np.unique(at, return_index=True)
        new = tuple(networks[row] for row in first[rows >= known].tolist())
        sums, counts = (
            np.concatenate([one, np.zeros(len(new), one.dtype)]) for one in (self.sums, self.counts)
        )
        np.add.at(sums, at, scores)
        np.add.at(counts, at, 1)
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

    chosen = np.zeros(len(values), np.bool_)
    chosen[np.argsort(-values, kind="stable")[: most // 2]] = True
    chosen[len(values) - most // 4 :] = True
    others = np.flatnonzero(~chosen)
    chosen[others[np.linspace(0, len(others) - 1, most - int(chosen.sum())).astype(np.int64)]] = (
        True
    )
    return np.flatnonzero(chosen)
