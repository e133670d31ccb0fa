"""Mixers of a decoder's block: settings, and exact counts; notation and sources in `parts`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from archive.architecture.decoders.part import KERNEL, DecoderPart
from archive.architecture.decoders.vocabulary import (
    ATTENTION,
    GATED_DELTA,
    LATENT,
    MAMBA,
    MAMBA2,
    SLIDING,
)
from archive.architecture.layer import NONE, Attributes


@final
@dataclass(frozen=True, slots=True)
class Attention(DecoderPart):
    """Causal attention of grouped heads.

    Attributes:
        heads: Query heads.
        kv_heads: Heads of keys and values, a divisor of `heads`.
        head_size: Numbers of a head, even.
        rotary_base: Base of the rotary frequencies; 0 without rotary positions.
        window: Positions that a position attends to, itself included; None for all before it.
        extras: Further settings.
    """

    heads: int
    kv_heads: int
    head_size: int
    rotary_base: float
    window: int | None = None
    extras: Attributes = NONE

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
        settings: dict[str, Any] = {"heads": self.heads, "kv_heads": self.kv_heads}
        if self.rotary_base:
            settings["rotary_base"] = float(self.rotary_base)

        if self.window is not None:
            settings["window"] = self.window

        return settings

    def params(self, width: int) -> int:
        """See `DecoderPart.params`."""
        total = self._matrices(width) + self._norms()
        if "qkv_bias" in self.extras:
            total += self.units + 2 * self.kv_units

        if "output_bias" in self.extras:
            total += width

        if "sinks" in self.extras:
            total += self.heads

        return total

    def multiply_adds(self, width: int, length: int) -> float:
        """See `DecoderPart.multiply_adds`."""
        return self._matrices(width) + 2 * self.units * _visible(self.window, length)

    def cache_numbers(self, length: int) -> int:
        """See `DecoderPart.cache_numbers`."""
        # The next position sees itself, and one fewer of the earlier ones than its window holds.
        kept = length if self.window is None else min(self.window - 1, length)
        return 2 * self.kv_units * kept

    def _matrices(self, width: int) -> int:
        gate = width * self.units if "output_gate" in self.extras else 0
        return 2 * width * (self.units + self.kv_units) + gate

    def _norms(self) -> int:
        norm = self.extras.get("query_key_norm")
        if norm == "all":
            return self.units + self.kv_units

        return {"head": 2, "layer": 4}.get(str(norm), 0) * self.head_size


@final
@dataclass(frozen=True, slots=True)
class LatentAttention(DecoderPart):
    """Causal attention whose keys and values are projections of one short vector of a position.

    DeepSeek-AI: DeepSeek-V2 (2024), section 2.1. The cache keeps the short vectors, and the part of
    the keys that turns, which all heads share.

    Attributes:
        heads: Heads.
        kv_rank: Numbers of the short vector of keys and values.
        query_rank: The same of queries; 0 for queries from the input itself.
        plain_size: Numbers of a key that do not turn.
        rotary_size: Numbers of a key that turn.
        value_size: Numbers of a value.
        rotary_base: Base of the rotary frequencies.
        extras: Further settings.
    """

    heads: int
    kv_rank: int
    query_rank: int
    plain_size: int
    rotary_size: int
    value_size: int
    rotary_base: float
    extras: Attributes = NONE

    @property
    def op(self) -> str:
        """See `DecoderPart.op`."""
        return LATENT

    @property
    def units(self) -> int:
        """Numbers of the values of all heads."""
        return self.heads * self.value_size

    @property
    def is_searched(self) -> bool:
        """See `DecoderPart.is_searched`."""
        return False

    def settings(self) -> Mapping[str, Any]:
        """See `DecoderPart.settings`."""
        settings: dict[str, Any] = {
            "heads": self.heads,
            "kv_rank": self.kv_rank,
            "plain_size": self.plain_size,
            "rotary_size": self.rotary_size,
            "rotary_base": float(self.rotary_base),
        }
        if self.query_rank:
            settings["query_rank"] = self.query_rank

        return settings

    def params(self, width: int) -> int:
        """See `DecoderPart.params`."""
        total = self._matrices(width) + self.kv_rank + self.query_rank
        if "bias" in self.extras:
            total += self.query_rank + self.kv_rank + self.rotary_size + width

        return total

    def multiply_adds(self, width: int, length: int) -> float:
        """See `DecoderPart.multiply_adds`."""
        numbers = self.heads * (self._query_size + self.value_size)
        return self._matrices(width) + numbers * _visible(None, length)

    def cache_numbers(self, length: int) -> int:
        """See `DecoderPart.cache_numbers`."""
        return (self.kv_rank + self.rotary_size) * length

    @property
    def _query_size(self) -> int:
        return self.plain_size + self.rotary_size

    def _matrices(self, width: int) -> int:
        queries = self.heads * self._query_size
        entering = self.query_rank or width
        total = entering * queries + (width * self.query_rank)
        total += width * (self.kv_rank + self.rotary_size)
        total += self.kv_rank * self.heads * (self.plain_size + self.value_size)
        return total + self.units * width


def _visible(window: int | None, length: int) -> float:
    """Return the mean number of positions that a position attends to."""
    reach = min(window or length, length)
    # The first positions see fewer than the window holds.
    return (reach * (reach + 1) / 2 + (length - reach) * reach) / length


@final
@dataclass(frozen=True, slots=True)
class GatedDelta(DecoderPart):
    """Linear attention with a gated delta rule.

    Attributes:
        heads: Heads, each with a state of `head_size` by the size of a key.
        head_size: Numbers of a value, and of a key unless `extras` have another size.
        kernel: Positions that the short convolutions read.
        extras: Further settings: fewer heads of keys, or keys of another size.
    """

    heads: int
    head_size: int
    kernel: int = KERNEL
    extras: Attributes = NONE

    @property
    def op(self) -> str:
        """See `DecoderPart.op`."""
        return GATED_DELTA

    @property
    def units(self) -> int:
        """Numbers of all heads."""
        return self.heads * self.head_size

    @property
    def key_size(self) -> int:
        """Numbers of a key."""
        size = self.extras.get("key_size", self.head_size)
        assert isinstance(size, int)
        return size

    @property
    def key_units(self) -> int:
        """Numbers of all keys of a position."""
        heads = self.extras.get("key_heads", self.heads)
        assert isinstance(heads, int)
        return heads * self.key_size

    @property
    def is_searched(self) -> bool:
        """See `DecoderPart.is_searched`."""
        return not self.extras and self.kernel == KERNEL

    def settings(self) -> Mapping[str, Any]:
        """See `DecoderPart.settings`."""
        return {"heads": self.heads, "kernel": self.kernel}

    def params(self, width: int) -> int:
        """See `DecoderPart.params`."""
        return (
            self._matrices(width) + self._convolved * self.kernel + 2 * self.heads + self.head_size
        )

    def multiply_adds(self, width: int, length: int) -> float:
        """See `DecoderPart.multiply_adds`."""
        del length
        # The state is read by the key, changed by an outer product, and read by the query.
        return (
            self._matrices(width) + self._convolved * self.kernel + 3 * self.units * self.key_size
        )

    def cache_numbers(self, length: int) -> int:
        """See `DecoderPart.cache_numbers`."""
        del length
        return self.units * self.key_size + self._convolved * (self.kernel - 1)

    @property
    def _convolved(self) -> int:
        return self.units + 2 * self.key_units

    def _matrices(self, width: int) -> int:
        return width * (3 * self.units + 2 * self.key_units + 2 * self.heads)


@final
@dataclass(frozen=True, slots=True)
class Mamba2(DecoderPart):
    """State-space layer of Mamba-2, with one group of input and output matrices by default.

    Attributes:
        heads: Heads, each with a scalar decay.
        head_size: Channels of a head.
        state: Numbers of the state of a channel.
        kernel: Positions that the short convolution reads.
        extras: Further settings.
    """

    heads: int
    head_size: int
    state: int
    kernel: int = KERNEL
    extras: Attributes = NONE

    @property
    def op(self) -> str:
        """See `DecoderPart.op`."""
        return MAMBA2

    @property
    def units(self) -> int:
        """Channels of all heads."""
        return self.heads * self.head_size

    @property
    def groups(self) -> int:
        """Groups of heads that share the input and output matrices."""
        groups = self.extras.get("groups", 1)
        assert isinstance(groups, int)
        return groups

    @property
    def convolved(self) -> int:
        """Channels that the short convolution reads."""
        return self.units + 2 * self.groups * self.state

    @property
    def is_searched(self) -> bool:
        """See `DecoderPart.is_searched`."""
        return not self.extras and self.kernel == KERNEL

    def settings(self) -> Mapping[str, Any]:
        """See `DecoderPart.settings`."""
        return {"heads": self.heads, "kernel": self.kernel, "state": self.state}

    def params(self, width: int) -> int:
        """See `DecoderPart.params`."""
        vectors = self.convolved * (self.kernel + 1) + 3 * self.heads + self.units
        if "unbiased_convolution" in self.extras:
            vectors -= self.convolved

        if "bias" in self.extras:
            vectors += self.units + self.convolved + self.heads + width

        return self._matrices(width) + vectors

    def multiply_adds(self, width: int, length: int) -> float:
        """See `DecoderPart.multiply_adds`."""
        del length
        return self._matrices(width) + self.convolved * self.kernel + 2 * self.units * self.state

    def cache_numbers(self, length: int) -> int:
        """See `DecoderPart.cache_numbers`."""
        del length
        return self.units * self.state + self.convolved * (self.kernel - 1)

    def _matrices(self, width: int) -> int:
        return width * (self.units + self.convolved + self.heads) + self.units * width


@final
@dataclass(frozen=True, slots=True)
class Mamba(DecoderPart):
    """State-space layer of Mamba.

    Gu, Dao: Mamba (2023).

    Attributes:
        channels: Channels, each with a state.
        state: Numbers of the state of a channel.
        rank: Numbers from which the step of each channel is made.
        kernel: Positions that the short convolution reads.
        extras: Further settings.
    """

    channels: int
    state: int
    rank: int
    kernel: int = KERNEL
    extras: Attributes = NONE

    @property
    def op(self) -> str:
        """See `DecoderPart.op`."""
        return MAMBA

    @property
    def units(self) -> int:
        """Channels."""
        return self.channels

    @property
    def is_searched(self) -> bool:
        """See `DecoderPart.is_searched`."""
        return False

    def settings(self) -> Mapping[str, Any]:
        """See `DecoderPart.settings`."""
        return {"state": self.state, "rank": self.rank, "kernel": self.kernel}

    def params(self, width: int) -> int:
        """See `DecoderPart.params`."""
        # The convolution, the bias of the step, the decays, and the share that passes by.
        vectors = self.units * (self.kernel + 1 + 1 + self.state + 1)
        if "unbiased_convolution" in self.extras:
            vectors -= self.units

        if "bias" in self.extras:
            vectors += 2 * self.units + width

        if "norms" in self.extras:
            vectors += self.rank + 2 * self.state

        return self._matrices(width) + vectors

    def multiply_adds(self, width: int, length: int) -> float:
        """See `DecoderPart.multiply_adds`."""
        del length
        return self._matrices(width) + self.units * (self.kernel + 2 * self.state)

    def cache_numbers(self, length: int) -> int:
        """See `DecoderPart.cache_numbers`."""
        del length
        return self.units * (self.state + self.kernel - 1)

    def _matrices(self, width: int) -> int:
        return self.units * (3 * width + 2 * self.rank + 2 * self.state)


Mixer = Attention | LatentAttention | GatedDelta | Mamba2 | Mamba
