"""Random cells of NAS-Bench-101 from the distribution of BANANAS' code, which is not uniform on the
table.

That code draws a matrix of seven vertices, each of the 21 edges with probability 1/2 and each
operation uniformly, removes vertices on no path from input to output, and keeps cells of at most
nine edges. Half of the edges of seven vertices are too many: almost no cell with seven live
vertices is kept. Of 500 distinct cells from this distribution 75 % have five live vertices or
fewer, of those in the table less than 1 %. The paper's adjacency encoding also has the dead
vertices and edges, which carry no information about the score.

    symbol   meaning                                             shape
    A, O     matrices and operations as drawn                    (m, 7, 7), (m, 7)
    code     a matrix without dead vertices, and its labels      integer
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from archive.agents.surrogates.base import Array
from archive.architecture import codec
from archive.architecture.graph import Architecture
from archive.spaces.tables.reader import Table

VERTICES = 7
MOST_EDGES = 9
_UPPER = np.triu_indices(VERTICES, 1)
_LABELS = ("conv1x1-bn-relu", "conv3x3-bn-relu", "maxpool3x3")
_DRAWS = 20_000

Integers = NDArray[np.int64]


class Drawn(NamedTuple):
    """Cells in the order in which they were drawn, no two of one class.

    Attributes:
        positions: (m,) int64, in the table.
        adjacency: (m, 26) float64: the edges as drawn, and 0, 0.5 or 1 for the operation of each
            inner vertex.
    """

    positions: Integers
    adjacency: Array


class RandomCells:
    """Sampler of cells by the authors' distribution, restricted to those of a table.

    Args:
        table: Cells of NAS-Bench-101, all or a sample.
    """

    def __init__(self, table: Table) -> None:
        """List every order of every cell's vertices."""
        orders = [_orders(architecture) for architecture in table.architectures]
        codes = np.concatenate(orders)
        positions = np.repeat(np.arange(len(orders)), [len(codes) for codes in orders])
        self._codes, first = np.unique(codes, return_index=True)
        self._positions = positions[first]

    def draw(self, count: int, rng: np.random.Generator) -> Drawn:
        """Draw `count` distinct cells of the table, which must have that many."""
        positions = np.zeros(0, np.int64)
        adjacency = np.zeros((0, len(_UPPER[0]) + VERTICES - 2))
        while len(positions) < count:
            more = self._batch(rng)
            positions = np.concatenate([positions, more.positions])
            adjacency = np.concatenate([adjacency, more.adjacency])
            first = np.sort(np.unique(positions, return_index=True)[1])
            positions = positions[first]
            adjacency = adjacency[first]

        return Drawn(positions[:count], adjacency[:count])

    def _batch(self, rng: np.random.Generator) -> Drawn:
        """Draw `_DRAWS` matrices; return those that are cells of the table, repeats included."""
        A = np.triu(rng.integers(0, 2, (_DRAWS, VERTICES, VERTICES)), 1)
        O = rng.integers(0, len(_LABELS), (_DRAWS, VERTICES))  # noqa: E741  beside A, as in the table above
        alive = _alive(A)
        live = A * alive[:, :, None] * alive[:, None]
        kept = alive[:, 0] & (live.sum(axis=(1, 2)) <= MOST_EDGES)
        A = A[kept]
        O = O[kept]  # noqa: E741
        alive = alive[kept]
        live = live[kept]
        codes = _codes(live, O, alive)
        at = np.minimum(np.searchsorted(self._codes, codes), len(self._codes) - 1)
        known = self._codes[at] == codes
        adjacency = np.hstack([A[:, *_UPPER], O[:, 1:-1] / 2.0])[known]
        return Drawn(self._positions[at[known]], adjacency)


def _alive(A: Integers) -> NDArray[np.bool_]:
    """Return whether each vertex lies on a path from input to output:

    (m, 7); without a path, no vertex does.
    """
    fed, feeding = np.zeros((2, len(A), VERTICES), bool)
    fed[:, 0] = feeding[:, -1] = True
    for v in range(1, VERTICES):
        fed[:, v] = (fed & (A[:, :, v] > 0)).any(axis=1)
        feeding[:, -1 - v] = (feeding & (A[:, -1 - v] > 0)).any(axis=1)

    return fed & feeding


def _codes(live: Integers, O: Integers, alive: NDArray[np.bool_]) -> Integers:  # noqa: E741
    """Return one number for each matrix of live vertices, the dead ones moved to the end."""
    order = np.argsort(~alive, axis=1, kind="stable")
    rows = np.arange(len(live))[:, None, None]
    edges = live[rows, order[:, :, None], order[:, None]][:, *_UPPER] @ (
        1 << np.arange(len(_UPPER[0]))
    )
    inner = alive & (np.arange(VERTICES) > 0) & (np.arange(VERTICES) < VERTICES - 1)
    labels = np.take_along_axis(O * inner, order, axis=1) @ len(_LABELS) ** np.arange(VERTICES)
    codes: Integers = (edges * len(_LABELS) ** VERTICES + labels) * (VERTICES + 1) + alive.sum(
        axis=1
    )
    return codes


def _orders(architecture: Architecture) -> Integers:
    """Return the codes of a cell in all topological orders of its vertices."""
    matrix, operations = codec.to_nasbench101(architecture)
    n = len(operations)
    labels = np.array([_LABELS.index(operation) for operation in operations[1:-1]], np.int64)
    permutations = np.array(list(itertools.permutations(range(n - 2))), np.int64).reshape(
        math.factorial(n - 2), n - 2
    )
    full = np.pad(permutations + 1, ((0, 0), (1, 1)), constant_values=((0, 0), (0, n - 1)))
    A = np.array(matrix)[full[:, :, None], full[:, None]]
    topological = ~np.tril(A).any(axis=(1, 2))
    live = np.zeros((int(topological.sum()), VERTICES, VERTICES), np.int64)
    live[:, :n, :n] = A[topological]
    O = np.zeros((len(live), VERTICES), np.int64)  # noqa: E741
    O[:, 1 : n - 1] = labels[permutations[topological]]
    return np.unique(_codes(live, O, np.broadcast_to(np.arange(VERTICES) < n, O.shape)))
