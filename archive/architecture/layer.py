"""Layers and edges, the parts of an architecture."""

from __future__ import annotations

from dataclasses import dataclass

from archive.architecture.attributes import NONE, Attributes

Edge = tuple[int, int]
Arguments = tuple[int, ...]
"""Positions among the inputs of an operation at which a layer uses the output of another."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer.

    Attributes:
        op: Label, from the vocabulary of the architecture's space.
        units: Channels or neurons; None for an operation without units.
        stride: Step of the window; a stride of 2 halves the image.
        attributes: Further settings, in spaces whose layers have any.
    """

    op: str
    units: int | None = None
    stride: int = 1
    attributes: Attributes = NONE
