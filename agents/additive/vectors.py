"""Networks as vectors of decisions, relative to a parent, and their replacements.

A decision is *changed* where a network has another choice than the parent. One that the parent
alone has is not changed: it vanished with another decision.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from archive.agents.encodings import decisions_of
from archive.architecture.graph import Architecture
from archive.errors import InvalidArchitectureError
from archive.spaces.base import Space
from archive.spaces.decisions import ABSENT, Vector

Vectors = NDArray[np.int64]
"""(n, D) choices of n networks; a row of `UNKNOWN` is a network without decisions."""

UNKNOWN = -2

_MOST_KEPT = 2**15
"""Vectors and networks that are cached."""


@dataclass(frozen=True)
class Replacement:
    """One changed decision of a network.

    Attributes:
        position: Position of the decision.
        choice: Its new choice.
    """

    position: int
    choice: int


class VectorSpace:
    """The decisions of a space.

    Args:
        space: The space; of a constrained one, all decisions of the whole space.
        agent: Name of the agent, for the error.

    Attributes:
        space: The space.
        size: D, the number of decisions.

    Raises:
        UsageError: The space has no decisions.
    """

    def __init__(self, space: Space, agent: str) -> None:
        self.space = space
        self._decisions = decisions_of(space.whole, agent)
        self.size = len(self._decisions.decisions)
        self._vectors: dict[str, Vector | None] = {}
        self._networks: dict[Vector, Architecture | None] = {}

    def encode(self, networks: Sequence[Architecture]) -> Vectors:
        """Return the vectors of networks: (n, D) int64."""
        vectors = np.full((len(networks), self.size), UNKNOWN, np.int64)
        for row, network in enumerate(networks):
            vector = self._vector(network)
            if vector is not None:
                vectors[row] = vector

        return vectors

    def build(self, vector: Sequence[int]) -> Architecture | None:
        """Return the network of a vector in the whole space; None where there is none."""
        whole = self.canonical(vector)
        if whole not in self._networks:
            if len(self._networks) >= _MOST_KEPT:
                self._networks.clear()

            self._networks[whole] = self._build(whole)

        return self._networks[whole]

    def canonical(self, vector: Sequence[int]) -> Vector:
        """Return a vector without superfluous choices, with the first choice for missing ones."""
        whole: list[int] = []
        for choice in vector:
            if not self._decisions.needed(whole):
                whole.append(ABSENT)
            else:
                whole.append(max(int(choice), 0))

        return tuple(whole)

    def replacements(self, parent: Sequence[int]) -> Iterator[Replacement]:
        """Yield every other choice of every decision that a network has."""
        for position, decision in enumerate(self._decisions.decisions):
            if parent[position] == ABSENT:
                continue

            for choice in range(len(decision.choices)):
                if choice != parent[position]:
                    yield Replacement(position, choice)

    def replace(self, parent: Sequence[int], replacement: Replacement) -> list[int]:
        """Return a vector with one decision changed."""
        changed = list(parent)
        changed[replacement.position] = replacement.choice
        return changed

    def changes(self, parent: Sequence[int], child: Sequence[int]) -> tuple[str, ...]:
        """Return the changed decisions in words: `block 2 mixer: none`."""
        words = []
        for position, decision in enumerate(self._decisions.decisions):
            old = int(parent[position])
            new = int(child[position])
            if new not in (ABSENT, old):
                words.append(f"{decision.name}: {decision.choices[new]}")

        return tuple(words)

    def _build(self, vector: Vector) -> Architecture | None:
        try:
            network = self._decisions.build(vector)
        except InvalidArchitectureError:
            return None

        return network if self.space.whole.contains(network) else None

    def _vector(self, network: Architecture) -> Vector | None:
        key = network.key
        if key not in self._vectors:
            if len(self._vectors) >= _MOST_KEPT:
                self._vectors.clear()

            self._vectors[key] = self._decisions.encode(network)

        return self._vectors[key]


def is_known(vectors: Vectors) -> NDArray[np.bool_]:
    """Return which networks have decisions: (n,)."""
    known: NDArray[np.bool_] = (vectors != UNKNOWN).all(axis=1)
    return known


def changed(vectors: Vectors, parent: Sequence[int] | NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which decisions of networks are changed: (n, D)."""
    different: NDArray[np.bool_] = (vectors != np.asarray(parent)) & (vectors != ABSENT)
    return different


def replacements_of(vectors: Vectors) -> NDArray[np.int64]:
    """Return the number of decisions in which networks differ that both have: (n, n)."""
    present = vectors != ABSENT
    counts = np.zeros((len(vectors), len(vectors)), np.int64)
    for column, has in zip(vectors.T, present.T, strict=True):
        counts += (column[:, None] != column[None, :]) & has[:, None] & has[None, :]

    return counts


def choose_parent(vectors: Vectors, scores: NDArray[np.float64]) -> int:
    """Return the row of the parent: most others differ from it in one decision; ties by the score.

    Args:
        vectors: (n, D) choices of networks with decisions, n >= 1.
        scores: (n,) their scores.
    """
    neighbours = (replacements_of(vectors) == 1).sum(axis=1)
    order = np.lexsort((-scores, -neighbours))
    return int(order[0])


Levels = Mapping[int, Sequence[int]]
"""Choices by the position of their decision."""


def levels_of(vectors: Vectors, parent: Sequence[int]) -> dict[int, list[int]]:
    """Return the choices that networks have, the parent's first, of each decision that it has."""
    levels: dict[int, list[int]] = {}
    for position, choice in enumerate(parent):
        if choice == ABSENT:
            continue

        others = {*vectors[:, position].tolist()} - {choice, ABSENT, UNKNOWN}
        levels[position] = [int(choice), *sorted(others)]

    return levels
