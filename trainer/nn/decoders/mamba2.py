"""State-space layer of Mamba-2 with one group (Dao, Gu, 2024)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from archive.architecture.decoders.parts import KERNEL, Mamba2
from archive.trainer.nn.decoders.mixing import (
    Cache,
    RootMeanSquareNorm,
    ShortConvolution,
    heads_of,
    linear,
)
from archive.trainer.nn.decoders.recurrences import state_space
from archive.trainer.nn.decoders.timescales import draw_rates, draw_time_steps


class Mamba2Mixer(nn.Module):
    """A state for each channel, with a decay for each head, and a gated output.

    Args:
        part: Settings.
        width: Width of the stream.
    """

    def __init__(self, part: Mamba2, width: int) -> None:
        super().__init__()
        self.part = part
        # The gate, the channels with the input and output matrices, and the time steps.
        self.sizes = [part.units, part.convolved, part.heads]
        self.input = linear(width, sum(self.sizes))
        self.output = linear(part.units, width)
        self.convolution = ShortConvolution(part.convolved, KERNEL, bias=True)
        self.decay_log = nn.Parameter(draw_rates(part.heads))
        self.step_bias = nn.Parameter(draw_time_steps(part.heads))
        self.direct = nn.Parameter(torch.ones(part.heads))
        self.norm = RootMeanSquareNorm(part.units)

    def forward(self, x: Tensor, start: int = 0, cache: Cache | None = None) -> Tensor:
        """See `archive.trainer.nn.decoders.attention.AttentionMixer.forward`."""
        del start
        gate, convolved, steps = torch.split(self.input(x), self.sizes, dim=-1)
        mixed = self.convolution(convolved, cache)
        with torch.autocast(x.device.type, enabled=False):
            outputs = self._recur(mixed.float(), steps.float(), cache)

        gated = self.norm(outputs * F.silu(gate.float()))
        projected: Tensor = self.output(gated.to(x.dtype))
        return projected

    def _recur(self, mixed: Tensor, steps: Tensor, cache: Cache | None) -> Tensor:
        part = self.part
        channels, entering, leaving = torch.split(
            mixed, [part.units, part.state, part.state], dim=-1
        )
        steps = F.softplus(steps + self.step_bias).transpose(1, 2)
        values = heads_of(channels, part.heads)
        outputs, state = state_space(
            leaving[:, None],
            entering[:, None],
            values * steps[..., None],
            -self.decay_log.exp()[:, None] * steps,
            None if cache is None else cache.get("state"),
        )
        if cache is not None:
            cache["state"] = state

        outputs = outputs + self.direct[:, None, None] * values
        return outputs.transpose(1, 2).flatten(2)
