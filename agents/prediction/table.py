"""Results of a task as rows that the process reads: networks, recipes, values, families."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from archive.agents.prediction.features import LINEAR, Features, at_side
from archive.agents.prediction.process import Array, ResultInputs
from archive.agents.prediction.protocol_features import ProtocolFeatures

LEAST_WORDS = 2
"""Fewest results with a word of a recipe; a rarer one is no feature."""


@dataclass(frozen=True)
class ResultRow:
    """A result, or a query.

    Attributes:
        network: Key of the network.
        recipe: Features of the protocol.
        family: Family of the network; the key of a network without one.
        value: The result; NaN for a query.
    """

    network: str
    recipe: ProtocolFeatures
    family: str
    value: float = float("nan")


class LearnedRows:
    """Rows of results, with the scales of their features.

    Args:
        rows: The results.
        features: Features of each network, by key.
    """

    def __init__(self, rows: Sequence[ResultRow], features: Mapping[str, Features]) -> None:
        self.rows = tuple(rows)
        self.features = features
        described = [at_side(features[row.network], row.recipe.side) for row in rows]
        self._names = sorted(set().union(*described))
        matrix = _matrix(described, self._names)
        self._centre: Array = matrix.mean(axis=0)
        self._spread: Array = matrix.std(axis=0)
        self._kept = np.flatnonzero(self._spread > 1e-9)
        self._spread[self._spread <= 1e-9] = 1.0
        counts: dict[str, int] = {}
        for row in rows:
            for word in row.recipe.words:
                counts[word] = counts.get(word, 0) + 1

        self._words = sorted(
            word for word, count in counts.items() if LEAST_WORDS <= count < len(rows)
        )

    @cached_property
    def values(self) -> Array:
        """The results: (n,) float64."""
        return np.array([row.value for row in self.rows], np.float64)

    @cached_property
    def families(self) -> NDArray[np.str_]:
        """The family of each row: (n,)."""
        return np.array([row.family for row in self.rows])

    @cached_property
    def inputs(self) -> ResultInputs:
        """The rows as the process reads them."""
        return self.read(self.rows, self.features)

    def read(self, rows: Sequence[ResultRow], features: Mapping[str, Features]) -> ResultInputs:
        """Return rows on the scales of this table."""
        described = [at_side(features[row.network], row.recipe.side) for row in rows]
        matrix = (_matrix(described, self._names) - self._centre) / self._spread
        groups: dict[str, list[int]] = {}
        linear = []
        for column in self._kept.tolist():
            name = self._names[column]
            groups.setdefault(name.partition(":")[0], []).append(column)
            if name in LINEAR:
                linear.append(column)

        data = np.array([row.recipe.data for row in rows], np.float64)
        words = [[word in row.recipe.words for word in self._words] for row in rows]
        return ResultInputs(
            groups=tuple(matrix[:, columns] for columns in groups.values()),
            linear=np.column_stack([matrix[:, linear], data]),
            words=np.array(words, np.float64).reshape(len(rows), len(self._words)),
            stems=np.array([row.recipe.stem for row in rows]),
            networks=np.array([row.network for row in rows]),
        )


def _matrix(described: Sequence[Features], names: Sequence[str]) -> Array:
    return np.array([[row.get(name, 0.0) for name in names] for row in described], np.float64)
