"""Inputs of models of features: the features of the observed networks, scaled.

| symbol | meaning                                       | shape  |
|--------|-----------------------------------------------|--------|
| m, F   | networks, features of the observed networks   | scalar |

Features that no observed network has are left out, and the others are divided by their largest
absolute value. Networks without any feature have one input, 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from archive.agents.surrogates.base import Array
from archive.agents.surrogates.many.features import Integers, SparseFeatures
from archive.architecture.graph import Architecture
from archive.kernels.base import check_one_space

Singles = NDArray[np.float32]


class SparseInputs(NamedTuple):
    """The entries of a matrix that are not 0, row by row.

    Attributes:
        starts: (m + 1,), position of the first entry of each row in `columns` and `values`.
        columns: (entries,) their columns.
        values: (entries,) their values.
    """

    starts: Integers
    columns: Integers
    values: Singles

    @classmethod
    def of(cls, dense: Singles) -> SparseInputs:
        """Return the entries of a dense matrix."""
        rows, columns = np.nonzero(dense)
        starts = np.searchsorted(rows, np.arange(len(dense) + 1))
        # `nonzero` returns columns of one array. A contiguous copy avoids a second compiled version
        # for strided arrays.
        return cls(starts, np.ascontiguousarray(columns), dense[rows, columns])


@dataclass(frozen=True, eq=False)
class Inputs:
    """The features of the observed networks, scaled to inputs.

    Attributes:
        features: Source of the features.
        space: Space of the observed networks.
        numbers: (F,), the features of the observed networks, in the order of their names.
        largest: (F,) float64, their largest absolute values.
    """

    features: SparseFeatures
    space: str
    numbers: Integers
    largest: Array

    @classmethod
    def of(cls, features: SparseFeatures, architectures: Sequence[Architecture]) -> Inputs:
        """Choose the features of observed networks, at least one.

        Raises:
            InvalidArchitectureError: The networks are of different spaces.
        """
        check_one_space(architectures)
        _, numbers, values = features.entries(architectures)
        largest = np.zeros(int(numbers.max(initial=-1)) + 1)
        np.maximum.at(largest, numbers, np.abs(values))
        columns = features.by_name(np.unique(numbers))
        return cls(features, architectures[0].space, columns, largest[columns])

    @property
    def size(self) -> int:
        """Number of inputs, at least one."""
        return max(len(self.numbers), 1)

    def read(self, architectures: Sequence[Architecture]) -> Singles:
        """Return the inputs of m networks: (m, size) float32, in [-1, 1] for those observed."""
        rows, columns, values = self._entries(architectures)
        dense = np.zeros((len(architectures), self.size), np.float32)
        dense[rows, columns] = values
        return dense

    def rows(self, architectures: Sequence[Architecture]) -> SparseInputs:
        """Return the same inputs without the zeros."""
        rows, columns, values = self._entries(architectures)
        return SparseInputs(
            np.searchsorted(rows, np.arange(len(architectures) + 1)), columns, values
        )

    def _entries(self, architectures: Sequence[Architecture]) -> tuple[Integers, Integers, Singles]:
        """Return row, column and value of each input that is not 0, row by row."""
        rows, numbers, values = self.features.entries(architectures)
        column_of = np.full(
            max(int(part.max(initial=-1)) for part in (numbers, self.numbers)) + 1, -1
        )
        column_of[self.numbers] = np.arange(len(self.numbers))
        columns = column_of[numbers]
        used = columns >= 0
        columns = columns[used]
        return rows[used], columns, (values[used] / self.largest[columns]).astype(np.float32)
