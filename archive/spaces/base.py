"""What a search space is: a set of architectures, and the ways to move in it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from archive.architecture.graph import Architecture
from archive.architecture.operations import vocabulary
from archive.errors import InvalidArchitectureError, UnknownNameError

if TYPE_CHECKING:
    from archive.spaces.decisions import Decisions


@dataclass(frozen=True, slots=True)
class Mutation:
    """One architecture made from another.

    Attributes:
        child: The new architecture, a member of the space.
        operations: Names of the modifications that made it, in order. Those that changed nothing are left out. Empty
            where the space offers no way out of the parent, and the child is the parent.
    """

    child: Architecture
    operations: tuple[str, ...]


class Space(ABC):
    """A set of architectures, and the ways to move in it.

    A space is immutable and holds no state: every random choice comes from the generator that is passed in, so one
    seed gives one result. Two spaces are equal when name and configuration are, and `spaces.get(space.name,
    **space.config)` gives an equal space.

    Attributes:
        name: Name of the space, and of the vocabulary its architectures are written in.
    """

    name: str

    @property
    @abstractmethod
    def config(self) -> dict[str, Any]:
        """Every setting of the space with its value, as a JSON object: what a study records."""

    @abstractmethod
    def validate(self, architecture: Architecture) -> None:
        """Check that an architecture is a member.

        Raises:
            InvalidArchitectureError: It is not; the message says why.
        """

    @abstractmethod
    def initial_pool(self, rng: np.random.Generator | None = None) -> list[Architecture]:
        """Return the members that a search begins with, no two of equal `functional_key`.

        Args:
            rng: Draws the pool where its networks are random ones, so that each search begins elsewhere; it is not used
                where the pool is a fixed list of designs. None stands for the generator of seed 0, for examples.
        """

    @abstractmethod
    def sample(self, rng: np.random.Generator) -> Architecture:
        """Return a random member; any distribution that reaches the whole space."""

    @abstractmethod
    def mutate(self, architecture: Architecture, rng: np.random.Generator) -> Mutation:
        """Return a random member near a member, of another `functional_key` if there is any.

        Args:
            architecture: A member of the space.
            rng: Source of every choice.
        """

    @abstractmethod
    def neighbours(self, architecture: Architecture) -> Iterator[Mutation]:
        """Yield every network that is one legal modification away, each network once, never the given one.

        They are made as they are asked for: there can be very many. The order depends on the order of the layers.

        Args:
            architecture: A member of the space.
        """

    def members(self) -> Sequence[Architecture] | None:
        """Return every network of the space, one of each `functional_key`; None where there are too many to list.

        The list is made once and shared: callers do not change it. Its order is always the same.
        """
        return None

    @property
    def is_cell(self) -> bool:
        """Whether the networks are cells, whose layers have no units: agents compare those by other distances."""
        return vocabulary(self.name).cells

    def decisions(self) -> Decisions | None:
        """Return what makes a network of categorical decisions; None where agents that need them cannot search.

        Unless a space says otherwise, cells that can be listed are made of edges and labels.
        """
        members = self.members() if self.is_cell else None
        if members is None:
            return None
        from archive.spaces.decisions import MatrixDecisions

        return MatrixDecisions(self, max(len(member.layers) for member in members))

    def contains(self, architecture: Architecture) -> bool:
        """Return whether an architecture is a member."""
        try:
            self.validate(architecture)
        except InvalidArchitectureError:
            return False
        return True

    def __eq__(self, other: object) -> bool:
        """Compare kind and configuration."""
        if not isinstance(other, Space):
            return NotImplemented
        return type(self) is type(other) and self.config == other.config

    def __hash__(self) -> int:
        """Hash name and configuration."""
        return hash((self.name, tuple(sorted(self.config.items()))))

    def __repr__(self) -> str:
        """Return the call that makes an equal space."""
        settings = "".join(f", {name}={value!r}" for name, value in self.config.items())
        return f"spaces.get({self.name!r}{settings})"


def check_space(space: str, architecture: Architecture) -> None:
    """Check that an architecture is written in a space's vocabulary.

    Raises:
        InvalidArchitectureError: It is of another space.
    """
    if architecture.space != space:
        raise InvalidArchitectureError(f"the architecture must be of space {space}, got {architecture.space}")


def refuse_settings(space: str, config: Mapping[str, Any]) -> None:
    """Check that a space that has no settings is given none.

    Raises:
        UnknownNameError: It is given one.
    """
    for name in config:
        raise UnknownNameError(f"setting of space {space}", name, (), hint="it has none")
