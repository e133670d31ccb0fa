"""Feed-forward parts of a decoder's block: settings, and exact counts; notation in `parts`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from archive.architecture.decoders.part import DecoderPart
from archive.architecture.decoders.vocabulary import GEGLU, GELU, LINEAR, MOE, SWIGLU
from archive.architecture.layer import NONE, Attributes


@final
@dataclass(frozen=True, slots=True)
class Gelu(DecoderPart):
    """Two matrices around GELU.

    Attributes:
        hidden: Neurons between the matrices.
        extras: Further settings.
    """

    hidden: int
    extras: Attributes = NONE

    @property
    def op(self) -> str:
        """See `DecoderPart.op`."""
        return GELU

    @property
    def units(self) -> int:
        """Hidden neurons."""
        return self.hidden

    def settings(self) -> Mapping[str, Any]:
        """See `DecoderPart.settings`."""
        return {}

    def params(self, width: int) -> int:
        """See `DecoderPart.params`."""
        biases = self.hidden + width if "bias" in self.extras else 0
        return 2 * width * self.hidden + biases

    def multiply_adds(self, width: int, length: int) -> float:
        """See `DecoderPart.multiply_adds`."""
        del length
        return 2 * width * self.hidden


@dataclass(frozen=True, slots=True)
class GatedFeedForward(DecoderPart):
    """A matrix behind the product of a matrix and a function of another.

    Attributes:
        hidden: Neurons between the matrices.
        extras: Further settings.
    """

    hidden: int
    extras: Attributes = NONE

    @property
    def units(self) -> int:
        """Hidden neurons."""
        return self.hidden

    def settings(self) -> Mapping[str, Any]:
        """See `DecoderPart.settings`."""
        return {}

    def params(self, width: int) -> int:
        """See `DecoderPart.params`."""
        biases = 2 * self.hidden + width if "bias" in self.extras else 0
        return 3 * width * self.hidden + biases

    def multiply_adds(self, width: int, length: int) -> float:
        """See `DecoderPart.multiply_adds`."""
        del length
        return 3 * width * self.hidden


@final
@dataclass(frozen=True, slots=True)
class SwiGlu(GatedFeedForward):
    """A gated feed-forward part with SiLU."""

    @property
    def op(self) -> str:
        """See `DecoderPart.op`."""
        return SWIGLU


@final
@dataclass(frozen=True, slots=True)
class GeGlu(GatedFeedForward):
    """A gated feed-forward part with GELU."""

    @property
    def op(self) -> str:
        """See `DecoderPart.op`."""
        return GEGLU

    @property
    def is_searched(self) -> bool:
        """See `DecoderPart.is_searched`."""
        return False


@final
@dataclass(frozen=True, slots=True)
class Linear(DecoderPart):
    """One matrix, by which a part of a published network was replaced.

    Attributes:
        width: Width of the stream.
        extras: Further settings.
    """

    width: int
    extras: Attributes = NONE

    @property
    def op(self) -> str:
        """See `DecoderPart.op`."""
        return LINEAR

    @property
    def units(self) -> int:
        """Width of the stream."""
        return self.width

    @property
    def is_searched(self) -> bool:
        """See `DecoderPart.is_searched`."""
        return False

    def settings(self) -> Mapping[str, Any]:
        """See `DecoderPart.settings`."""
        return {}

    def params(self, width: int) -> int:
        """See `DecoderPart.params`."""
        return width * self.width + (width if "bias" in self.extras else 0)

    def multiply_adds(self, width: int, length: int) -> float:
        """See `DecoderPart.multiply_adds`."""
        del length
        return width * self.width


@final
@dataclass(frozen=True, slots=True)
class MixtureOfExperts(DecoderPart):
    """Experts of the kind `SwiGlu`, of which each token uses the best few.

    Attributes:
        hidden: Neurons between the matrices of an expert.
        experts: Experts.
        active: Experts that a token uses.
        extras: Further settings.
    """

    hidden: int
    experts: int
    active: int
    extras: Attributes = NONE

    @property
    def op(self) -> str:
        """See `DecoderPart.op`."""
        return MOE

    @property
    def units(self) -> int:
        """Hidden neurons of an expert."""
        return self.hidden

    def settings(self) -> Mapping[str, Any]:
        """See `DecoderPart.settings`."""
        return {"experts": self.experts, "active": self.active}

    def params(self, width: int) -> int:
        """See `DecoderPart.params`."""
        total = width * self.experts + self.experts * self._expert(width) + self._shared(width)
        if "shared_bias" in self.extras:
            total += 2 * self._shared_hidden + width

        if "bias" in self.extras:
            total += self.experts * (2 * self.hidden + width)

        if "router_bias" in self.extras:
            total += self.experts

        return total

    def multiply_adds(self, width: int, length: int) -> float:
        """See `DecoderPart.multiply_adds`."""
        del length
        return width * self.experts + self.active * self._expert(width) + self._shared(width)

    def _expert(self, width: int) -> int:
        return 3 * width * self.hidden

    def _shared(self, width: int) -> int:
        """Return the parameters of the experts that every token uses."""
        gate = width if "shared_gate" in self.extras else 0
        return 3 * width * self._shared_hidden + gate

    @property
    def _shared_hidden(self) -> int:
        hidden = self.extras.get("shared", 0)
        assert isinstance(hidden, int)
        return hidden


FeedForward = Gelu | SwiGlu | GeGlu | Linear | MixtureOfExperts
