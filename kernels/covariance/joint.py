r"""Covariance of pairs of a network and a configuration of parameters: a sum and a product.

| symbol | meaning                                                                 | shape  |
|--------|-------------------------------------------------------------------------|--------|
| k_a    | covariance of the networks, of the first components of the stack        | (m, n) |
| k_p    | covariance of the parameters, of the other components                   | (m, n) |
| gamma  | weight of the product                                                   | > 0    |
| s      | sum of squared distances of the parameters, weighted: sum_i b_i d_i     | (m, n) |
| b_i    | exp(log beta + log w_i) / c, c the number of parameters                 | > 0    |

    k   = k_a + k_p + gamma k_a k_p
    k_p = alpha (1 + sqrt(5 s) + 5 s / 3) exp(-sqrt(5 s))

The sum predicts a good learning rate for networks that were never trained with it, and a good
network at other learning rates. The product models their interaction: the best learning rate of a
deep network is another one. All three terms are covariances where k_a and k_p are.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import final

import numpy as np

from archive.kernels.covariance.base import (
    BoundCovariance,
    CommonScale,
    Covariance,
    Floats,
)

GAMMA = (1e-1, 1e2)
"""Bounds of gamma: of equal terms with alphas in the middle of their bounds, about 3."""

_ROOT = np.sqrt(5.0)


@final
class MaternARD(CommonScale):
    """Matern covariance with nu = 5/2 of c squared distances."""

    def bind(self, stack: Floats) -> BoundCovariance:
        """Keep the squared distances."""
        return _BoundMatern(self, stack[: self.components])


class _BoundMatern(BoundCovariance):
    def __init__(self, covariance: MaternARD, squares: Floats) -> None:
        self.covariance = covariance
        self.squares = squares

    def value(self, theta: Floats) -> Floats:
        checked = self.covariance._check(theta)
        root = _ROOT * np.sqrt(self._sum(checked))
        value: Floats = np.exp(checked[0] - root) * (1.0 + root + np.square(root) / 3.0)
        return value

    def value_and_layers(self, theta: Floats) -> tuple[Floats, Iterator[Floats]]:
        checked = self.covariance._check(theta)
        total = self._sum(checked)
        root = _ROOT * np.sqrt(total)
        decay = np.exp(checked[0] - root)
        value = decay * (1.0 + root + np.square(root) / 3.0)
        slope = -5.0 / 6.0 * decay * (1.0 + root)
        weights = self._weights(checked)
        falls = (
            slope * weight * square for weight, square in zip(weights, self.squares, strict=True)
        )
        return value, chain([value, slope * total], falls)

    def _weights(self, theta: Floats) -> Floats:
        weights: Floats = np.exp(theta[1] + theta[2:]) / self.covariance.components
        return weights

    def _sum(self, theta: Floats) -> Floats:
        total: Floats = np.tensordot(self._weights(theta), self.squares, axes=1)
        return total


@final
class JointCovariance(Covariance):
    """k_a + k_p + gamma k_a k_p; theta is theirs, then log gamma.

    Args:
        networks: k_a, of the first components.
        parameters: k_p, of the others.
        components: Number of components of the networks.
    """

    def __init__(self, networks: Covariance, parameters: Covariance, components: int) -> None:
        self.networks = networks
        self.parameters = parameters
        self.components = components
        self._end = len(networks.names)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of both parts with their prefixes, then `gamma`."""
        return (
            *(f"network.{name}" for name in self.networks.names),
            *(f"parameters.{name}" for name in self.parameters.names),
            "gamma",
        )

    def bounds(self, stack: Floats) -> Floats:
        """Return the bounds of both parts, then of gamma."""
        first = self.networks.bounds(stack[: self.components])
        second = self.parameters.bounds(stack[self.components :])
        return np.vstack([first, second, np.log([GAMMA])])

    def variance(self, theta: Floats) -> float:
        """Return the sum of the variances of the three terms."""
        of_networks, of_parameters, gamma = self._split(theta)
        first = self.networks.variance(of_networks)
        second = self.parameters.variance(of_parameters)
        return first + second + gamma * first * second

    def bind(self, stack: Floats) -> BoundCovariance:
        """Bind both parts."""
        first = self.networks.bind(stack[: self.components])
        second = self.parameters.bind(stack[self.components :])
        return _BoundJoint(self, first, second)

    def _split(self, theta: Floats) -> tuple[Floats, Floats, float]:
        checked = self._check(theta)
        return checked[: self._end], checked[self._end : -1], float(np.exp(checked[-1]))


class _BoundJoint(BoundCovariance):
    def __init__(
        self, covariance: JointCovariance, networks: BoundCovariance, parameters: BoundCovariance
    ) -> None:
        self.covariance = covariance
        self.networks = networks
        self.parameters = parameters

    def value(self, theta: Floats) -> Floats:
        of_networks, of_parameters, gamma = self.covariance._split(theta)
        first = self.networks.value(of_networks)
        second = self.parameters.value(of_parameters)
        return first + second + gamma * first * second

    def value_and_layers(self, theta: Floats) -> tuple[Floats, Iterator[Floats]]:
        of_networks, of_parameters, gamma = self.covariance._split(theta)
        first, first_layers = self.networks.value_and_layers(of_networks)
        second, second_layers = self.parameters.value_and_layers(of_parameters)
        product = gamma * first * second
        by_network = 1.0 + gamma * second
        by_parameters = 1.0 + gamma * first
        layers = chain(
            (layer * by_network for layer in first_layers),
            (layer * by_parameters for layer in second_layers),
            [product],
        )
        return first + second + product, layers
