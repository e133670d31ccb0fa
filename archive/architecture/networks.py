"""Lists of networks: their forms, their keys, and parts of them."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from archive.architecture.graph import Architecture

Item = TypeVar("Item", covariant=True)


class HasArchitecture(Protocol):
    """An entry with a network, such as an observation, a suggestion or a candidate."""

    @property
    def architecture(self) -> Architecture:
        """The network."""


def architectures_of(entries: Iterable[HasArchitecture]) -> list[Architecture]:
    """Return the networks of entries."""
    return [entry.architecture for entry in entries]


def functional_forms(networks: Iterable[Architecture]) -> list[Architecture]:
    """Return networks without their dead layers."""
    return [network.functional for network in networks]


def network_keys(networks: Iterable[Architecture]) -> list[str]:
    """Return the keys of networks."""
    return [network.key for network in networks]


def networks_by_key(
    networks: Iterable[Architecture], known: Container[str] = ()
) -> dict[str, Architecture]:
    """Return networks by key, each once, without the known keys."""
    return {network.key: network for network in networks if network.key not in known}


class Indexed(Protocol[Item]):
    """A sequence, or a mapping of positions."""

    def __getitem__(self, position: int, /) -> Item:
        """Return the item at a position."""


def take(items: Indexed[Item], positions: Iterable[int]) -> list[Item]:
    """Return the items at some positions."""
    return [items[position] for position in positions]
