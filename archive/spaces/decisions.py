"""An architecture as a list of categorical decisions, and back: what TPE, REINFORCE and TreeBO search over.

    symbol   meaning                                                     shape
    D        decisions that a space can ask for                          scalar
    x        the position of each choice, `ABSENT` where none is made    (D,)

    space          decisions                                                                  paper
    nasbench201    the operation on each of six edges                                         NAS-Bench-201
    nasbench101    21 edges of seven vertices, then five labels                               NAS-Bench-101
    other cells    the same, of as many vertices as they have
    mlp, cnn       how many layers, then operation and units of each; chains only             NASBOT, appendix C.1

Whether a decision is made can depend on those before it: a network of three layers has no fourth to decide on. Several
lists may describe one network. `encode` gives one of them, the same for all relabellings.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Self, final

import numpy as np

from archive.architecture.graph import Architecture, Layer
from archive.architecture.operations import INPUT, OUTPUT, vocabulary
from archive.errors import InvalidArchitectureError
from archive.spaces.base import Space

ABSENT = -1

Vector = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """One choice to make.

    Attributes:
        name: Its name, unique in the space.
        choices: What can be chosen.
        ordered: Whether neighbouring choices are alike.
    """

    name: str
    choices: tuple[str, ...]
    ordered: bool = False


class Decisions(ABC):
    """The decisions that make a member of a space; immutable.

    Args:
        space: The space; what it does not contain, no list decodes to.

    Attributes:
        space: As given.
        decisions: All D of them, in the order in which they are made.
        roots: How many of the first settle which of the others are made: where the tree branches. 0 where networks
            have one shape.
    """

    roots: int = 0
    decisions: tuple[Decision, ...]

    def __init__(self, space: Space) -> None:
        """Keep the space."""
        self.space = space

    @abstractmethod
    def needed(self, made: Sequence[int]) -> bool:
        """Return whether the next decision is to be made, after those that are: `len(made)` is its position."""

    @abstractmethod
    def encode(self, architecture: Architecture) -> Vector | None:
        """Return decisions that make a network of the space, None where no decisions do."""

    @abstractmethod
    def build(self, made: Vector) -> Architecture:
        """Return the network that decisions describe.

        Raises:
            InvalidArchitectureError: They describe none.
        """

    def completed(self, made: Sequence[int], rng: np.random.Generator) -> Vector:
        """Return decisions with those drawn uniformly that are needed and not made, and without those not needed."""
        whole: list[int] = []
        for decision, choice in zip(self.decisions, made, strict=True):
            if not self.needed(whole):
                whole.append(ABSENT)
            else:
                whole.append(int(rng.integers(len(decision.choices))) if choice == ABSENT else choice)
        return tuple(whole)

    def within(self, space: Space) -> Self:
        """Return the same decisions for a space within this one, which has fewer members."""
        narrowed = copy(self)
        narrowed.space = space
        return narrowed

    def decode(self, made: Vector) -> Architecture | None:
        """Return the member that decisions make, None where they make none."""
        try:
            found = self.build(made)
        except InvalidArchitectureError:
            return None
        return found if self.space.contains(found) else None


@final
class MatrixDecisions(Decisions):
    """The decisions of cells: which edges there are, then the labels of the vertices on a path from input to output.

    Args:
        space: Cells of the operations of its vocabulary.
        vertices: Most vertices of a cell, input and output included; larger cells are described by nothing.
    """

    def __init__(self, space: Space, vertices: int) -> None:
        """Name the edges of the upper triangle row by row, and the inner vertices."""
        super().__init__(space)
        self.vertices = vertices
        self._pairs = tuple((u, v) for u in range(vertices) for v in range(u + 1, vertices))
        self._labels = tuple(name for name in vocabulary(space.name).operations if name not in (INPUT, OUTPUT))
        self.decisions = (
            *(Decision(f"edge {u}-{v}", ("no", "yes")) for u, v in self._pairs),
            *(Decision(f"vertex {u}", self._labels) for u in range(1, vertices - 1)),
        )

    def needed(self, made: Sequence[int]) -> bool:
        """A vertex that is cut off has no label to decide on."""
        at = len(made) - len(self._pairs)
        return at < 0 or at + 1 in self._used(made)

    def encode(self, architecture: Architecture) -> Vector | None:
        """Return the cell in canonical order, vertices that it lacks before the output."""
        if not self.space.contains(architecture) or len(architecture.layers) > self.vertices:
            return None
        cell = architecture.canonical
        last = len(cell.layers) - 1
        place = {u: u if u < last else self.vertices - 1 for u in range(last + 1)}
        edges = {(place[u], place[v]) for u, v in cell.edges}
        chosen = [int(pair in edges) for pair in self._pairs]
        labels = dict.fromkeys(range(1, self.vertices - 1), ABSENT)
        for u in self._used(chosen)[1:-1]:
            labels[u] = self._labels.index(cell.layers[u].op)
        return (*chosen, *labels.values())

    def build(self, made: Vector) -> Architecture:
        """Return the cell without what is cut off."""
        used = self._used(made)
        if self.vertices - 1 not in used:
            raise InvalidArchitectureError("no path leads from the input to the output of the cell")
        place = {u: at for at, u in enumerate(used)}
        inner = [Layer(self._labels[made[len(self._pairs) + u - 1]]) for u in used[1:-1]]
        edges = [(place[u], place[v]) for u, v in self._edges(made) if u in place and v in place]
        return Architecture(self.space.name, [Layer(INPUT), *inner, Layer(OUTPUT)], edges)

    def _edges(self, made: Sequence[int]) -> list[tuple[int, int]]:
        return [pair for pair, chosen in zip(self._pairs, made, strict=False) if chosen]

    def _used(self, made: Sequence[int]) -> list[int]:
        """Return the vertices on a path from input to output, ascending; input and output only if there is one."""
        edges = self._edges(made)
        forward, backward = {0}, {self.vertices - 1}
        for u, v in edges:
            if u in forward:
                forward.add(v)
        for u, v in reversed(edges):
            if v in backward:
                backward.add(u)
        return sorted(forward & backward)
