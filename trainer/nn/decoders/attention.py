"""Grouped causal attention with rotary positions, and a window where there is one.

A window of w positions costs w per position at any length: long sequences are cut into blocks of w
positions, which attend to their own block and to the one before it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from archive.architecture.decoders.parts import Attention
from archive.trainer.nn.decoders.mixing import Cache, heads_of, linear

_BLOCKS = 4
"""Windows from which on a sequence is cut into blocks."""


class AttentionMixer(nn.Module):
    """Causal attention of grouped heads.

    Args:
        part: Settings.
        width: Width of the stream.

    Attributes:
        query_factor: Factor of the queries.
    """

    def __init__(self, part: Attention, width: int) -> None:
        super().__init__()
        self.part = part
        self.query_factor = 1.0
        self.query = linear(width, part.units)
        self.key = linear(width, part.kv_units)
        self.value = linear(width, part.kv_units)
        self.output = linear(part.units, width)

    def forward(self, x: Tensor, start: int = 0, cache: Cache | None = None) -> Tensor:
        """Return (n, length, width) from inputs of that shape.

        Args:
            x: The inputs.
            start: Position of the first input.
            cache: Cache of the mixer; None for sequences without earlier tokens.
        """
        query = heads_of(self.query(x), self.part.heads)
        key = heads_of(self.key(x), self.part.kv_heads)
        value = heads_of(self.value(x), self.part.kv_heads)
        angles = _angles(start, x.shape[1], self.part, x.device)
        query = _turn(query, angles)
        if self.query_factor != 1:
            query = self.query_factor * query

        key = _turn(key, angles)
        if cache is not None:
            key, value = self._with_earlier(key, value, cache)

        mixed = self._attend(query, key, value).transpose(1, 2).flatten(2)
        projected: Tensor = self.output(mixed)
        return projected

    def _with_earlier(self, key: Tensor, value: Tensor, cache: Cache) -> tuple[Tensor, Tensor]:
        if "keys" in cache:
            key = torch.cat([cache["keys"], key], dim=2)
            value = torch.cat([cache["values"], value], dim=2)

        # The next position sees one fewer of the earlier ones than the window holds.
        window = self.part.window
        first = 0 if window is None else max(0, key.shape[2] - window + 1)
        cache["keys"] = key[:, :, first:]
        cache["values"] = value[:, :, first:]
        return key, value

    def _attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        length = query.shape[2]
        earlier = key.shape[2] - length
        window = self.part.window
        if window is None or key.shape[2] <= window:
            if length == 1:
                return _attention(query, key, value, None)

            if not earlier:
                return _attention(query, key, value, None, causal=True)

        elif not earlier and length >= _BLOCKS * window:
            return _in_blocks(query, key, value, window)

        return _attention(query, key, value, _visible(length, earlier, window, query.device))


def _attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool = False
) -> Tensor:
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, is_causal=causal, enable_gqa=True
    )


def _visible(length: int, earlier: int, window: int | None, device: torch.device) -> Tensor:
    """Return which keys each query sees: (length, earlier + length) bool."""
    queries = torch.arange(earlier, earlier + length, device=device)[:, None]
    keys = torch.arange(earlier + length, device=device)[None, :]
    visible = keys <= queries
    return visible if window is None else visible & (keys > queries - window)


def _in_blocks(query: Tensor, key: Tensor, value: Tensor, window: int) -> Tensor:
    """Return attention with a window, block by block."""
    n, _, length, size = query.shape
    missing = -length % window
    query, key, value = (F.pad(tensor, (0, 0, 0, missing)) for tensor in (query, key, value))
    blocks = query.shape[2] // window
    # (n, blocks, heads, positions, size): blocks are further sequences of a batch.
    queries = query.reshape(n, -1, blocks, window, size).transpose(1, 2)
    keys = _with_block_before(key, blocks)
    values = _with_block_before(value, blocks)
    visible = _visible(window, window, window, query.device)
    # Nothing is before the first block.
    first = visible.clone()
    first[:, :window] = False
    mask = visible.expand(blocks, 1, window, 2 * window).clone()
    mask[0] = first
    outputs = _attention(
        queries.flatten(0, 1), keys.flatten(0, 1), values.flatten(0, 1), mask.repeat(n, 1, 1, 1)
    )
    whole = outputs.reshape(n, blocks, -1, window, size).transpose(1, 2).flatten(2, 3)
    return whole[:, :, :length]


def _with_block_before(tensor: Tensor, blocks: int) -> Tensor:
    n, heads, length, size = tensor.shape
    current = tensor.reshape(n, heads, blocks, length // blocks, size).transpose(1, 2)
    before = F.pad(current, (0, 0, 0, 0, 0, 0, 1, 0))[:, :-1]
    return torch.cat([before, current], dim=3)


def _angles(start: int, length: int, part: Attention, device: torch.device) -> Tensor:
    """Return the angle of each position and pair of numbers: (length, size / 2) float32."""
    exponents = torch.arange(0, part.head_size, 2, device=device) / part.head_size
    frequencies = part.rotary_base**-exponents
    positions = torch.arange(start, start + length, device=device)
    return positions[:, None] * frequencies[None, :]


def _turn(x: Tensor, angles: Tensor) -> Tensor:
    """Return heads turned by the angles of their positions; pairs are half a head apart."""
    cosine = angles.cos().to(x.dtype)
    sine = angles.sin().to(x.dtype)
    first, second = x.chunk(2, dim=-1)
    turned = (first * cosine - second * sine, second * cosine + first * sine)
    return torch.cat(turned, dim=-1)
