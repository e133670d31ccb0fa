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

from collections.abc import Sequence

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
_CENTRE_WEIGHT = 0.0
_CENTRE_RHO = 0.4
_STD_WEIGHTS = 1.3
_STD_RHO = 0.7
"""Standard deviations of the normal priors of log s, log omega and log rho."""
_SHARED = 0.5
"""Share of the prior variance that the conditional parameters have in common.

What one branch tells about length scales holds for a branch with few evaluations too."""


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
        precision: (p, p) inverse of its covariance.
        owners: (q,) the entry of theta with the weight of each coordinate.
    """

    def __init__(self, space: ParameterSpace) -> None:
        """Number the parameters by their form, and the coordinates by their parameters."""
        numbers: list[int] = []
        choices: list[int] = []
        arcs: list[int] = []
        arc_choices: list[int] = []
        sizes = space.option_counts
        for column, parameter in enumerate(space.parameters):
            if parameter.conditions:
                (arc_choices if sizes[column] else arcs).append(column)
            elif parameter.domain.size > 1:
                (choices if sizes[column] else numbers).append(column)

        self._numbers = np.array(numbers, np.intp)
        self._options = _Options(choices, sizes)
        self._arcs = np.array(arcs, np.intp)
        self._arc_choices = np.array(arc_choices, np.intp)
        self._arc_options = _Options(arc_choices, sizes)
        plain = len(numbers) + len(choices)
        first_choice = plain + len(arcs)
        weights = first_choice + len(arc_choices)
        rhos = weights - plain
        arc_weights = np.arange(plain, first_choice)
        self.owners = np.concatenate(
            [
                np.arange(len(numbers)),
                len(numbers) + self._options.owners,
                arc_weights,
                arc_weights,
                np.arange(first_choice, weights),
                first_choice + self._arc_options.owners,
            ]
        )
        self._bent = int((self.owners < plain).sum())
        centre = _CENTRE_WEIGHT - 0.5 * float(np.log(max(1, weights)))
        self.centre = np.array([centre] * weights + [float(np.log(_CENTRE_RHO))] * rhos)
        self.stds = np.array([_STD_WEIGHTS] * weights + [_STD_RHO] * rhos)
        correlation = np.eye(weights + rhos)
        for block in (slice(plain, weights), slice(weights, weights + rhos)):
            correlation[block, block] = _SHARED + (1.0 - _SHARED) * correlation[block, block]

        self.precision = np.linalg.inv(correlation * np.outer(self.stds, self.stds))
        self.bounds = Bounds(
            np.log([_WEIGHTS[0]] * weights + [_RHO[0]] * rhos),
            np.log([_WEIGHTS[1]] * weights + [_RHO[1]] * rhos),
        )
        self._weights = weights
        self._plain = plain

    def embed(self, theta: Array, codes: Array) -> Array:
        """Return E(x): (n, q) float64.

        Args:
            theta: (p,) float64.
            codes: (n, D) float64.
        """
        return self.embed_with_slopes(theta, codes)[0]

    def embed_with_slopes(self, theta: Array, codes: Array) -> tuple[Array, Array]:
        """Return E(x), and the derivative of each coordinate by the log rho of its parameter.

        The derivative by the logarithm of its weight is the coordinate itself.

        Returns:
            (n, q) and (n, q) float64; the second is 0 for parameters that always exist.
        """
        weights = np.exp(theta[: self._weights])[self.owners]
        rhos = np.exp(theta[self._weights :])
        middle = len(self._arcs)

        # Different options are at squared distance 1.
        plain = [codes[:, self._numbers], np.sqrt(0.5) * self._options.select(codes)]

        present = ~np.isnan(codes[:, self._arcs])
        angle = np.pi * rhos[:middle] * np.where(present, codes[:, self._arcs], 0.0)
        sine = np.sin(angle)
        cosine = np.cos(angle) * present

        turn = 0.5 * np.pi * rhos[middle:]
        shared, specific = _choice_coordinates(rhos[middle:])
        slope = 0.5 * turn * np.sin(turn)
        exists = ~np.isnan(codes[:, self._arc_choices])
        selected = self._arc_options.select(codes)
        of_option = self._arc_options.owners

        conditional = [sine, cosine, shared * exists, specific[of_option] * selected]
        bends = [
            angle * cosine,
            -angle * sine,
            -slope / np.maximum(shared, 1e-6) * exists,
            (slope / np.maximum(specific, 1e-6))[of_option] * selected,
        ]
        embedded = np.hstack([*plain, *conditional]) * weights
        bend = np.zeros_like(embedded)
        bend[:, self._bent :] = np.hstack(bends) * weights[self._bent :]
        return embedded, bend

    def collect(self, by_weight: Array, by_rho: Array) -> Array:
        """Return sums of coordinates by the entry of theta that they belong to.

        Args:
            by_weight: (q, ...) float64, one row for each coordinate.
            by_rho: (q, ...) float64, the same for rho.

        Returns:
            (p, ...) float64.
        """
        sums = np.zeros((len(self.centre), *by_weight.shape[1:]))
        np.add.at(sums, self.owners, by_weight)
        rhos = self.owners[self._bent :] - self._plain + self._weights
        np.add.at(sums, rhos, by_rho[self._bent :])
        return sums


class _Options:
    """The options of some choices: a coordinate each.

    Args:
        columns: The choices.
        sizes: Number of options of each parameter.

    Attributes:
        owners: (q,) the position of each option's choice in `columns`.
    """

    def __init__(self, columns: Sequence[int], sizes: Sequence[int]) -> None:
        counts = [sizes[column] for column in columns]
        self.owners = np.repeat(np.arange(len(columns)), counts)
        self._columns = np.repeat(np.array(columns, np.intp), counts)
        self._values = np.concatenate([np.arange(0), *map(np.arange, counts)])

    def select(self, codes: Array) -> Array:
        """Return 1 for each option that (n, D) codes have, else 0: (n, q) float64."""
        selected: Array = (codes[:, self._columns] == self._values).astype(np.float64)
        return selected


def _choice_coordinates(rho: Array) -> tuple[Array, Array]:
    """Return `archive.kernels.covariance.arc.choice_coordinates` of each rho."""
    pairs = [choice_coordinates(value) for value in rho.tolist()]
    shared, specific = np.array(pairs).reshape(-1, 2).T
    return shared, specific
