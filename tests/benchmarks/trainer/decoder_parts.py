"""Speed of a decoder's parts beside plain PyTorch, and time of linear mixers by length.

A part takes a step, forward and backward, on a batch of sequences; the plain loop computes the same
sums from the same tensors, written out. Times are the processor's, of one thread, so that other work
of the machine counts little; part and loop take turns, and the figure is the median of the quotients.

| part                                  | plain loop                                                    |
|---------------------------------------|---------------------------------------------------------------|
| `attention`, `sliding_attention`      | products, rotations, `scaled_dot_product_attention` with a mask |
| `gelu`, `swiglu`                      | products and activations                                      |
| `moe`                                 | each expert on the tokens that chose it                       |
| `gated_delta`, `mamba2`               | none: a loop over positions is the tests' oracle              |
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from archive.architecture.decoders.parts import (
    Attention,
    GatedDelta,
    Gelu,
    Mamba2,
    MixtureOfExperts,
    SwiGlu,
)
from archive.benchmarks.measurement import Figure
from archive.trainer.nn.decoders.attention import AttentionMixer
from archive.trainer.nn.decoders.feed_forward import Experts, GeluFeedForward, SwiGluFeedForward
from archive.trainer.nn.decoders.gated_delta import GatedDeltaMixer
from archive.trainer.nn.decoders.mamba2 import Mamba2Mixer

WIDTH = 128
BATCH = 16
LENGTH = 128
LENGTHS = (1024, 2048, 4096, 8192)

Plain = Callable[[Any, Tensor], Tensor]


def measure(turns: int = 15, lengths: Sequence[int] = LENGTHS) -> Iterator[Figure]:
    """Yield the rate of each part, and the slope of the time of each linear mixer.

    Args:
        turns: Steps by each loop.
        lengths: Lengths of sequences, ascending.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for name, part, plain in parts():
            quotient, rate = _compare(part, plain, turns)
            yield Figure(f"{name}: tokens a second", rate, "1/s", reference=rate * quotient)
            yield Figure(f"{name}: overhead", 100 * (quotient - 1), "%", goal="< 5")

        for name, mixer in linear_mixers().items():
            yield _slope(name, mixer, lengths)
    finally:
        torch.set_num_threads(threads)


def parts() -> list[tuple[str, nn.Module, Plain]]:
    """Return the parts with a plain loop."""
    torch.manual_seed(0)
    full = Attention(4, 2, 32, 10_000.0)
    sliding = Attention(4, 2, 32, 10_000.0, 32)
    return [
        ("attention", AttentionMixer(full, WIDTH), plain_attention),
        ("sliding attention", AttentionMixer(sliding, WIDTH), plain_attention),
        ("gelu", GeluFeedForward(Gelu(4 * WIDTH), WIDTH), plain_gelu),
        ("swiglu", SwiGluFeedForward(SwiGlu(3 * WIDTH), WIDTH), plain_swiglu),
        ("moe", Experts(MixtureOfExperts(WIDTH, 8, 2), WIDTH), plain_experts),
    ]


def linear_mixers() -> dict[str, nn.Module]:
    """Return the mixers whose time should be linear in the length."""
    torch.manual_seed(0)
    return {
        "gated delta": GatedDeltaMixer(GatedDelta(4, 32), WIDTH),
        "mamba2": Mamba2Mixer(Mamba2(4, 64, 16), WIDTH),
        "sliding attention": AttentionMixer(Attention(4, 2, 32, 10_000.0, 32), WIDTH),
    }


def plain_attention(part: AttentionMixer, x: Tensor) -> Tensor:
    """Return causal attention with a mask of the whole sequence."""
    settings = part.part
    n, length, _ = x.shape
    size = settings.head_size
    query = (x @ part.query.weight.T).view(n, length, settings.heads, size).transpose(1, 2)
    key = (x @ part.key.weight.T).view(n, length, settings.kv_heads, size).transpose(1, 2)
    value = (x @ part.value.weight.T).view(n, length, settings.kv_heads, size).transpose(1, 2)
    exponents = torch.arange(0, size, 2) / size
    angles = torch.arange(length)[:, None] * settings.rotary_base**-exponents
    cosine = angles.cos()
    sine = angles.sin()
    turned = []
    for heads in (query, key):
        first, second = heads.chunk(2, dim=-1)
        pairs = (first * cosine - second * sine, second * cosine + first * sine)
        turned.append(torch.cat(pairs, dim=-1))

    if settings.window is None:
        mixed = F.scaled_dot_product_attention(*turned, value, is_causal=True, enable_gqa=True)
    else:
        apart = torch.arange(length)[:, None] - torch.arange(length)[None, :]
        mask = (apart >= 0) & (apart < settings.window)
        mixed = F.scaled_dot_product_attention(*turned, value, attn_mask=mask, enable_gqa=True)

    return mixed.transpose(1, 2).flatten(2) @ part.output.weight.T


def plain_gelu(part: GeluFeedForward, x: Tensor) -> Tensor:
    """Return two products around GELU."""
    return F.gelu(x @ part.up.weight.T) @ part.down.weight.T


def plain_swiglu(part: SwiGluFeedForward, x: Tensor) -> Tensor:
    """Return three products with a SiLU."""
    hidden = F.silu(x @ part.gate.weight.T) * (x @ part.up.weight.T)
    return hidden @ part.down.weight.T


def plain_experts(part: Experts, x: Tensor) -> Tensor:
    """Return the weighted experts, each on the tokens that chose it."""
    tokens = x.flatten(0, -2)
    probabilities = (tokens @ part.router.weight.T).softmax(-1)
    weights, choices = probabilities.topk(part.part.active)
    weights = weights / weights.sum(-1, keepdim=True)
    outputs = torch.zeros_like(tokens)
    for index, expert in enumerate(part.experts):
        rows, places = (choices == index).nonzero(as_tuple=True)
        own = plain_swiglu(expert, tokens[rows]) * weights[rows, places][:, None]
        outputs = outputs.index_add(0, rows, own)

    return outputs.view_as(x)


def _compare(part: nn.Module, plain: Plain, turns: int) -> tuple[float, float]:
    """Return the median quotient of the times, and the part's tokens a second."""
    x = torch.randn(BATCH, LENGTH, WIDTH)
    quotients = []
    seconds = []
    for turn in range(turns + 2):
        own = _seconds(part, x)
        other = _seconds(lambda entering: plain(part, entering), x)
        # The first two turns warm up.
        if turn >= 2:
            quotients.append(own / other)
            seconds.append(own)

    return statistics.median(quotients), BATCH * LENGTH / statistics.median(seconds)


def _seconds(step: Callable[[Tensor], Tensor], x: Tensor) -> float:
    start = time.process_time()
    for _ in range(3):
        step(x.detach().requires_grad_()).square().mean().backward()  # type: ignore[no-untyped-call]

    return (time.process_time() - start) / 3


def _slope(name: str, mixer: nn.Module, lengths: Sequence[int]) -> Figure:
    """Return the slope of log time over log length, by least squares."""
    xs = []
    ys = []
    for length in lengths:
        x = torch.randn(1, length, WIDTH)
        # The first one warms up; it costs as much as a measured one.
        seconds = [_seconds(mixer, x) for _ in range(3)]
        xs.append(math.log(length))
        ys.append(math.log(min(seconds)))

    slope = statistics.linear_regression(xs, ys).slope
    return Figure(
        f"{name}: exponent of time, {lengths[0]} to {lengths[-1]} tokens", slope, "", "< 1.1"
    )
