r"""Embedding of configurations with conditional parameters, and its derivatives.

| symbol     | meaning                                                                    | shape  |
|------------|----------------------------------------------------------------------------|--------|
| x          | codes (`archive.parameters.parameter_space`), NaN where a parameter is     | (n, D) |
|            | absent                                                                     |        |
| E(x)       | embedding: r^2(x, x') = \|\|E(x) - E(x')\|\|^2                                 | (n, q) |
| s_i        | weight of a parameter that always exists: inverse length scale             | > 0    |
| omega_i    | weight of the existence of a conditional parameter                         | > 0    |
| rho_i      | weight of its value relative to its existence                              | (0, 1) |
| theta      | log s of the unconditional, log omega and log rho of the conditional ones  | (p,)   |

Squared distance of one parameter:

    s_i^2 (x_i - x_i')^2                 a number or ordered options that always exist
    s_i^2 [x_i != x_i']                  options that always exist
    omega_i^2                            one of the two configurations lacks the parameter
    2 omega_i^2 (1 - cos(pi rho_i t))    both have it: t = |x_i - x_i'|, 1/2 for different options
    0                                    neither has it

The last three are the Arc embedding (Swersky et al., Raiders of the Lost Architecture, 2014;
`archive.kernels.covariance.arc`): the value of an absent parameter changes no distance, and the
existence of a parameter costs a learnt constant.
"""

from __future__ import annotations

import numpy as np

from archive.agents.surrogates.base import Array
from archive.agents.surrogates.gp.likelihood import Bounds
from archive.kernels.covariance.arc import choice_coordinates
from archive.parameters.parameter_space import ParameterSpace

_WEIGHTS = (1e-3, 3e1)
"""Range of s and omega.

Scores are standardised: at the lower end a parameter is ignored, at the upper end configurations
that differ by a thirtieth of the range are uncorrelated."""
_RHO = (1e-2, 0.95)
_CENTRE_RHO = 0.4
_STD_WEIGHTS = 1.3
_STD_RHO = 0.7
"""Standard deviations of the normal priors of log s, log omega and log rho."""


class ArcEmbedding:
    """Embedding of the configurations of one space. Immutable.

    Parameters with one value have no coordinate.

    Args:
        space: The space.

    Attributes:
        bounds: Bounds of theta.
        centre: (p,) mean of the normal prior of theta. The weights fall with the square root of
            the number of parameters, so that the diameter of the space does not grow with it.
        stds: (p,) its standard deviation.
    """

    def __init__(self, space: ParameterSpace) -> None:
        """Number the parameters by their form."""
        self._options = space.option_counts
        plain: list[int] = []
        conditional: list[int] = []
        for column, parameter in enumerate(space.parameters):
            if parameter.domain.size > 1 or parameter.conditions:
                (conditional if parameter.conditions else plain).append(column)

        self._plain = tuple(plain)
        self._conditional = tuple(conditional)
        count = max(1, len(plain) + len(conditional))
        weight = -0.5 * float(np.log(count))
        weights = len(plain) + len(conditional)
        rhos = len(conditional)
        self.centre = np.array([weight] * weights + [float(np.log(_CENTRE_RHO))] * rhos)
        self.stds = np.array([_STD_WEIGHTS] * weights + [_STD_RHO] * rhos)
        self.bounds = Bounds(
            np.log([_WEIGHTS[0]] * weights + [_RHO[0]] * rhos),
            np.log([_WEIGHTS[1]] * weights + [_RHO[1]] * rhos),
        )

    def embed(self, theta: Array, codes: Array) -> Array:
        """Return E(x): (n, q) float64.

        Args:
            theta: (p,) float64.
            codes: (n, D) float64.
        """
        return np.hstack([block for block, _ in self._blocks(theta, codes)])

    def embed_with_slopes(self, theta: Array, codes: Array) -> tuple[Array, list[Slope]]:
        """Return E(x), and where and how each entry of theta changes it.

        Returns:
            (n, q) float64, and for each of p entries the first column that changes and the
            derivatives of the columns from there.
        """
        parts = self._blocks(theta, codes)
        weights: list[Slope] = []
        rhos: list[Slope] = []
        begin = 0
        for block, bend in parts:
            # A weight multiplies its block: the derivative by its logarithm is the block itself.
            weights.append((begin, block))
            if bend is not None:
                rhos.append((begin, bend))

            begin += block.shape[1]

        return np.hstack([block for block, _ in parts]), [*weights, *rhos]

    def _blocks(self, theta: Array, codes: Array) -> list[tuple[Array, Array | None]]:
        """Return the coordinates of each parameter, and their derivatives by log rho."""
        parts: list[tuple[Array, Array | None]] = []
        weights = np.exp(theta)
        for number, column in enumerate(self._plain):
            values = codes[:, column]
            size = self._options[column]
            block = values[:, None]
            if size:
                # Different options are at squared distance 1.
                block = np.sqrt(0.5) * (values[:, None] == np.arange(size))

            parts.append((weights[number] * block, None))

        first_rho = len(self._plain) + len(self._conditional)
        for number, column in enumerate(self._conditional):
            omega = float(weights[len(self._plain) + number])
            rho = float(weights[first_rho + number])
            parts.append(_arc(codes[:, column], self._options[column], omega, rho))

        return parts


Slope = tuple[int, Array]


def _arc(values: Array, size: int, omega: float, rho: float) -> tuple[Array, Array]:
    """Return the coordinates of a conditional parameter, and their derivatives by log rho."""
    present = ~np.isnan(values)
    if size:
        shared, specific = choice_coordinates(rho)
        turn = 0.5 * np.pi * rho
        slope = turn * float(np.sin(turn))
        taken = (values[:, None] == np.arange(size)).astype(np.float64)
        block = np.hstack([np.full((len(values), 1), shared), specific * taken])
        bend = np.hstack(
            [
                np.full((len(values), 1), -0.5 * slope / max(shared, 1e-6)),
                0.5 * slope / max(specific, 1e-6) * taken,
            ]
        )
    else:
        angle = np.pi * rho * np.where(present, values, 0.0)
        sine = np.sin(angle)
        cosine = np.cos(angle)
        block = np.column_stack([sine, cosine])
        bend = np.column_stack([angle * cosine, -angle * sine])

    mask = omega * present[:, None]
    return mask * block, mask * bend
