"""Models of pairs: a portfolio's member of the networks, and the Arc embedding of the parameters.

| symbol | meaning                                                                     | shape         |
|--------|-----------------------------------------------------------------------------|---------------|
| d_a    | distances of the networks: the components of a member                       | (c, m, n)     |
| d_p    | squared distances of the parameters under the Arc embedding, one each       | (D, m, n)     |

The squared distance is 1 between the bounds of a parameter, between two options, and between a
configuration with a conditional parameter and one without it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np

from archive.agents.bayesopt.portfolio_members import (
    WIDE,
    member_model,
    noisy_process_of,
    process_of,
)
from archive.agents.configurations.embedding import ArcEmbedding
from archive.agents.surrogates.base import Array
from archive.agents.surrogates.gp.distance import DistanceGP
from archive.agents.surrogates.gp.fitted import Pairwise
from archive.agents.surrogates.outcome_transforms import OutcomeTransform
from archive.architecture.graph import Architecture
from archive.architecture.networks import networks_by_key
from archive.kernels.base import Components
from archive.kernels.covariance.joint import JointCovariance, MaternARD
from archive.kernels.features.embedding import EmbeddedDistance
from archive.spaces.joint import JointSpace

_KEPT = 20_000
"""Most members whose codes are kept."""
_KEPT_NETWORKS = 2_000
"""Number of networks beyond which their distances from a history are computed again."""


@final
class JointCodes:
    """Codes of the parameters of members, kept from call to call.

    Args:
        space: The space.
    """

    def __init__(self, space: JointSpace) -> None:
        """Start without codes."""
        self.space = space
        self._codes: dict[str, Array] = {}

    def encode(self, member: Architecture) -> Array:
        """Return the codes of a member's parameters: (D,) float64, NaN where one is absent."""
        if member.key not in self._codes:
            if len(self._codes) >= _KEPT:
                self._codes.clear()

            self._codes[member.key] = self.space.parameters.encode([member.configuration])[0]

        return self._codes[member.key]

    def rows(self, members: Sequence[Architecture]) -> Array:
        """Return the codes of m members: (m, D) float64."""
        rows = list(map(self.encode, members))
        return np.array(rows, np.float64).reshape(len(rows), len(self.space.parameters))


@final
class JointFeatures(EmbeddedDistance):
    """Features of the network, and the codes of the parameters, for trees.

    A number or an ordered option is 1 plus its code, so that an absent parameter, 0, is below all
    values. Any other option is a feature.

    Args:
        networks: Features of the networks.
        codes: Codes of the parameters.
    """

    name: ClassVar[str] = "joint"
    norm: ClassVar[Literal["l1", "l2"]] = "l1"

    def __init__(self, networks: EmbeddedDistance, codes: JointCodes) -> None:
        self._networks = networks
        self._codes = codes

    @property
    def components(self) -> tuple[str, ...]:
        """Return the components of the networks, and `parameters`."""
        return (*self._networks.components, "parameters")

    def features(self, architecture: Architecture) -> tuple[Mapping[str, float], ...]:
        """Return the features of a member."""
        parameters = self._codes.space.parameters
        row = self._codes.encode(architecture).tolist()
        values: dict[str, float] = {}
        for name, code, options in zip(
            parameters.names, row, parameters.option_counts, strict=True
        ):
            if math.isnan(code):
                continue

            if options:
                values[f"{name}={code:.0f}"] = 1.0
            else:
                values[name] = 1.0 + code

        return (*self._networks.features(architecture.network), values)


@dataclass(frozen=True)
class _KeptDistances:
    """Distances of networks from the networks of a history.

    Attributes:
        rows: Keys of the m networks of the history.
        columns: (c, m) distances by the key of the other network.
    """

    rows: tuple[str, ...]
    columns: dict[str, Array]


