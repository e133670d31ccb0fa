"""Covariance of many components whose length scales share a prior."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import final

import numpy as np

from archive.kernels.covariance.base import (
    ALPHA,
    BETA,
    BoundCovariance,
    Covariance,
    Floats,
    exponential,
)

RATIO = 4.0
"""Half the width of the bounds of log w: with a prior of a quarter of it, most weights lie within a
factor of e."""


@final
class CommonScaleARD(Covariance):
    """alpha exp(-beta / c * sum_i w_i d_i) over c components, with theta = log(alpha, beta, w_1, …,
    w_c).

    beta is common to all components, and each has a weight relative to it, whose prior is centred
    at 1. The few observations at the beginning of a search determine the common scale, and a weight
    departs from 1 where observations require it. Separate priors of c betas are either so wide that
    twenty observations are overfitted, or so narrow that a component without influence keeps its
    weight.

    Args:
        components: c.
    """

    def __init__(self, components: int) -> None:
        """Keep the number."""
        self.components = components

    @property
    def names(self) -> tuple[str, ...]:
        """Return `alpha`, `beta` and a `weight` for each component."""
        return ("alpha", "beta", *(f"weight[{at}]" for at in range(self.components)))

    def bounds(self, stack: Floats) -> Floats:
        """Scale beta to the median of all positive distances."""
        positive = stack[stack > 0]
        scale = np.median(positive) if positive.size else 1.0
        weights = np.tile([-RATIO, RATIO], (self.components, 1))
        return np.vstack([np.log(ALPHA), np.log(np.array(BETA) / scale), weights])

    def variance(self, theta: Floats) -> float:
        """Return alpha."""
        return float(np.exp(self._check(theta)[0]))

    def bind(self, stack: Floats) -> BoundCovariance:
        """Bind the exponential of c betas."""
        return _Bound(self, exponential(self.components).bind(stack))

    def betas(self, theta: Floats) -> Floats:
        """Return log(alpha, beta w_1 / c, …, beta w_c / c), the parameters of a plain
        exponential.
        """
        alpha, beta, *weights = self._check(theta)
        return np.array([alpha, *(beta - np.log(self.components) + np.array(weights))])


class _Bound(BoundCovariance):
    def __init__(self, covariance: CommonScaleARD, plain: BoundCovariance) -> None:
        self.covariance = covariance
        self.plain = plain

    def value(self, theta: Floats) -> Floats:
        return self.plain.value(self.covariance.betas(theta))

    def value_and_layers(self, theta: Floats) -> tuple[Floats, Iterator[Floats]]:
        betas = self.covariance.betas(theta)
        value, layers = self.plain.value_and_layers(betas)
        next(layers)
        # Computed twice rather than kept: there may be thirty layers.
        common = np.zeros_like(value)
        for layer in layers:
            common += layer

        _, again = self.plain.value_and_layers(betas)
        next(again)
        return value, chain([value, common], again)
