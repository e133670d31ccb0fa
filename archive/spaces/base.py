"""The contract of a search space: a set of architectures, and the moves in it."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from archive.architecture.graph import Architecture
from archive.architecture.operations import vocabulary
from archive.errors import InvalidArchitectureError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from archive.spaces.decisions import Decisions


NONE = "none"
"""The operation of a slot that is empty (`Space.slots`)."""

Drawn = TypeVar("Drawn")

MISSES = 200
"""Draws in a row without a new network after which a space seems exhausted.

Less than 5 % of it is left, with 99.99 % certainty: (1 - 0.05)^200."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """An architecture and the modifications that led to it.

    Attributes:
        child: The new architecture, a member of the space.
        operations: Names of the effective modifications, in order. Empty if the space has no other
            network to move to; the child is the parent then.
    """

    child: Architecture
    operations: tuple[str, ...]


class Space(ABC):
    """A set of architectures, and the moves in it.

    A space is immutable and has no state: every random choice comes from the generator passed in,
    so one seed gives one result. Two spaces are equal if their names and configurations are.
    `spaces.get(space.name, **space.config)` returns an equal space.

    Attributes:
        name: Name of the space, and of the vocabulary of its architectures.
    """

    name: str
    adopts = False
    """Whether `adopt` may return another network."""

    @property
    @abstractmethod
    def config(self) -> dict[str, Any]:
        """Every setting of the space with its value, as a JSON object; recorded with a study."""

    @abstractmethod
    def validate(self, architecture: Architecture) -> None:
        """Check that an architecture is a member.

        Raises:
            InvalidArchitectureError: The architecture is not a member; the message gives the
                reason.
        """

    @abstractmethod
    def initial_pool(self, rng: np.random.Generator | None = None) -> list[Architecture]:
        """Return the first members of a search, no two of equal `functional_key`.

        Args:
            rng: Generator of a random pool, so that searches with different seeds start
                differently. Spaces with a fixed list of designs do not use it. None means the
                generator of seed 0.
        """

    @abstractmethod
    def sample(self, rng: np.random.Generator) -> Architecture:
        """Return a random member, of any distribution with the whole space as its support."""

    @abstractmethod
    def mutate(self, architecture: Architecture, rng: np.random.Generator) -> Mutation:
        """Return a random member near a member, of another `functional_key` if the space has one.

        Args:
            architecture: A member of the space.
            rng: Source of every random choice.
        """

    @abstractmethod
    def neighbours(self, architecture: Architecture) -> Iterator[Mutation]:
        """Yield every network that one legal modification gives, each once, without the given one.

        A generator, since there can be very many. Their order depends on the order of the layers.

        Args:
            architecture: A member of the space.
        """

    def members(self) -> Sequence[Architecture] | None:
        """Return every network of the space, one of each `functional_key`.

        None if there are too many to list.

        The list is created once and shared: callers must not change it. Its order is deterministic.
        """
        return None

    @staticmethod
    def slots(architecture: Architecture) -> Mapping[str, str] | None:
        """Return the operation of each slot of a member by the slot's name, `NONE` if empty.

        A space has slots if all its networks are operations in the same places; adjacency encodings
        then compare places, not matrices. None for other spaces.

        Raises:
            InvalidArchitectureError: The space has slots, and the architecture is no member.
        """
        return None

    def named(self, architecture: Architecture) -> Mapping[str, Any]:
        """Return the values that a member takes, by the names of the space's decisions.

        JSON values, in the order of the space. Empty for a space whose networks are not made of
        decisions with names.

        Args:
            architecture: A member of the space.

        Raises:
            InvalidArchitectureError: The space has named decisions, and the architecture is no
                member.
        """
        del architecture
        return {}

    def parameters_of(self, architecture: Architecture) -> dict[str, Any]:
        """Return the values of a network as a training takes them: `named`, with groups as trees.

        Empty for a network that is no member, which a study may have been told.
        """
        try:
            return dict(self.named(architecture))
        except InvalidArchitectureError:
            return {}

    def of_names(self, names: Mapping[str, Any]) -> Architecture:
        """Return the member that takes these values, the inverse of `named`.

        Args:
            names: A value of each decision that the member has, by name.

        Raises:
            InvalidArchitectureError: They describe no member.
            UsageError: The networks of the space are not made of decisions with names.
        """
        del names
        raise UsageError(
            f"the networks of the space {self.name} have no parameters with names: give a network"
        )

    def fill(self, names: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return values with those that the space supplies for names that are left out."""
        return names

    def adopt(self, architecture: Architecture) -> Architecture | None:
        """Return a network of the study as agents of this space see it; None where they do not.

        A network from before a space has grown gets the new parameters; a part of a space leaves
        out the networks of the rest.
        """
        return architecture

    @property
    def is_cell(self) -> bool:
        """Whether the networks are cells: layers without units.

        Agents choose their distances by this property.
        """
        return vocabulary(self.name).cells

    @property
    def searchable(self) -> bool:
        """Whether networks can be drawn and mutated; if not, no agent can search the space."""
        return True

    @property
    def whole(self) -> Space:
        """The space without the constraints of a study; itself where there are none."""
        return self

    def decisions(self) -> Decisions | None:
        """Return the encoding of networks as categorical decisions; None if the space has none.

        Agents over decisions cannot search such a space. The default: edges and labels for listable
        spaces of cells.
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
        return hash((self.name, json.dumps(self.config, sort_keys=True)))

    def __repr__(self) -> str:
        """Return the call that returns an equal space."""
        settings = "".join(f", {name}={value!r}" for name, value in self.config.items())
        return f"spaces.get({self.name!r}{settings})"


class OpenSpace(Space):
    """A space of networks from outside: it has no list, no ranges and no distribution.

    Agents that draw or mutate networks cannot search it.

    Attributes:
        origin: Where its networks come from, in words: "its networks are imported".
    """

    origin: str

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

    def initial_pool(self, rng: np.random.Generator | None = None) -> list[Architecture]:
        """Raise a `UsageError`: the space has no designs."""
        self._refuse("has no initial pool")

    def sample(self, rng: np.random.Generator) -> Architecture:
        """Raise a `UsageError`: the space has no distribution."""
        self._refuse("cannot be sampled")

    def mutate(self, architecture: Architecture, rng: np.random.Generator) -> Mutation:
        """Raise a `UsageError`: the space has no mutations."""
        self._refuse("has no mutations")

    def neighbours(self, architecture: Architecture) -> Iterator[Mutation]:
        """Raise a `UsageError`: the space has no mutations."""
        self._refuse("has no mutations")

    def _refuse(self, what: str) -> NoReturn:
        raise UsageError(f"the space {self.name} {what}: {self.origin}")


def check_space(space: str, architecture: Architecture) -> None:
    """Check that an architecture has a space's vocabulary, and is a network alone.

    Raises:
        InvalidArchitectureError: It belongs to another space, or has parameters beside it.
    """
    if architecture.space != space:
        raise InvalidArchitectureError(
            f"the architecture must be of space {space}, got {architecture.space}"
        )

    if architecture.configuration:
        raise InvalidArchitectureError(
            f"the space {space} has no parameters beside its networks, got "
            f"{', '.join(architecture.configuration)}"
        )


def refuse_settings(space: str, config: Mapping[str, Any]) -> None:
    """Refuse settings for a space that has none.

    Raises:
        UnknownNameError: There is a setting.
    """
    for name in config:
        raise UnknownNameError(f"setting of space {space}", name, (), hint="it has none")


def distinct_sample(space: Space, count: int, rng: np.random.Generator) -> list[Architecture]:
    """Return random networks of a space, no two of equal `functional_key`.

    There are fewer where the space is exhausted. Equal generators give equal networks: a larger
    count begins with the networks of a smaller one.
    """
    return draw_distinct(lambda: space.sample(rng), lambda network: network.functional_key, count)


def draw_distinct(
    make: Callable[[], Drawn | None],
    key_of: Callable[[Drawn], str],
    count: int,
    taken: Iterable[str] = (),
) -> list[Drawn]:
    """Draw until `count` objects are new, or no other objects seem to exist.

    Args:
        make: Draws one object; None marks a draw without a result.
        key_of: Returns the key of an object; objects of equal keys count as one.
        count: Number of objects to return.
        taken: Keys that must not be drawn.
    """
    seen = set(taken)
    drawn = list[Drawn]()
    misses = 0
    while len(drawn) < count and misses < MISSES:
        candidate = make()
        if candidate is None or key_of(candidate) in seen:
            misses += 1
            continue

        misses = 0
        seen.add(key_of(candidate))
        drawn.append(candidate)

    return drawn
