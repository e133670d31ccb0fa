"""Linear attention with a gated delta rule (Yang, Kautz, Hatamizadeh, 2024)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from archive.architecture.decoders.parts import KERNEL, GatedDelta
from archive.trainer.nn.decoders.mixing import (
    Cache,
    RootMeanSquareNorm,
    ShortConvolution,
    heads_of,
    linear,
)
from archive.trainer.nn.decoders.recurrences import gated_delta
from archive.trainer.nn.decoders.timescales import draw_rates, draw_time_steps

EXACT = 64
"""Numbers of a head below which queries, keys and values are float32 in every precision.

The product of a query and a key of few numbers often nearly vanishes. The norm of the output then
divides by it, and enlarges the rounding of bfloat16 up to a hundredfold: with heads of 4 numbers the
logits of three blocks differed from those in float32 by 16 to 55 % of the largest one, of softmax
attention by 2 %."""


class GatedDeltaMixer(nn.Module):
    """Queries and keys of norm 1, a state that forgets by a gate, and a gated output.

    Args:
        part: Settings.
        width: Width of the stream.
    """

    def __init__(self, part: GatedDelta, width: int) -> None:
        super().__init__()
        self.part = part
        self.query = linear(width, part.units)
        self.key = linear(width, part.units)
        self.value = linear(width, part.units)
        self.gate = linear(width, part.units)
        self.output = linear(part.units, width)
        self.rate = linear(width, part.heads)
        self.decay = linear(width, part.heads)
        self.convolution = ShortConvolution(3 * part.units, KERNEL, bias=False)
        self.decay_log = nn.Parameter(draw_rates(part.heads))
        self.decay_bias = nn.Parameter(draw_time_steps(part.heads))
        self.norm = RootMeanSquareNorm(part.head_size)

    def forward(self, x: Tensor, start: int = 0, cache: Cache | None = None) -> Tensor:
        """See `archive.trainer.nn.decoders.attention.AttentionMixer.forward`."""
        del start
        device = x.device.type
        reduced = torch.is_autocast_enabled(device) and self.part.head_size >= EXACT
        with torch.autocast(device, enabled=reduced):
            entering = torch.cat([self.query(x), self.key(x), self.value(x)], dim=-1)
            query, key, value = self.convolution(entering, cache).chunk(3, dim=-1)

        with torch.autocast(device, enabled=False):
            steps = F.softplus(self.decay(x.float()) + self.decay_bias)
            decays = -self.decay_log.exp() * steps
            rates = self.rate(x.float()).sigmoid()
            outputs = self._recur(query, key, value, decays, rates, cache)

        gated = self.norm(outputs) * F.silu(heads_of(self.gate(x), self.part.heads).transpose(1, 2))
        projected: Tensor = self.output(gated.flatten(2).to(x.dtype))
        return projected

    def _recur(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        decays: Tensor,
        rates: Tensor,
        cache: Cache | None,
    ) -> Tensor:
        part = self.part
        outputs, state = gated_delta(
            F.normalize(heads_of(query, part.heads).float(), dim=-1) / math.sqrt(part.head_size),
            F.normalize(heads_of(key, part.heads).float(), dim=-1),
            heads_of(value, part.heads).float(),
            decays.transpose(1, 2),
            rates.transpose(1, 2),
            None if cache is None else cache.get("state"),
        )
        if cache is not None:
            cache["state"] = state

        return outputs.transpose(1, 2)
