"""Named values of networks, by the space of a stored study or by the network alone.

    named_values("choices", study.space_config, network)     {"depth": "4", "act": "relu"}

A space of a user's decisions names them (`Space.named`). The graph of a configuration has the names
of its parameters, so that networks without a study are named, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from archive import spaces
from archive.architecture.graph import Architecture
from archive.architecture.layer import BESIDE
from archive.architecture.parameter_operations import CONFIGURATIONS, configuration_of
from archive.errors import ArchiveError, InvalidArchitectureError
from archive.spaces.base import Space
from archive.spaces.stored_spaces import of_record


def has_names(space: str) -> bool:
    """Return whether the networks of a space have named decisions; False for an unknown space."""
    try:
        named: object = spaces.registry.load_class(space, Space).named  # type: ignore[type-abstract]
    except ArchiveError:
        return False

    return named is not Space.named


def named_values(
    space: str, config: Mapping[str, Any], architecture: Architecture
) -> dict[str, Any]:
    """Return the values of a network by name, in the order of the space.

    Empty where it has no named decisions, and where they are unknown here.

    Args:
        space: Name of the space of its study.
        config: Recorded settings of the space.
        architecture: The network.
    """
    if not has_names(space):
        return {}

    # The networks of a table have the names of the whole space, wherever the table is; parameters
    # beside a network belong to its proposals.
    settings = {name: value for name, value in config.items() if name not in ("table", BESIDE)}
    try:
        return dict(space_of(space, settings).named(architecture))
    except ArchiveError:
        return values_of_graph(architecture)


def values_of_graph(architecture: Architecture) -> dict[str, Any]:
    """Return the values of a network by name as far as its graph has them; else none."""
    if architecture.space not in CONFIGURATIONS:
        return {}

    try:
        return configuration_of(architecture)
    except InvalidArchitectureError:
        return {}


def space_of(name: str, config: Mapping[str, Any]) -> Space:
    """Return the space of a stored study; the same object for the same settings."""
    return _space_of(name, json.dumps(config))


@lru_cache(maxsize=64)
def _space_of(name: str, settings: str) -> Space:
    return of_record(name, json.loads(settings), None)
