"""Feed-forward parts: GELU, SwiGLU, and experts of which each token uses the best few.

Experts: with probabilities P = softmax(router x), a token uses the k experts of the largest, whose
outputs are weighted by these probabilities, scaled to a sum of 1. With k = 1 the weight is 1, and its
gradient that of log P: a constant weight would teach the router nothing, and the probability itself,
as in Switch Transformers, would change the scale of the output. The router computes in float32 at any
precision. No token is dropped, in training or later. The balance of a batch, 1 where all experts get
the same share, is

    e sum_i f_i mean(P_i)        f_i: share of the tokens' k choices that fall on expert i

Fedus, Zoph, Shazeer: Switch Transformers (2021), equation 4; Jiang et al.: Mixtral of Experts
(2024).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from archive.architecture.decoders.parts import Gelu, MixtureOfExperts, SwiGlu
from archive.trainer.nn.decoders.mixing import linear


class GeluFeedForward(nn.Module):
    """Two matrices around GELU."""

    def __init__(self, part: Gelu, width: int) -> None:
        super().__init__()
        self.up = linear(width, part.hidden)
        self.down = linear(part.hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        """Return values of the shape of the input."""
        outputs: Tensor = self.down(F.gelu(self.up(x)))
        return outputs


class SwiGluFeedForward(nn.Module):
    """A matrix behind the product of a matrix and the SiLU of another."""

    def __init__(self, part: SwiGlu, width: int) -> None:
        super().__init__()
        self.gate = linear(width, part.hidden)
        self.up = linear(width, part.hidden)
        self.down = linear(part.hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        """Return values of the shape of the input."""
        outputs: Tensor = self.down(F.silu(self.gate(x)) * self.up(x))
        return outputs


class Experts(nn.Module):
    """Experts and their router.

    Args:
        part: Settings.
        width: Width of the stream.

    Attributes:
        balance: Balance of the last batch, () with a gradient; 0 before any.
    """

    def __init__(self, part: MixtureOfExperts, width: int) -> None:
        super().__init__()
        self.part = part
        self.router = linear(width, part.experts)
        dense = SwiGlu(part.hidden)
        self.experts = nn.ModuleList(SwiGluFeedForward(dense, width) for _ in range(part.experts))
        self.balance = torch.zeros(())

    def forward(self, x: Tensor) -> Tensor:
        """Return values of the shape of the input."""
        tokens = x.flatten(0, -2)
        probabilities = self._route(tokens)
        weights, choices = probabilities.topk(self.part.active)
        total = weights.sum(-1, keepdim=True)
        weights = weights / (total.detach() if self.part.active == 1 else total)
        counts = torch.bincount(choices.flatten(), minlength=self.part.experts)
        if self.training:
            shares = counts / choices.numel()
            self.balance = self.part.experts * (shares * probabilities.mean(0)).sum()

        # All choices of one expert come after the choices of the expert before it.
        order = choices.flatten().argsort(stable=True)
        rows = order // self.part.active
        groups = torch.split(tokens[rows], counts.tolist())
        outputs = []
        for expert, group in zip(self.experts, groups, strict=True):
            outputs.append(expert(group))

        weighted = torch.cat(outputs) * weights.flatten()[order, None].to(x.dtype)
        summed = torch.zeros_like(tokens, dtype=weighted.dtype).index_add(0, rows, weighted)
        return summed.view_as(x)

    def _route(self, tokens: Tensor) -> Tensor:
        """Return the probability of each expert: (tokens, experts) float32."""
        # Rounded logits would change the choice of experts.
        with torch.autocast(tokens.device.type, enabled=False):
            logits = F.linear(tokens.float(), self.router.weight.float())

        return logits.softmax(-1)
