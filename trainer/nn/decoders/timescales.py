"""Initial decays of recurrences, as Mamba draws them (Gu, Dao, 2023, section 3.6)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

_SHORTEST = 1e-3
_LONGEST = 0.1
_LARGEST_RATE = 16.0


def draw_rates(heads: int) -> Tensor:
    """Return logarithms of rates in [1, 16]: (heads,)."""
    return torch.empty(heads).uniform_(1.0, _LARGEST_RATE).log()


def draw_time_steps(heads: int) -> Tensor:
    """Return biases whose softplus is a time step in [0.001, 0.1], spread evenly in logarithm."""
    steps = torch.empty(heads).uniform_(math.log(_SHORTEST), math.log(_LONGEST)).exp()
    # The inverse of softplus.
    return steps + torch.log(-torch.expm1(-steps))
