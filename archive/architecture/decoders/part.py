"""The part of a decoder's block: a mixer or a feed-forward part.

Further settings (`extras`) are of published networks alone
(`archive.architecture.decoders.vocabulary.FURTHER`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from archive.architecture.layer import Attributes, Layer

KERNEL = 4
"""Positions that a short convolution reads, as in Mamba and Gated DeltaNet."""

WIDTH = "width"


class DecoderPart(ABC):
    """A mixer or a feed-forward part of a block; immutable, of any width of the stream."""

    @property
    @abstractmethod
    def op(self) -> str:
        """Word of the layer."""

    @property
    @abstractmethod
    def units(self) -> int:
        """Neurons of the layer."""

    @property
    @abstractmethod
    def extras(self) -> Attributes:
        """Further settings; none for a part of the space `decoder`."""

    @property
    def is_searched(self) -> bool:
        """Whether a member of the space `decoder` can have it."""
        return not self.extras

    @abstractmethod
    def settings(self) -> Mapping[str, Any]:
        """Return the attributes of the layer beside the width and the further settings."""

    @abstractmethod
    def params(self, width: int) -> int:
        """Return the exact number of parameters at a width of the stream."""

    @abstractmethod
    def multiply_adds(self, width: int, length: int) -> float:
        """Return the mean multiply-adds of a token of a sequence of `length` tokens."""

    def cache_numbers(self, length: int) -> int:
        """Return the numbers that generation keeps after `length` tokens of one sequence."""
        del length
        return 0

    def layer(self, width: int) -> Layer:
        """Return the layer at a width of the stream."""
        attributes = Attributes({WIDTH: width, **self.settings(), **self.extras})
        return Layer(self.op, self.units, attributes=attributes)