@final
class JointDistances:
    """Distances of networks, then squared distances of each parameter.

    Args:
        networks: Distances of the networks.
        codes: Codes of the parameters.

    Attributes:
        parameters: Number of components of the parameters.
    """

    def __init__(self, networks: Pairwise, codes: JointCodes) -> None:
        self._networks = networks
        self._codes = codes
        self._embedding = ArcEmbedding(codes.space.parameters)
        self.parameters = len(np.unique(self._embedding.owners))
        # A weight of 1 for each parameter, and the centre of the prior for rho.
        self._theta = self._embedding.centre.copy()
        self._theta[: self.parameters] = 0.0
        self._kept = _KeptDistances((), {})

    def distances(
        self, first: Sequence[Architecture], second: Sequence[Architecture] | None = None
    ) -> Components:
        """See `Distance.distances`: all components as unnormalised ones."""
        of_networks = self._of_networks(first, first if second is None else second)
        left = self._blocks(first)
        right = left if second is None else self._blocks(second)
        layers = [of_networks]
        for block, other in zip(left, right, strict=True):
            layers.append(_squares(block, other)[None])

        stack = np.concatenate(layers)
        return Components.of_stack(stack, len(stack))

    def _of_networks(self, first: Sequence[Architecture], second: Sequence[Architecture]) -> Array:
        """Return the distances of the networks of m and n members: (c, m, n) float64.

        Candidates share networks, and are compared with one history.
        """
        rows = networks_by_key(member.network for member in first)
        columns = [member.network for member in second]
        kept = self._kept
        if kept.rows != tuple(rows) or len(kept.columns) > _KEPT_NETWORKS:
            kept = self._kept = _KeptDistances(tuple(rows), {})

        new = networks_by_key(columns, kept.columns)
        if new:
            stack = self._networks.distances(list(rows.values()), list(new.values())).stack
            for column, key in enumerate(new):
                kept.columns[key] = stack[:, :, column]

        number = {key: position for position, key in enumerate(rows)}
        positions = [number[member.network.key] for member in first]
        whole = np.stack([kept.columns[network.key] for network in columns], axis=2)
        return whole if len(rows) == len(first) else whole[:, positions]

    def _blocks(self, members: Sequence[Architecture]) -> list[Array]:
        """Return the coordinates of each parameter: (m, q_i) float64."""
        embedded = self._embedding.embed(self._theta, self._codes.rows(members))
        owners = self._embedding.owners
        return [embedded[:, owners == number] for number in range(self.parameters)]


@dataclass(frozen=True)
class JointModel:
    """A Gaussian process of pairs.

    Attributes:
        pairwise: Computes the distances.
        covariance: Covariance of these distances.
        prior: As of `MemberModel`.
    """

    pairwise: JointDistances
    covariance: JointCovariance
    prior: float

    def surrogate(
        self, transform: str | OutcomeTransform, noise_prior: float | None = None
    ) -> DistanceGP:
        """Return the process for scores without replicates; arguments as of `MemberModel`."""
        return process_of(self.pairwise, self.covariance, self.prior, transform, noise_prior)

    def noisy_surrogate(self, transform: str | OutcomeTransform) -> DistanceGP:
        """Return the process for noisy scores: a wide noise prior, and a nugget."""
        return noisy_process_of(self.pairwise, self.covariance, self.prior, transform)


def joint_model(member: str, space: JointSpace, codes: JointCodes) -> JointModel:
    """Return the model of pairs with a member of the portfolio of the networks.

    Args:
        member: Name of the member.
        space: The space of pairs.
        codes: Codes of its parameters; the models of an agent share them.

    Raises:
        UnknownNameError: The networks have no such member.
    """
    of_networks = member_model(member, space.networks)
    pairwise = JointDistances(of_networks.pairwise, codes)
    matern = MaternARD(pairwise.parameters)
    covariance = JointCovariance(of_networks.covariance, matern, of_networks.pairwise.components)
    return JointModel(pairwise, covariance, max(of_networks.prior, WIDE))


def _squares(rows: Array, columns: Array) -> Array:
    """Return squared distances of (m, q) and (n, q) coordinates: (m, n) float64."""
    squares: Array = np.square(rows[:, None, :] - columns[None]).sum(axis=2)
    return squares
