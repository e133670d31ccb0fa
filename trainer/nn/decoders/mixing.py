"""Parts that mixers share: the form of their cache, a short convolution, and norms.

A cache is a dictionary of tensors by name, one for each mixer. A mixer reads the values of earlier
tokens from it, and replaces them by the values of the tokens so far.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from archive.architecture.decoders.vocabulary import EPSILON

Cache = dict[str, Tensor]
"""Values of earlier tokens of one mixer, by name; empty before the first token."""


class RootMeanSquareNorm(nn.Module):
    """Division by the root mean square of the last axis, in float32, with a scale.

    Zhang, Sennrich: Root Mean Square Layer Normalization (2019).
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """Return the normalised values, in the type of the input."""
        return F.rms_norm(x.float(), (x.shape[-1],), self.weight.float(), EPSILON).to(x.dtype)


class ShortConvolution(nn.Module):
    """A convolution over the last positions of each channel, followed by SiLU.

    Args:
        channels: Number of channels.
        kernel: Number of positions, the position itself included.
        bias: Whether each channel has a bias.
    """

    def __init__(self, channels: int, kernel: int, *, bias: bool) -> None:
        super().__init__()
        self.past = kernel - 1
        self.filter = nn.Conv1d(channels, channels, kernel, groups=channels, bias=bias)

    def forward(self, x: Tensor, cache: Cache | None) -> Tensor:
        """Return (n, length, channels) from inputs of that shape.

        Args:
            x: The inputs.
            cache: Cache of the mixer; None for sequences without earlier tokens.
        """
        earlier = None if cache is None else cache.get("convolved")
        if earlier is None:
            earlier = x.new_zeros(len(x), self.past, x.shape[-1])

        whole = torch.cat([earlier.to(x.dtype), x], dim=1)
        if cache is not None:
            cache["convolved"] = whole[:, whole.shape[1] - self.past :]

        return F.silu(self.filter(whole.transpose(1, 2)).transpose(1, 2))


def heads_of(x: Tensor, heads: int) -> Tensor:
    """Return (n, heads, length, size) from (n, length, heads * size)."""
    return x.reshape(*x.shape[:2], heads, -1).transpose(1, 2)


def linear(entering: int, leaving: int) -> nn.Linear:
    """Return a matrix without a bias."""
    return nn.Linear(entering, leaving, bias=False)
