"""Candidates of a study in arguments: a network, values by name, or both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import ConfigDict, Field

from archive.errors import UsageError
from archive.mcp.arguments import NetworkArgument, network_of
from archive.spaces.joint import joint_space_of

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.architecture.graph import Architecture
    from archive.spaces.base import Space

Parameters = Annotated[
    dict[str, Any] | None,
    Field(
        description="In a space of parameters, in place of the network: values by name. In a "
        "space with parameters beside its networks, beside the network. Those that are left "
        "out have their default or the middle of their range."
    ),
]


@dataclass(frozen=True)
class CallerCandidate:
    """A network that a caller thinks of, or values by name."""

    # A misspelt name must not be left out silently.
    __pydantic_config__ = ConfigDict(extra="forbid")

    network: NetworkArgument | None = None
    parameters: Parameters = None


def member_of(
    archive: Archive,
    space: Space,
    network: str | dict[str, Any] | None,
    parameters: Mapping[str, Any] | None,
) -> Architecture:
    """Return the network that an argument describes; it may be outside of the space.

    Args:
        archive: The archive, where the network is a key.
        space: Space of the study.
        network: The network; None where the parameters are all.
        parameters: Values by name; None without any.

    Raises:
        UsageError: There are both where the space has only one, or neither; or the network or the
            values describe none.
    """
    joint = joint_space_of(space)
    if joint is not None and network is not None:
        return joint.complete(network_of(archive, network), parameters or {})

    if (network is None) == (parameters is None):
        raise UsageError("a proposal has a network or parameters, one of the two")

    if network is not None:
        return network_of(archive, network)

    return space.of_names(space.fill(parameters or {}))
