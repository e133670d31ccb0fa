"""Linear recurrences in chunks: the gated delta rule, and Mamba-2's state-space duality.

| symbol | meaning                                             | shape             |
|--------|-----------------------------------------------------|-------------------|
| t      | position in the sequence                            | of `length`       |
| q, k   | query (output matrix C) and key (input matrix B)    | (n, h, length, s) |
| v      | value                                               | (n, h, length, p) |
| a      | logarithm of the decay, <= 0                        | (n, h, length)    |
| b      | rate of the delta rule, in [0, 1]                   | (n, h, length)    |
| S      | state, zero before the first position               | (n, h, s, p)      |

    state space     S_t = exp(a_t) S_{t-1} + k_t v_t'                                     o_t = S_t' q_t
    delta rule      S_t = exp(a_t) S_{t-1} + b_t k_t (v_t - exp(a_t) S_{t-1}' k_t)'       o_t = S_t' q_t

Within a chunk of C positions all outputs follow from matrix products; the state passes from chunk to
chunk. The cost is linear in the length. With the cumulative logarithm g of the decays of a chunk,
D_ij = exp(g_i - g_j) for i >= j, else 0:

    o = (q k' * D) v + exp(g) q S                    S' = exp(g_C) S + (exp(g_C - g) k)' v

The delta rule replaces v by u - w S, where (I + L) [u, w] = [b v, b exp(g) k], and L is the part of
b k k' * D below the diagonal: the WY form.

Dao, Gu: Transformers are SSMs (2024), section 6. Yang, Kautz, Hatamizadeh: Gated Delta Networks
(2024), section 3.3. All in float32.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

CHUNK = 32
"""Positions of a chunk; longer ones cost more operations, shorter ones more calls."""


def state_space(
    q: Tensor, k: Tensor, v: Tensor, a: Tensor, state: Tensor | None = None, chunk: int = CHUNK
) -> tuple[Tensor, Tensor]:
    """Return the outputs (n, h, length, p) of a state-space recurrence, and its last state.

    Args:
        q: Queries; heads may share them by an axis of 1.
        k: Keys, likewise.
        v: Values.
        a: Logarithms of the decays.
        state: State before the first position; None for zero.
        chunk: Positions of a chunk.
    """
    length = v.shape[2]
    q, k, v = (_chunks(tensor, chunk) for tensor in (q, k, v))
    g = _chunks(a, chunk).cumsum(-1)
    outputs = (q @ k.transpose(-1, -2) * _decays(g)) @ v
    total = g[..., -1:]
    # What each chunk adds to the state, and the state before each chunk.
    added = (k * (total - g).exp()[..., None]).transpose(-1, -2) @ v
    factors = total.exp()[..., None]
    current = added.new_zeros(added[:, :, 0].shape) if state is None else state
    before = []
    # Unbound once: the gradient of each single chunk would be as large as all chunks.
    for factor, addition in zip(factors.unbind(2), added.unbind(2), strict=True):
        before.append(current)
        current = factor * current + addition

    outputs = outputs + (q * g.exp()[..., None]) @ torch.stack(before, dim=2)
    return outputs.flatten(2, 3)[:, :, :length], current


def gated_delta(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    a: Tensor,
    b: Tensor,
    state: Tensor | None = None,
    chunk: int = CHUNK,
) -> tuple[Tensor, Tensor]:
    """Return the outputs (n, h, length, p) of a gated delta rule, and its last state.

    Args:
        q: Queries.
        k: Keys of norm 1.
        v: Values.
        a: Logarithms of the decays.
        b: Rates.
        state: State before the first position; None for zero.
        chunk: Positions of a chunk.
    """
    length = v.shape[2]
    q, k, v = (_chunks(tensor, chunk) for tensor in (q, k, v))
    rates = _chunks(b, chunk)[..., None]
    g = _chunks(a, chunk).cumsum(-1)
    decays = _decays(g)
    system = (rates * k @ k.transpose(-1, -2) * decays).tril(-1)
    sides = torch.cat([rates * v, rates * g.exp()[..., None] * k], dim=-1)
    # The diagonal of the system is not read, and counts as ones.
    solved = torch.linalg.solve_triangular(system, sides, upper=False, unitriangular=True)
    u, w = solved.split([v.shape[-1], k.shape[-1]], dim=-1)
    within = q @ k.transpose(-1, -2) * decays
    total = g[..., -1:]
    queries = q * g.exp()[..., None]
    keys = (k * (total - g).exp()[..., None]).transpose(-1, -2)
    factors = total.exp()[..., None]
    n, heads = g.shape[:2]
    current = v.new_zeros(n, heads, k.shape[-1], v.shape[-1]) if state is None else state
    outputs = []
    # Unbound once: the gradient of each single chunk would be as large as all chunks.
    by_chunk = [tensor.unbind(2) for tensor in (queries, within, u, w, keys, factors)]
    for query, among, new, read, key, factor in zip(*by_chunk, strict=True):
        values = new - read @ current
        outputs.append(query @ current + among @ values)
        current = factor * current + key @ values

    return torch.cat(outputs, dim=2)[:, :, :length], current


def _chunks(tensor: Tensor, chunk: int) -> Tensor:
    """Return (n, h, chunks, positions, …), filled with zeros: they decay nothing and add nothing."""
    length = tensor.shape[2]
    size = min(chunk, length)
    missing = -length % size
    if missing:
        padding = [0, 0] * (tensor.ndim - 3) + [0, missing]
        tensor = F.pad(tensor, padding)

    return tensor.reshape(*tensor.shape[:2], -1, size, *tensor.shape[3:])


def _decays(g: Tensor) -> Tensor:
    """Return D: (…, C, C), the decay from each position to each later one."""
    differences = g[..., :, None] - g[..., None, :]
    size = g.shape[-1]
    later = torch.ones(size, size, dtype=torch.bool, device=g.device).triu(1)
    # Masked before the exponential, whose values above the diagonal could overflow.
    return differences.masked_fill(later, -torch.inf).exp()
