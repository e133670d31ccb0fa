"""Ground cost of OTMANN: label penalties of operations, and the weights of the structural cost.

A label penalty is the cost of matching a unit of mass between layers of two operations:
NASBOT, tables 4 and 5, and the rules of appendix A.3, as functions of an operation's attributes, so
that they hold for operations that a user adds to a vocabulary:

    conv k, conv k'            0.1 + 0.05 |k - k'|, 0 for k = k'     (the authors' code: 0.1 sqrt(2 |k - k'|))
    res k,  res k'             the same as between the convolutions
    res k,  conv k'            0.9 * (conv k, conv k') + 0.1
    max-pool, avg-pool         0.25                                  (the authors' code: 0.5)
    two rectifiers, two sigmoids                  0.1
    a rectifier and a sigmoid                     0.25
    two normalisations                            0.25
    an operation and itself                       0
    any other two                                 infinite: never matched

All penalties satisfy the triangle inequality, infinities included. A vocabulary without a table in
the paper, such as the NAS-Bench cells, matches equal operations only. In the space `torch` the
window of a convolution is in its weight; windows of more than 15 count as 15.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from archive.architecture.layer import Layer
from archive.architecture.operations import Operation, Vocabulary
from archive.errors import UsageError

NU_STR = (0.1, 0.2, 0.4, 0.8)
"""Weights of the structural cost in the paper; a distance has one component for each."""
STRUCTURAL_GROUPS = ("conv", "pool", "fc", "rectifier", "sigmoid")
FAMILIES = {"rectifier": "activation", "sigmoid": "activation"}
WIDEST = 15
"""Widest window of a convolution with separate penalties, where layers have attributes."""


@dataclass(frozen=True, eq=False)
class Penalties:
    """Label penalties of one vocabulary.

    Attributes:
        index: Operation name to its row; with the side of a window, where layers have attributes:
            `convolution 3`.
        matrix: (labels, labels) float64, symmetric, infinite between families.
        family: (labels,) int64, equal for two labels exactly when their penalty is finite.
        counted: (labels, groups) float64, 1 where a label belongs to a group of the path lengths;
            "all" is first.
    """

    index: dict[str, int]
    matrix: NDArray[np.float64]
    family: NDArray[np.int64]
    counted: NDArray[np.float64]

    def rows(self, layers: Iterable[Layer]) -> NDArray[np.int64]:
        """Return the (n,) rows of layers."""
        return np.array(list(map(self._row, layers)), np.int64)

    def _row(self, layer: Layer) -> int:
        if layer.attributes:
            from archive.architecture.aten.weights import window

            if side := window(layer):
                return self.index[_name_with_window(layer.op, min(side, WIDEST))]

        return self.index[layer.op]


def check_weights(nu_str: Iterable[float]) -> tuple[float, ...]:
    """Return the weights of the structural cost, nu_str in NASBOT, as numbers.

    Raises:
        UsageError: There is no weight, or one is not a finite number >= 0. A text is refused even
            if its characters are digits.
    """
    weights = () if isinstance(nu_str, str | bytes) else tuple(map(float, nu_str))
    if not weights or not all(0 <= nu < math.inf for nu in weights):
        raise UsageError(f"nu_str must be one or more finite numbers >= 0, got {nu_str!r}")

    return weights


_tables: dict[tuple[str, bool, bool], tuple[Vocabulary, Penalties]] = {}


def penalties(
    vocabulary: Vocabulary, *, released_code: bool = False, groups: bool = True
) -> Penalties:
    """Return the penalties of a vocabulary, computed once.

    Args:
        vocabulary: The operations of a space.
        released_code: Use the numbers of the authors' code instead of the paper's.
        groups: Use the path lengths of each group of the vocabulary, besides those over all layers.

    Raises:
        InvalidArchitectureError: The operations of the vocabulary have no list.
    """
    vocabulary.check_listed()
    key = (vocabulary.name, released_code, groups)
    cached = _tables.get(key)
    # A vocabulary can be redefined under its name, which invalidates the penalties of the old one.
    if cached is None or cached[0] is not vocabulary:
        cached = (vocabulary, _make(vocabulary, released_code, groups))
        _tables[key] = cached

    return cached[1]


def _make(vocabulary: Vocabulary, released_code: bool, groups: bool) -> Penalties:
    operations = list(vocabulary.operations.values())
    if vocabulary.attributes:
        for convolution in vocabulary.of_group("conv"):
            operation = vocabulary[convolution]
            for side in range(1, WIDEST + 1):
                name = _name_with_window(convolution, side)
                operations.append(replace(operation, name=name, kernel=side))

    n = len(operations)
    matrix = np.empty((n, n))
    counted_groups = []
    if groups:
        counted_groups = [name for name in STRUCTURAL_GROUPS if vocabulary.of_group(name)]

    counted = np.zeros((n, 1 + len(counted_groups)))
    counted[:, 0] = 1.0
    for row, operation in enumerate(operations):
        matrix[row] = [_penalty(operation, other, released_code) for other in operations]
        if operation.group in counted_groups:
            counted[row, 1 + counted_groups.index(operation.group)] = 1.0

    # The first finite penalty of each row.
    family = np.argmax(np.isfinite(matrix), axis=1)
    index = {operation.name: row for row, operation in enumerate(operations)}
    return Penalties(index, matrix, family, counted)


def _penalty(x: Operation, y: Operation, released_code: bool) -> float:
    if x.name == y.name:
        return 0.0

    if x.group == y.group == "conv":
        sizes = _kernel_penalty(abs(x.kernel - y.kernel), released_code)
        return sizes if x.residual == y.residual else 0.9 * sizes + 0.1

    if x.group == y.group == "pool":
        return 0.5 if released_code else 0.25

    if x.group == y.group == "norm":
        return 0.25

    if x.group in FAMILIES and y.group in FAMILIES:
        return 0.1 if x.group == y.group else 0.25

    return math.inf


def _name_with_window(name: str, side: int) -> str:
    return f"{name} {side}"


def _kernel_penalty(difference: int, released_code: bool) -> float:
    if released_code:
        return 0.1 * math.sqrt(2 * difference)

    return 0.1 + 0.05 * difference if difference else 0.0
