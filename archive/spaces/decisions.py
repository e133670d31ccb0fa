"""Architectures as vectors of categorical decisions, for TPE, REINFORCE and TreeBO.

    symbol   meaning                                                     shape
    D        number of decisions of a space                              scalar
    x        the index of each choice, `ABSENT` for a decision not made  (D,)

    space        decisions                                                       paper
    nasbench201  the operation on each of six edges                              NAS-Bench-201
    nasbench101  21 edges of seven vertices, then five labels                    NAS-Bench-101
    other cells  the same, for their number of vertices
    mlp, cnn     number of layers, then operation and units of each; chains only  NASBOT, C.1

A decision can depend on earlier ones: a network of three layers has no fourth layer to decide on.
Several vectors may describe one network. `encode` returns one of them, the same for all
relabellings.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from itertools import combinations, compress, count
from typing import TYPE_CHECKING, Self, final

import numpy as np

from archive.architecture.graph import Architecture, Layer
from archive.architecture.operations import INPUT, OUTPUT, vocabulary
from archive.errors import InvalidArchitectureError

if TYPE_CHECKING:
    from archive.spaces.base import Space

ABSENT = -1

Vector = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """One categorical decision.

    Attributes:
        name: Its name, unique in the space.
        choices: The options.
        ordered: Whether neighbouring options are similar.
    """

    name: str
    choices: tuple[str, ...]
    ordered: bool = False


class Decisions(ABC):
    """Encoding of the members of a space as decisions; immutable.

    Args:
        space: The space. Vectors decode to its members only.

    Attributes:
        space: The space.
        decisions: All D decisions, in their order.
        roots: Number of leading decisions that determine which of the others are made: the branches
            of the tree. 0 if all networks have one shape.
    """

    roots: int = 0
    decisions: tuple[Decision, ...]

    def __init__(self, space: Space) -> None:
        """Keep the space."""
        self.space = space

    @abstractmethod
    def needed(self, prefix: Sequence[int]) -> bool:
        """Return whether the decision at position `len(prefix)` exists after the ones before it."""

    @abstractmethod
    def encode(self, architecture: Architecture) -> Vector | None:
        """Return the decisions of a network of the space; None if it has none."""

    @abstractmethod
    def build(self, vector: Vector) -> Architecture:
        """Return the network that decisions describe.

        Raises:
            InvalidArchitectureError: They describe no network.
        """

    def complete(self, vector: Sequence[int], rng: np.random.Generator) -> Vector:
        """Complete a vector: draw missing decisions uniformly, and remove superfluous ones."""
        whole: list[int] = []
        for decision, choice in zip(self.decisions, vector, strict=True):
            if not self.needed(whole):
                whole.append(ABSENT)
            elif choice == ABSENT:
                whole.append(int(rng.integers(len(decision.choices))))
            else:
                whole.append(choice)

        return tuple(whole)

    def within(self, space: Space) -> Self:
        """Return the same decisions for a subspace."""
        narrowed = copy(self)
        narrowed.space = space
        return narrowed

    def decode(self, vector: Vector) -> Architecture | None:
        """Return the member that a vector describes; None if it describes no member."""
        try:
            network = self.build(vector)
        except InvalidArchitectureError:
            return None

        return network if self.space.contains(network) else None


@final
class MatrixDecisions(Decisions):
    """Decisions of cells: edges, then labels of the vertices on a path from input to output.

    Args:
        space: Space of cells.
        vertices: Maximum number of vertices of a cell, input and output included; larger cells have
            no encoding.
    """

    def __init__(self, space: Space, vertices: int) -> None:
        """Name the edges of the upper triangle row by row, and the inner vertices."""
        super().__init__(space)
        self.vertices = vertices
        self._pairs = tuple(combinations(range(vertices), 2))
        labels = dict.fromkeys(vocabulary(space.name).operations)
        del labels[INPUT], labels[OUTPUT]
        self._labels = tuple(labels)
        decisions = [Decision(f"edge {u}-{v}", ("no", "yes")) for u, v in self._pairs]
        decisions += [Decision(f"vertex {u}", self._labels) for u in range(1, vertices - 1)]
        self.decisions = tuple(decisions)

    def needed(self, prefix: Sequence[int]) -> bool:
        """Return whether the decision exists: a vertex on no path has no label."""
        vertex = len(prefix) - len(self._pairs)
        return vertex < 0 or vertex + 1 in self._vertices_in_use(prefix)

    def encode(self, architecture: Architecture) -> Vector | None:
        """Return the decisions of the canonical cell; absent vertices precede the output."""
        if not self.space.contains(architecture) or len(architecture.layers) > self.vertices:
            return None

        cell = architecture.canonical
        position = [*range(len(cell.layers) - 1), self.vertices - 1]
        edges = {(position[u], position[v]) for u, v in cell.edges}
        is_edge = [int(pair in edges) for pair in self._pairs]
        labels = dict.fromkeys(range(1, self.vertices - 1), ABSENT)
        for u in self._vertices_in_use(is_edge)[1:-1]:
            labels[u] = self._labels.index(cell.layers[u].op)

        return (*is_edge, *labels.values())

    def build(self, vector: Vector) -> Architecture:
        """Return the cell without disconnected vertices."""
        used = self._vertices_in_use(vector)
        if self.vertices - 1 not in used:
            raise InvalidArchitectureError("no path leads from the input to the output of the cell")

        position_of = dict(zip(used, count()))
        inner = [Layer(self._labels[vector[len(self._pairs) + u - 1]]) for u in used[1:-1]]
        edges = []
        for u, v in self._edges(vector):
            if u in position_of and v in position_of:
                edges.append((position_of[u], position_of[v]))

        return Architecture(self.space.name, [Layer(INPUT), *inner, Layer(OUTPUT)], edges)

    def _edges(self, vector: Sequence[int]) -> list[tuple[int, int]]:
        return list(compress(self._pairs, vector))

    def _vertices_in_use(self, vector: Sequence[int]) -> list[int]:
        """Return the vertices on a path from input to output, ascending.

        Input and output only if there is one.
        """
        edges = self._edges(vector)
        forward = {0}
        backward = {self.vertices - 1}
        for u, v in edges:
            if u in forward:
                forward.add(v)

        for u, v in reversed(edges):
            if v in backward:
                backward.add(u)

        return sorted(forward & backward)
