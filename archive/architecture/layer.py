"""Layers and edges, the parts of an architecture."""

from __future__ import annotations

from dataclasses import dataclass

Edge = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer.

    Attributes:
        op: Label, from the vocabulary of the architecture's space.
        units: Channels or neurons; None for an operation without units.
        stride: 1 or 2; a stride of 2 halves the image.
    """

    op: str
    units: int | None = None
    stride: int = 1
