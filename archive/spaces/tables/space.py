"""Subspace of the networks of a table, so that the table has a result for every proposal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, final

import numpy as np

from archive.architecture.graph import Architecture
from archive.errors import SettingsError
from archive.spaces.base import Mutation, Space
from archive.spaces.decisions import Decisions
from archive.spaces.tables.reader import NAMED, Table

_POOL_SIZE = 10
_TRIES = 100


@final
class TableSpace(Space):
    """The members of a space that are in a table, up to relabelling and dead edges.

    A table is often a sample: with one cell in twenty, as for NAS-Bench-101 here, most mutations of
    a member are not members. Moves are the moves of the space, restricted to members.

    Args:
        space: Space of the table's networks.
        table: Name or path of the table; a path is recorded as an absolute one.

    Attributes:
        name: Name of the space.
        table: The table.

    Raises:
        SettingsError: The table has networks of another space, or the setting is no string.
        UsageError: The table cannot be read.
    """

    def __init__(self, space: Space, table: str) -> None:
        if not isinstance(table, str):
            raise SettingsError(f"table must be the name or path of a table, got {table!r}")

        self.name = space.name
        self.table = Table.open(table)
        if self.table.space != space.name:
            raise SettingsError(
                f"the table {table} holds networks of {self.table.space}, not of {space.name}"
            )

        if not len(self.table):
            raise SettingsError(f"the table {table} has no rows")

        if self.table.space_config not in ({}, space.config):
            raise SettingsError(
                f"the table {table} has other {space.name} than the settings of the space name"
            )

        self._space = space
        self._reference = table if table in NAMED else self.table.origin

    @property
    def config(self) -> dict[str, Any]:
        """The settings of the space, and the table's name or path."""
        return {**self._space.config, "table": self._reference}

    def named(self, architecture: Architecture) -> Mapping[str, Any]:
        """See `Space.named`."""
        return self._space.named(architecture)

    def of_names(self, names: Mapping[str, Any]) -> Architecture:
        """See `Space.of_names`."""
        return self._space.of_names(names)

    def validate(self, architecture: Architecture) -> None:
        """Check that an architecture is a member of the space and in the table.

        Raises:
            InvalidArchitectureError: It is not; the message says why.
        """
        self._space.validate(architecture)
        self.table.position(architecture)

    def members(self) -> Sequence[Architecture]:
        """Return the architectures of the table, in its order."""
        return self.table.architectures

    def decisions(self) -> Decisions | None:
        """Return the decisions of the space; they decode to networks of the table only."""
        decisions = self._space.decisions()
        return super().decisions() if decisions is None else decisions.within(self)

    def initial_pool(self, rng: np.random.Generator | None = None) -> list[Architecture]:
        """Return ten random members; all of them where the table has fewer."""
        n = len(self.table)
        positions = (np.random.default_rng(0) if rng is None else rng).choice(
            n, min(n, _POOL_SIZE), replace=False
        )
        return [self.table.architectures[position] for position in positions]

    def sample(self, rng: np.random.Generator) -> Architecture:
        """Return a member drawn uniformly."""
        return self.table.architectures[int(rng.integers(len(self.table)))]

    def mutate(self, architecture: Architecture, rng: np.random.Generator) -> Mutation:
        """Return a mutation of the space with a child in the table.

        If a hundred mutations find none, the child is another member drawn uniformly, with the
        operation `draw`.
        """
        for _ in range(_TRIES):
            mutation = self._space.mutate(architecture, rng)
            if mutation.operations and mutation.child.functional_key in self.table.index:
                return mutation

        others = len(self.table) - 1
        if not others:
            return Mutation(architecture, ())

        other = int(rng.integers(others))
        child = self.table.architectures[other + (other >= self.table.position(architecture))]
        return Mutation(child, ("draw",))

    def neighbours(self, architecture: Architecture) -> Iterator[Mutation]:
        """Yield those neighbours in the space that the table holds."""
        for mutation in self._space.neighbours(architecture):
            if mutation.child.functional_key in self.table.index:
                yield mutation
