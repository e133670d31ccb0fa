"""The space `nasbench201`: cells of six edges, each with one of five operations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self, final

import numpy as np

from archive.architecture.graph import Architecture
from archive.architecture.nasbench_codec import (
    NB201_SLOTS,
    from_nasbench201,
    nasbench201_text,
    to_nasbench201,
)
from archive.architecture.operations import NASBENCH201
from archive.errors import CodecError, InvalidArchitectureError
from archive.spaces.base import NONE, Mutation, Space, check_space
from archive.spaces.cell import CellSpace
from archive.spaces.decisions import Decision, Decisions, Vector
from archive.spaces.nasbench201_cells import cells

_CHOICES = (NONE, *NASBENCH201.of_group("cell"))
_EDGES = len(NB201_SLOTS)
_SLOT_NAMES = [f"{tail}-{head}" for tail, head in NB201_SLOTS]


@final
class NasBench201(CellSpace):
    """The cells of NAS-Bench-201, including cells without a path from input to output."""

    name = "nasbench201"
    vertices = _EDGES + 2

    @staticmethod
    def slots(architecture: Architecture) -> dict[str, str]:
        """Return the operation of each edge, `0-1` to `2-3`."""
        try:
            operations = _operations(architecture)
        except CodecError as error:
            raise InvalidArchitectureError(str(error)) from None

        return dict(zip(_SLOT_NAMES, operations, strict=True))

    def validate(self, architecture: Architecture) -> None:
        """Check that a string of the table describes the architecture.

        Raises:
            InvalidArchitectureError: No string does.
        """
        check_space(self.name, architecture)
        self.slots(architecture)

    def members(self) -> Sequence[Architecture]:
        """Return one cell without dead edges of every network, 8,765 in all."""
        return cells()

    def decisions(self) -> Decisions:
        """Return the decisions on the operation of each edge."""
        return EdgeDecisions(self)

    def sample(self, rng: np.random.Generator) -> Architecture:
        """Return a cell of six operations drawn uniformly."""
        return _cell([_CHOICES[i] for i in rng.integers(len(_CHOICES), size=_EDGES)])

    def mutate(self, architecture: Architecture, rng: np.random.Generator) -> Mutation:
        """Change the operation of a random edge until another `functional_key` results.

        Another operation on a dead edge gives another string of the table, but the same network.
        """
        operations = _operations(architecture)
        while True:
            edge = int(rng.integers(_EDGES))
            child = _cell(
                [*operations[:edge], _CHOICES[rng.integers(len(_CHOICES))], *operations[edge + 1 :]]
            )
            if child.functional_key != architecture.functional_key:
                return Mutation(child, ("swap_label",))

    def neighbours(self, architecture: Architecture) -> Iterator[Mutation]:
        """Yield the cells with another operation on one edge."""
        operations = _operations(architecture)
        seen = {architecture.key}
        for edge in range(_EDGES):
            for choice in _CHOICES:
                child = _cell([*operations[:edge], choice, *operations[edge + 1 :]])
                if child.key not in seen:
                    seen.add(child.key)
                    yield Mutation(child, ("swap_label",))


@final
class EdgeDecisions(Decisions):
    """The operation on each edge, in the order of the table's strings."""

    def __init__(self, space: Space) -> None:
        """Offer every operation on every edge."""
        super().__init__(space)
        self._offer(_CHOICES)

    def within(self, space: Space) -> Self:
        """Return the decisions with the operations that members of the subspace have."""
        narrowed = super().within(space)
        members = space.members()
        if members is not None:
            used = {NONE}
            for member in members:
                for layer in member.layers:
                    used.add(layer.op)

            narrowed._offer([choice for choice in self._choices if choice in used])

        return narrowed

    def needed(self, prefix: Sequence[int]) -> bool:
        """Every edge has an operation."""
        return True

    def encode(self, architecture: Architecture) -> Vector | None:
        """Return the operations of the alphabetically first string."""
        if not self.space.contains(architecture):
            return None

        operations = _operations(architecture)
        if not set(operations) <= set(self._choices):
            # In a subspace, another operation can stand on a dead edge only.
            operations = _operations(architecture.functional)

        return tuple(map(self._choices.index, operations))

    def build(self, vector: Vector) -> Architecture:
        """See `Decisions.build`."""
        return _cell([self._choices[option] for option in vector])

    def _offer(self, choices: Sequence[str]) -> None:
        """Set the operations to choose from."""
        self._choices = tuple(choices)
        self.decisions = tuple(Decision(f"edge {name}", self._choices) for name in _SLOT_NAMES)


def _operations(architecture: Architecture) -> list[str]:
    """Return the operations on the six edges, in the order of the table's strings."""
    text = to_nasbench201(architecture)
    return [part.partition("~")[0] for part in text.replace("+", "").split("|") if part]


def _cell(operations: list[str]) -> Architecture:
    return from_nasbench201(nasbench201_text(operations))
