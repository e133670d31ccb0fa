"""Weights of the structural cost, nu_str in NASBOT: how much the places of two layers count beside
their labels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from archive.errors import UsageError

NU_STR = (0.1, 0.2, 0.4, 0.8)
"""The weights of the paper; a distance has one component for each."""


def checked_weights(nu_str: Iterable[float]) -> tuple[float, ...]:
    """Return the weights as numbers.

    Raises:
        UsageError: There is none, or one is not a finite number >= 0. A text is none, though its
            characters may be digits.
    """
    weights = () if isinstance(nu_str, str | bytes) else tuple(float(nu) for nu in nu_str)
    if not weights or not all(0 <= nu < math.inf for nu in weights):
        raise UsageError(f"nu_str must be one or more finite numbers >= 0, got {nu_str!r}")

    return weights
