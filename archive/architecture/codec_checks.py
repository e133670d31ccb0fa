"""Shared parts of the codecs: limits, construction with errors, values as text for errors."""

from __future__ import annotations

from collections.abc import Sequence

from archive.architecture.graph import Architecture, Connection, Layer
from archive.architecture.operations import vocabulary
from archive.errors import CodecError, UnknownNameError, UsageError

MOST_LAYERS = 1_000
"""Far above every search space, and low enough that hostile text cannot keep a process busy."""

MOST_IMPORTED = 10_000
"""The same for imported networks, whose layers are small."""

MOST_ARGUMENTS = 100
"""Arguments of one edge."""


def most_layers(space: str) -> int:
    """Return the largest number of layers of a network that is read."""
    return MOST_IMPORTED if has_arguments(space) else MOST_LAYERS


def has_arguments(space: str) -> bool:
    """Return whether the edges of a space have arguments.

    False for an unknown space, which is reported later.
    """
    try:
        return vocabulary(space).arguments
    except UsageError:
        return False


def built(space: str, layers: Sequence[Layer], edges: Sequence[Connection]) -> Architecture:
    """Return an architecture.

    Raises:
        CodecError: The space has no such operation.
        InvalidArchitectureError: The graph is no network.
    """
    try:
        return Architecture(space, layers, edges)
    except UnknownNameError as error:
        raise CodecError(str(error)) from error
