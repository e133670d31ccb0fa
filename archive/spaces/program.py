"""The open space `program`: runs of any program on record (`archive record`).

A network is the graph of what a run was given: its arguments by name, its program, and the digest
of its source files (`archive.architecture.parameter_operations`). Where the network that the
program trained was captured, the graph `BUILDS` it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn, final

import numpy as np

from archive.architecture.graph import Architecture
from archive.architecture.parameter_operations import NAME as PARAMETERS
from archive.architecture.parameter_operations import configuration_of
from archive.errors import InvalidArchitectureError, UsageError
from archive.spaces.base import Mutation, Space, refuse_settings

NAME = "program"


@final
class RecordedPrograms(Space):
    """Configurations of recorded runs; they are recorded, not drawn.

    The space has no list of names and no ranges: the next edit of a program brings new ones.
    Agents that draw or mutate networks cannot search it.
    """

    name = NAME

    def __init__(self, **config: Any) -> None:
        """Refuse settings."""
        refuse_settings(self.name, config)

    @property
    def config(self) -> dict[str, Any]:
        """Empty: there are no settings."""
        return {}

    @property
    def searchable(self) -> bool:
        """False: there is nothing to draw."""
        return False

    def validate(self, architecture: Architecture) -> None:
        """Check that an architecture is the graph of a configuration.

        Raises:
            InvalidArchitectureError: It is none.
        """
        self.named(architecture)

    def named(self, architecture: Architecture) -> dict[str, Any]:
        """Return the values of a run by name.

        Raises:
            InvalidArchitectureError: The architecture is no configuration.
        """
        if architecture.space != PARAMETERS:
            raise InvalidArchitectureError(
                f"the architecture must be of space {self.name}, got {architecture.space}"
            )

        return configuration_of(architecture)

    def initial_pool(self, rng: np.random.Generator | None = None) -> list[Architecture]:
        """Raise a `UsageError`: the space has no designs."""
        _refuse("has no initial pool")

    def sample(self, rng: np.random.Generator) -> Architecture:
        """Raise a `UsageError`: the space has no distribution."""
        _refuse("cannot be sampled")

    def mutate(self, architecture: Architecture, rng: np.random.Generator) -> Mutation:
        """Raise a `UsageError`: the space has no mutations."""
        _refuse("has no mutations")

    def neighbours(self, architecture: Architecture) -> Iterator[Mutation]:
        """Raise a `UsageError`: the space has no mutations."""
        _refuse("has no mutations")


def _refuse(what: str) -> NoReturn:
    raise UsageError(f"the space {NAME} {what}: its runs are recorded (archive record)")
