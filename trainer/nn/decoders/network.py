"""A decoder as a torch module.

    network = builders.build(architecture, form, seed=0)
    network(tokens)                         # (n, length) int64 -> (n, length, vocabulary) logits
    cache = network.new_cache()
    network.extend(tokens[:, :100], cache)  # the same logits, in passes of any lengths
    network.extend(tokens[:, 100:], cache)
    network.generate(tokens, 50)            # (n, length + 50)

Tensors have the names `embedding.weight`, `blocks.2.mixer.query.weight`, `norm.weight`, and so on,
by the blocks of the design in its normal form.

With a base width, a network of every width learns at the same pace (Yang et al.: Tensor Programs V,
2022, table 8): the embedding and the head are drawn as at the base width, the logits have the factor
base / width, products of queries and keys its root, and the learning rate of hidden matrices the
factor again. At the base width nothing changes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from archive.architecture.decoders.costs import flops_per_token
from archive.architecture.decoders.design import Block, Design
from archive.architecture.decoders.parts import (
    Attention,
    FeedForward,
    GatedDelta,
    Gelu,
    Mamba2,
    Mixer,
    MixtureOfExperts,
    SwiGlu,
)
from archive.trainer.nn.decoders.attention import AttentionMixer
from archive.trainer.nn.decoders.feed_forward import Experts, GeluFeedForward, SwiGluFeedForward
from archive.trainer.nn.decoders.gated_delta import GatedDeltaMixer
from archive.trainer.nn.decoders.mamba2 import Mamba2Mixer
from archive.trainer.nn.decoders.mixing import Cache, RootMeanSquareNorm, linear


@dataclass
class DecoderCache:
    """Values of earlier tokens of a batch.

    Attributes:
        length: Number of earlier tokens.
        blocks: Cache of each block's mixer.
    """

    length: int
    blocks: list[Cache] = field(default_factory=list)

    def bytes(self) -> int:
        """Return the memory of all tensors."""
        total = 0
        for block in self.blocks:
            for tensor in block.values():
                total += tensor.numel() * tensor.element_size()

        return total


class DecoderNetwork(nn.Module):
    """A decoder.

    Args:
        design: The design, in its normal form.
        balance: Weight of the balance of experts in the loss of a training.
        base_width: Width at which a learning rate is known; None for no scaling by width.

    Attributes:
        rate_factor: Factor of the learning rate of hidden matrices, base / width.
    """

    def __init__(
        self, design: Design, balance: float = 0.01, base_width: int | None = None
    ) -> None:
        super().__init__()
        self.design = design
        self.balance = balance
        self.rate_factor = 1.0 if base_width is None else base_width / design.width
        self.embedding = nn.Embedding(design.vocabulary, design.width)
        self.blocks = nn.ModuleList(DecoderBlock(block, design.width) for block in design.blocks)
        self.norm = RootMeanSquareNorm(design.width)
        self.head = None if design.tied else linear(design.width, design.vocabulary)
        for module in self.modules():
            if isinstance(module, AttentionMixer):
                module.query_factor = math.sqrt(self.rate_factor)

        self._draw()

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits of the next token at each place: (n, length, vocabulary).

        Args:
            tokens: (n, length), any integers.
        """
        return self._pass(tokens, None)

    def new_cache(self) -> DecoderCache:
        """Return a cache for sequences without tokens yet."""
        return DecoderCache(0, [{} for _ in self.blocks])

    def extend(self, tokens: Tensor, cache: DecoderCache) -> Tensor:
        """Return the logits of further tokens: (n, length, vocabulary).

        Args:
            tokens: (n, length), the tokens that follow the earlier ones.
            cache: Earlier tokens; these are added.
        """
        logits = self._pass(tokens, cache)
        cache.length += tokens.shape[1]
        return logits

    @torch.no_grad()
    def generate(
        self,
        tokens: Tensor,
        count: int,
        *,
        temperature: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Return sequences with further tokens: (n, length + count).

        Args:
            tokens: (n, length), one token at least.
            count: Number of further tokens.
            temperature: Divisor of the logits from which tokens are drawn; 0 takes the likeliest.
            generator: Generator of the draws.
        """
        cache = self.new_cache()
        sequence = tokens
        entering = tokens
        for _ in range(count):
            logits = self.extend(entering, cache)[:, -1].float()
            if temperature > 0:
                law = (logits / temperature).softmax(-1)
                entering = torch.multinomial(law, 1, generator=generator)
            else:
                entering = logits.argmax(-1, keepdim=True)

            sequence = torch.cat([sequence, entering], dim=1)

        return sequence

    def hidden_matrices(self) -> list[Tensor]:
        """Return the matrices of the blocks."""
        matrices = []
        for module in self.blocks.modules():
            if isinstance(module, nn.Linear):
                matrices.append(module.weight)

        return matrices

    def penalty(self) -> Tensor | None:
        """Return the weighted balance of the experts in the last batch; None without experts."""
        balances = []
        for part in self.modules():
            if isinstance(part, Experts):
                balances.append(part.balance)
                # A module with a tensor that has a history cannot be copied.
                part.balance = part.balance.detach()

        return self.balance * torch.stack(balances).sum() if balances else None

    def read(self, stream: Tensor) -> Tensor:
        """Return the logits of the stream behind the last block: (n, length, vocabulary)."""
        x = self.norm(stream)
        if self.rate_factor != 1:
            x = self.rate_factor * x

        return F.linear(x, self.embedding.weight) if self.head is None else self.head(x)

    def count_flops(self, input_shape: Sequence[int]) -> int:
        """Return the multiply-adds of one sequence (`archive.architecture.decoders.costs`)."""
        (length,) = input_shape
        return round(length * flops_per_token(self.design.graph(), length))

    def _pass(self, tokens: Tensor, cache: DecoderCache | None) -> Tensor:
        x = self.embedding(tokens.long())
        start = 0 if cache is None else cache.length
        for index, block in enumerate(self.blocks):
            x = block(x, start, None if cache is None else cache.blocks[index])

        return self.read(x)

    @torch.no_grad()
    def _draw(self) -> None:
        """Draw matrices with a deviation of 1 / sqrt(inputs), smaller where blocks end.

        With a base width, the embedding and the head have the deviation that they have there.
        """
        end_deviation = 1 / math.sqrt(self.design.width * self.rate_factor)
        nn.init.normal_(self.embedding.weight, std=end_deviation)
        parts = sum(len(block.parts) for block in self.design.blocks)
        for name, module in self.named_modules():
            if module is self.head:
                nn.init.normal_(self.head.weight, std=end_deviation)
            elif isinstance(module, nn.Linear):
                # The stream keeps its scale over all sums.
                ends = name.endswith((".output", ".down"))
                scale = 1 / math.sqrt(max(parts, 1)) if ends else 1.0
                nn.init.normal_(module.weight, std=scale / math.sqrt(module.in_features))


class DecoderBlock(nn.Module):
    """A block: its parts with their norms.

    Args:
        block: Settings.
        width: Width of the stream.
    """

    def __init__(self, block: Block, width: int) -> None:
        super().__init__()
        self.block = block
        self.mixer = None if block.mixer is None else _mixer(block.mixer, width)
        self.feed_forward = (
            None if block.feed_forward is None else _feed_forward(block.feed_forward, width)
        )
        sandwich = block.norm == "sandwich"
        self.mixer_norm = RootMeanSquareNorm(width) if self.mixer is not None else None
        self.mixer_norm_behind = _norm(width, self.mixer is not None and sandwich)
        separate = self.feed_forward is not None and not block.parallel
        self.feed_forward_norm = _norm(width, separate)
        self.feed_forward_norm_behind = _norm(width, self.feed_forward is not None and sandwich)

    def forward(self, x: Tensor, start: int, cache: Cache | None) -> Tensor:
        """Return the stream behind the block: (n, length, width)."""
        normed = x if self.mixer_norm is None else self.mixer_norm(x)
        entering = normed
        if self.mixer is not None:
            mixed = self.mixer(normed, start, cache)
            x = x + _apply(self.mixer_norm_behind, mixed)

        if self.feed_forward is not None:
            if self.feed_forward_norm is not None:
                entering = self.feed_forward_norm(x)

            x = x + _apply(self.feed_forward_norm_behind, self.feed_forward(entering))

        return x


def _norm(width: int, exists: bool) -> RootMeanSquareNorm | None:
    return RootMeanSquareNorm(width) if exists else None


def _apply(norm: nn.Module | None, x: Tensor) -> Tensor:
    return x if norm is None else norm(x)


def _mixer(part: Mixer, width: int) -> nn.Module:
    if isinstance(part, Attention):
        return AttentionMixer(part, width)

    if isinstance(part, GatedDelta):
        return GatedDeltaMixer(part, width)

    # The builder refuses mixers that are not of the space.
    assert isinstance(part, Mamba2)
    return Mamba2Mixer(part, width)


def _feed_forward(part: FeedForward, width: int) -> nn.Module:
    if isinstance(part, Gelu):
        return GeluFeedForward(part, width)

    if isinstance(part, SwiGlu):
        return SwiGluFeedForward(part, width)

    assert isinstance(part, MixtureOfExperts)
    return Experts(part, width)
