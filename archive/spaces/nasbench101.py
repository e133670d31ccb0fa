"""The space `nasbench101`: cells of at most seven vertices and nine edges, three operations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress, product
from typing import final

import numpy as np

from archive.architecture.codec import from_nasbench101, to_nasbench101
from archive.architecture.graph import Architecture
from archive.architecture.operations import NASBENCH101
from archive.errors import InvalidArchitectureError
from archive.spaces.base import Mutation, check_space
from archive.spaces.cell import CellSpace

_MAX_VERTICES = 7
_MAX_EDGES = 9
_LABELS = NASBENCH101.of_group("cell")

Matrix = list[list[int]]

Edit = tuple[int, int | str]
"""An edge (u, v) that flips, or a vertex u with its new label."""


@final
class NasBench101(CellSpace):
    """The cells that NAS-Bench-101 tabulates: every vertex lies on a path from input to output."""

    name = "nasbench101"
    vertices = _MAX_VERTICES

    def validate(self, architecture: Architecture) -> None:
        """Check the table's limits, and that every vertex is connected.

        Raises:
            InvalidArchitectureError: The table does not contain this cell; the message gives the
                reason.
        """
        check_space(self.name, architecture)
        if len(architecture.layers) > _MAX_VERTICES:
            raise InvalidArchitectureError(
                f"a cell has at most {_MAX_VERTICES} vertices, got {len(architecture.layers)}"
            )

        if len(architecture.edges) > _MAX_EDGES:
            raise InvalidArchitectureError(
                f"a cell has at most {_MAX_EDGES} edges, got {len(architecture.edges)}"
            )

        last = len(architecture.layers) - 1
        for u, (parents, children) in enumerate(
            zip(architecture.parents, architecture.children, strict=True)
        ):
            if (u > 0 and not parents) or (u < last and not children):
                raise InvalidArchitectureError(
                    "a vertex of a cell lies on a path from input to output", u
                )

    def sample(self, rng: np.random.Generator) -> Architecture:
        """Draw matrices and labels uniformly until one, without loose vertices, is a member."""
        n = _MAX_VERTICES
        while True:
            matrix = np.triu(rng.integers(2, size=(n, n)), 1).tolist()
            labels = _draw_labels(n - 2, rng)
            cell = self._member(matrix, ["input", *labels, "output"])
            if cell is not None:
                return cell

    def mutate(self, architecture: Architecture, rng: np.random.Generator) -> Mutation:
        """Flip edges with probability 1/7 and relabel vertices with 1/5, until the cell changes.

        These are the rates of BANANAS' code (`Cell.mutate` of naszilla/bananas), which takes them
        from `mutate_spec` of google-research/nasbench: mutation_rate / V for each of the 21 edges
        of V = 7 vertices, mutation_rate / (V - 2) for each inner vertex, with mutation_rate 1; a
        relabelled vertex gets another label. Both mutate all seven vertices of a matrix.
        Architectures do not store disconnected vertices, so those get random labels here.

        The recorded operations are a minimal set of edits: each of them is needed for the resulting
        cell.
        """
        while True:
            matrix, labels = _pad(architecture, rng)
            edits = _edits(len(architecture.layers) - 2, labels, rng)
            child = self._member(*_edit(matrix, labels, edits))
            if child is not None and child.key != architecture.key:
                needed = _needed(matrix, labels, edits)
                operations = []
                for _, to in needed:
                    operations.append("flip_edge" if isinstance(to, int) else "swap_label")

                return Mutation(child, tuple(operations))

    def neighbours(self, architecture: Architecture) -> Iterator[Mutation]:
        """Yield the cells with another label, another edge, or a vertex parallel to a pair."""
        seen = {architecture.key}
        for name, matrix, labels in _one_step(*to_nasbench101(architecture)):
            child = self._member(matrix, labels)
            if child is not None and child.key not in seen:
                seen.add(child.key)
                yield Mutation(child, (name,))

    def _member(self, matrix: Matrix, labels: list[str]) -> Architecture | None:
        """Return the cell without disconnected vertices; None if it is not a member."""
        kept = _on_a_path(matrix)
        if not {0, len(labels) - 1} <= kept:
            return None

        order = sorted(kept)
        rows = np.array(matrix)[np.ix_(order, order)]
        cell = from_nasbench101(rows, [labels[u] for u in order])
        return cell if self.contains(cell) else None


def _on_a_path(matrix: Matrix) -> set[int]:
    n = len(matrix)
    forward = {0}
    backward = {n - 1}
    for u in range(n):
        if u in forward:
            forward.update(compress(range(n), matrix[u]))

    for u in range(n - 2, -1, -1):
        if not backward.isdisjoint(compress(range(n), matrix[u])):
            backward.add(u)

    return forward & backward


def _pad(architecture: Architecture, rng: np.random.Generator) -> tuple[Matrix, list[str]]:
    """Return matrix and labels, padded to seven by unconnected vertices of random labels."""
    matrix, labels = to_nasbench101(architecture)
    missing = _MAX_VERTICES - len(labels)
    rows = [[*row[:-1], *[0] * missing, row[-1]] for row in matrix]
    empty = [[0] * _MAX_VERTICES for _ in range(missing)]
    drawn = _draw_labels(missing, rng)
    return [*rows[:-1], *empty, rows[-1]], [*labels[:-1], *drawn, labels[-1]]


def _draw_labels(size: int, rng: np.random.Generator) -> list[str]:
    return [_LABELS[label] for label in rng.integers(len(_LABELS), size=size)]


def _edits(inner: int, labels: list[str], rng: np.random.Generator) -> list[Edit]:
    """Draw flips of edges, then new labels.

    Only the first `inner` inner vertices have a label that can change.
    """
    n = len(labels)
    flips = np.argwhere(np.triu(rng.random((n, n)) < 1 / n, 1)).tolist()
    swapped = [u for u in range(1, inner + 1) if rng.random() < 1 / (n - 2)]
    edits: list[Edit] = [(u, v) for u, v in flips]
    for u in swapped:
        others = [label for label in _LABELS if label != labels[u]]
        edits.append((u, others[rng.integers(len(others))]))

    return edits


def _edit(matrix: Matrix, labels: list[str], edits: Sequence[Edit]) -> tuple[Matrix, list[str]]:
    matrix = list(map(list, matrix))
    labels = list(labels)
    for u, to in edits:
        if isinstance(to, int):
            matrix[u][to] ^= 1
        else:
            labels[u] = to

    return matrix, labels


def _needed(matrix: Matrix, labels: list[str], edits: Sequence[Edit]) -> list[Edit]:
    """Return a minimal set of edits with the same resulting cell.

    An edit of a disconnected vertex changes nothing; of two edits that disconnect the same vertex,
    one suffices.
    """
    cell = _connected(*_edit(matrix, labels, edits))
    needed = list(edits)
    for edit in edits:
        fewer = [other for other in needed if other != edit]
        if _connected(*_edit(matrix, labels, fewer)) == cell:
            needed = fewer

    return needed


def _connected(matrix: Matrix, labels: list[str]) -> tuple[dict[int, str], set[tuple[int, int]]]:
    """Return the labels of the vertices on a path from input to output, and their edges."""
    kept = _on_a_path(matrix)
    edges = {(u, v) for u, v in product(kept, repeat=2) if matrix[u][v]}
    return {u: labels[u] for u in kept}, edges


def _one_step(matrix: Matrix, labels: list[str]) -> Iterator[tuple[str, Matrix, list[str]]]:
    n = len(labels)
    for u in range(1, n - 1):
        for label in _LABELS:
            yield "swap_label", matrix, [*labels[:u], label, *labels[u + 1 :]]

    for u in range(n):
        for v in range(u + 1, n):
            flipped = list(map(list, matrix))
            flipped[u][v] ^= 1
            yield "flip_edge", flipped, labels
            for label in _LABELS:
                yield (
                    "add_vertex",
                    _with_vertex(matrix, u, v),
                    [*labels[: u + 1], label, *labels[u + 1 :]],
                )


def _with_vertex(matrix: Matrix, u: int, v: int) -> Matrix:
    """Return the matrix with a new vertex after u, fed by u and feeding v."""
    rows = [[*row[: u + 1], 0, *row[u + 1 :]] for row in matrix]
    rows.insert(u + 1, [0] * (len(matrix) + 1))
    rows[u][u + 1] = rows[u + 1][v + 1] = 1
    return rows
