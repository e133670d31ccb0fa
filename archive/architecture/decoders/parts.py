"""Mixers and feed-forward parts of a decoder's block: settings, and exact counts.

| symbol | meaning                                                     |
|--------|-------------------------------------------------------------|
| d      | width of the residual stream                                |
| u      | units of a layer: heads times the size of a head, or hidden |
| h, g   | heads, and key/value heads                                  |
| p      | size of a head, u / h                                       |
| s      | size of a state-space layer's state                         |
| c      | positions that a short convolution reads                    |
| e, k   | experts, and experts that a token uses                      |
| n      | tokens of a sequence                                        |
| r      | mean number of positions that a position attends to         |

| part                | parameters                                  | multiply-adds of a token beside matrices |
|---------------------|---------------------------------------------|------------------------------------------|
| `attention`         | d u + 2 d g p + u d                         | 2 u r                                    |
| `sliding_attention` | the same                                    | 2 u r                                    |
| `gated_delta`       | 5 d u + 2 d h + 3 u c + 2 h + p             | 3 u c + 3 u p                            |
| `mamba2`            | d (2 u + 2 s + h) + (u + 2 s)(c + 1) + 3 h + u + u d | (u + 2 s) c + 2 u s             |
| `gelu`              | 2 d u                                       |                                          |
| `swiglu`            | 3 d u                                       |                                          |
| `moe`               | d e + 3 e d u                               | only k of the e experts                  |

A multiply-add counts once. A position attends to itself and to earlier ones, so r = (n + 1) / 2
without a window. Activations, normalisations and element-wise factors do not count.

Vaswani et al.: Attention Is All You Need (2017). Ainslie et al.: GQA (2023). Su et al.: RoFormer
(2021). Yang, Kautz, Hatamizadeh: Gated Delta Networks (2024). Dao, Gu: Transformers are SSMs,
Mamba-2 (2024). Shazeer: GLU Variants Improve Transformer (2020). Shazeer et al.: Outrageously Large
Neural Networks (2017).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

from archive.architecture.decoders.vocabulary import (
    ATTENTION,
    FEED_FORWARDS,
    GATED_DELTA,
    GELU,
    MAMBA2,
    MIXERS,
    MOE,
    SLIDING,
    SWIGLU,
)
from archive.architecture.layer import Attributes, Layer
from archive.errors import InvalidArchitectureError

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

    @abstractmethod
    def settings(self) -> Mapping[str, Any]:
        """Return the attributes of the layer beside the width."""

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
        attributes = Attributes({WIDTH: width, **self.settings()})
        return Layer(self.op, self.units, attributes=attributes)


@final
@dataclass(frozen=True, slots=True)
class Attention(DecoderPart):
    """Causal attention of grouped heads with rotary positions.

    Attributes:
        heads: Query heads.
        kv_heads: Heads of keys and values, a divisor of `heads`.
        head_size: Numbers of a head, even.
        rotary_base: Base of the rotary frequencies.
        window: Positions that a position attends to, itself included; None for all before it.
    """

    heads: int
    kv_heads: int
    head_size: int
    rotary_base: float
    window: int | None = None

    @property
    def op(self) -> str:
        """`attention`, or `sliding_attention` with a window."""
        return ATTENTION if self.window is None else SLIDING

    @property
    def units(self) -> int:
        """Numbers of all query heads."""
        return self.heads * self.head_size

    @property
    def kv_units(self) -> int:
        """Numbers of all keys of a position, and of all values."""
        return self.kv_heads * self.head_size

    def settings(self) -> Mapping[str, Any]:
        """See `DecoderPart.settings`."""
        settings: dict[str, Any] = {
            "heads": self.heads,
            "kv_heads": self.kv_heads,
            "rotary_base": float(self.rotary_base),
        }
        if self.window is not None:
            settings["window"] = self.window

        return settings

    def params(self, width: int) -> int:
        """See `DecoderPart.params`."""
        return 2 * width * (self.units + self.kv_units)

    def multiply_adds(self, width: int, length: int) -> float:
        """See `DecoderPart.multiply_adds`."""
        window = min(self.window or length, length)
        # The first positions see fewer than the window holds.
        visible = (window * (window + 1) / 2 + (length - window) * window) / length
        return self.params(width) + 2 * self.units * visible

    def cache_numbers(self, length: int) -> int:
        """See `DecoderPart.cache_numbers`."""
        # The next position sees itself, and one fewer of the earlier ones than its window holds.
        kept = length if self.window is None else min(self.window - 1, length)
        return 2 * self.kv_units * kept


@final
@dataclass(frozen=True, slots=True)
class GatedDelta(DecoderPart):
    """Linear attention with a gated delta rule.

    Attributes:
        heads: Heads, each with a state of `head_size` by `head_size`.
        head_size: Numbers of a key, and of a value.
    """

    heads: int
    head_size: int

    @property
    def op(self) -> str:
        """See `DecoderPart.op`."""
        return GATED_DELTA

    @property
    def units(self) -> int:
        """Numbers of all heads."""
        return self.heads * self.head_size

    def settings(self) -> Mapping[str, Any]:
        """See `DecoderPart.settings`."""
        return {"heads": self.heads, "kernel": KERNEL}

    def params(self, width: int) -> int:
        """See `DecoderPart.params`."""
        return self._matrices(width) + 3 * self.units * KERNEL + 2 * self.heads + self.head_size

    def multiply_adds(self, width: int, length: int) -> float:
        """See `DecoderPart.multiply_adds`."""
        del length
        # The state is read by the key, changed by an outer product, and read by the query.
        return self._matrices(width) + 3 * self.units * (KERNEL + self.head_size)

    def cache_numbers(self, length: int) -> int:
        """See `DecoderPart.cache_numbers`."""
        del length
        return self.units * self.head_size + 3 * self.units * (KERNEL - 1)

    def _matrices(self, width: int) -> int:
        return 5 * width * self.units + 2 * width * self.heads


@final
@dataclass(frozen=True, slots=True)
class Mamba2(DecoderPart):
    """State-space layer of Mamba-2 with one group of input and output matrices.

    Attributes:
        heads: Heads, each with a scalar decay.
        head_size: Channels of a head.
        state: Numbers of the state of a channel.
    """

    heads: int
    head_size: int
    state: int

    @property
    def op(self) -> str:
        """See `DecoderPart.op`."""
        return MAMBA2

    @property
    def units(self) -> int:
        """Channels of all heads."""
        return self.heads * self.head_size

    @property
    def convolved(self) -> int:
        """Channels that the short convolution reads."""
        return self.units + 2 * self.state

    def settings(self) -> Mapping[str, Any]:
        """See `DecoderPart.settings`."""
        return {"heads": self.heads, "kernel": KERNEL, "state": self.state}

    def params(self, width: int) -> int:
        """See `DecoderPart.params`."""
        vectors = self.convolved * (KERNEL + 1) + 3 * self.heads + self.units
        return self._matrices(width) + vectors

    def multiply_adds(self, width: int, length: int) -> float:
        """See `DecoderPart.multiply_adds`."""
        del length
        return self._matrices(width) + self.convolved * KERNEL + 2 * self.units * self.state

    def cache_numbers(self, length: int) -> int:
        """See `DecoderPart.cache_numbers`."""
        del length
        return self.units * self.state + self.convolved * (KERNEL - 1)

    def _matrices(self, width: int) -> int:
        return width * (2 * self.units + 2 * self.state + self.heads) + self.units * width


@final
@dataclass(frozen=True, slots=True)
class Gelu(DecoderPart):
    """Two matrices around GELU.

    Attributes:
        hidden: Neurons between the matrices.
    """

    hidden: int

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
        return 2 * width * self.hidden

    def multiply_adds(self, width: int, length: int) -> float:
        """See `DecoderPart.multiply_adds`."""
        del length
        return self.params(width)


@final
@dataclass(frozen=True, slots=True)
class SwiGlu(DecoderPart):
    """A matrix behind the product of a matrix and the SiLU of another.

    Attributes:
        hidden: Neurons between the matrices.
    """

    hidden: int

    @property
    def op(self) -> str:
        """See `DecoderPart.op`."""
        return SWIGLU

    @property
    def units(self) -> int:
        """Hidden neurons."""
        return self.hidden

    def settings(self) -> Mapping[str, Any]:
        """See `DecoderPart.settings`."""
        return {}

    def params(self, width: int) -> int:
        """See `DecoderPart.params`."""
        return 3 * width * self.hidden

    def multiply_adds(self, width: int, length: int) -> float:
        """See `DecoderPart.multiply_adds`."""
        del length
        return self.params(width)


@final
@dataclass(frozen=True, slots=True)
class MixtureOfExperts(DecoderPart):
    """Experts of the kind `SwiGlu`, of which each token uses the best few.

    Attributes:
        hidden: Neurons between the matrices of an expert.
        experts: Experts.
        active: Experts that a token uses.
    """

    hidden: int
    experts: int
    active: int

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
        return width * self.experts + self.experts * self._expert(width)

    def multiply_adds(self, width: int, length: int) -> float:
        """See `DecoderPart.multiply_adds`."""
        del length
        return width * self.experts + self.active * self._expert(width)

    def _expert(self, width: int) -> int:
        return 3 * width * self.hidden


Mixer = Attention | GatedDelta | Mamba2
FeedForward = Gelu | SwiGlu | MixtureOfExperts


def part_of(layer: Layer) -> DecoderPart:
    """Return the mixer or the feed-forward part of a layer.

    Raises:
        InvalidArchitectureError: The layer is none, or lacks a setting.
    """
    read = _READERS.get(layer.op)
    if read is None:
        raise InvalidArchitectureError(
            f"a mixer is {', '.join(MIXERS)}, a feed-forward part {', '.join(FEED_FORWARDS)}, "
            f"got {layer.op}"
        )

    part = read(layer)
    width = whole(layer, WIDTH)
    if part.layer(width) != layer:
        raise InvalidArchitectureError(
            f"{layer.op} has the settings {', '.join([WIDTH, *part.settings()])}, "
            f"got {layer.attributes.text or 'none'}"
        )

    return part


def whole(layer: Layer, name: str) -> int:
    """Return a setting that is a whole number >= 1.

    Raises:
        InvalidArchitectureError: It is none.
    """
    value = layer.units if name == "units" else layer.attributes.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidArchitectureError(f"{layer.op} needs {name} >= 1, got {value!r}")

    return value


def _attention(layer: Layer) -> Attention:
    heads = whole(layer, "heads")
    kv_heads = whole(layer, "kv_heads")
    size = _head_size(layer, heads)
    base = layer.attributes.get("rotary_base")
    if isinstance(base, bool) or not isinstance(base, float) or base <= 1:
        raise InvalidArchitectureError(f"{layer.op} needs a rotary_base > 1, got {base!r}")

    if heads % kv_heads:
        raise InvalidArchitectureError(
            f"{layer.op} needs kv_heads that divide its {heads} heads, got {kv_heads}"
        )

    if size % 2:
        raise InvalidArchitectureError(
            f"rotary positions need heads of an even size, got {size} ({layer.units} / {heads})"
        )

    window = whole(layer, "window") if layer.op == SLIDING else None
    return Attention(heads, kv_heads, size, base, window)


def _gated_delta(layer: Layer) -> GatedDelta:
    heads = whole(layer, "heads")
    return GatedDelta(heads, _head_size(layer, heads))


def _mamba2(layer: Layer) -> Mamba2:
    heads = whole(layer, "heads")
    return Mamba2(heads, _head_size(layer, heads), whole(layer, "state"))


def _gelu(layer: Layer) -> Gelu:
    return Gelu(whole(layer, "units"))


def _swiglu(layer: Layer) -> SwiGlu:
    return SwiGlu(whole(layer, "units"))


def _moe(layer: Layer) -> MixtureOfExperts:
    experts = whole(layer, "experts")
    active = whole(layer, "active")
    if active > experts:
        raise InvalidArchitectureError(
            f"moe needs active experts <= its {experts} experts, got {active}"
        )

    return MixtureOfExperts(whole(layer, "units"), experts, active)


def _head_size(layer: Layer, heads: int) -> int:
    units = whole(layer, "units")
    if units % heads:
        raise InvalidArchitectureError(
            f"{layer.op} needs heads that divide its {units} units, got {heads}"
        )

    return units // heads


_READERS: dict[str, Callable[[Layer], DecoderPart]] = {
    ATTENTION: _attention,
    SLIDING: _attention,
    GATED_DELTA: _gated_delta,
    MAMBA2: _mamba2,
    GELU: _gelu,
    SWIGLU: _swiglu,
    MOE: _moe,
}
