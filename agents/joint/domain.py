"""Networks with parameters beside them as the domain of the agent `arc`.

Codes are of the network's decisions, then of the parameters, NaN where one does not exist. A
perceptron is the chain of `archive.agents.encodings.Perceptrons`: units and activations of a layer
exist where the network is deep enough. Networks of other spaces are vectors of
`archive.spaces.decisions`. What one part lacks costs a learnt constant in the Arc embedding, as a
conditional parameter does: depth, units and learning rate are searched together, as in the paper.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from archive.agents.configurations.domain import kinds_of
from archive.agents.encodings import Perceptrons, decisions_of
from archive.agents.surrogates.base import Array
from archive.architecture.graph import Architecture
from archive.architecture.operations import MLP
from archive.architecture.parameter_operations import join
from archive.errors import InvalidArchitectureError
from archive.parameters.batches import CodeBatches
from archive.spaces.base import Space
from archive.spaces.decisions import ABSENT, Vector
from archive.spaces.joint import NETWORK_SHARE, JointSpace


class PairDomain:
    """Pairs of one space, with the interface of `archive.agents.encodings.Perceptrons`.

    Args:
        space: The space of pairs.
        activation: As of `Perceptrons`; no effect in other spaces than `mlp`.

    Attributes:
        kinds: (D,) names without the numbers of layers, places and repetitions.
        option_counts: (D,) number of options of a choice without an order; 0 of a number.

    Raises:
        UsageError: The networks have no decisions.
    """

    def __init__(self, space: JointSpace, activation: str = "relu") -> None:
        """Read the decisions of the networks, and the parameters."""
        self.space = space
        self._networks: Perceptrons | DecisionDomain
        if space.networks.name == MLP.name:
            self._networks = Perceptrons(space.networks, activation, trained=False)
        else:
            self._networks = DecisionDomain(space.networks)

        self._batches = CodeBatches(space.parameters)
        self._width = len(self._networks.kinds)
        self.kinds = (*self._networks.kinds, *kinds_of(space.parameters))
        self.option_counts = (*self._networks.option_counts, *space.parameters.option_counts)

    def encode(
        self, architecture: Architecture, hyperparameters: Mapping[str, Any]
    ) -> Array | None:
        """Return the codes of a pair, (D,) float64; None where a part has none."""
        network = self._networks.encode(architecture.network, hyperparameters)
        try:
            values = self.space.configuration_of(architecture)
        except InvalidArchitectureError:
            return None

        if network is None:
            return None

        return np.concatenate([network, self.space.parameters.encode([values])[0]])

    def decode(self, codes: Array) -> tuple[Architecture, dict[str, Any]]:
        """Return the pair of codes; it has no further hyperparameters."""
        network, hyperparameters = self._networks.decode(codes[: self._width])
        return join(network, self.space.parameters.decode(codes[self._width :])), hyperparameters

    def depth(self, codes: Array) -> int:
        """Return the depth of the network."""
        return self._networks.depth(codes[: self._width])

    def sample(self, m: int, rng: np.random.Generator) -> Array:
        """Return m random pairs: (m, D) float64."""
        return np.hstack([self._networks.sample(m, rng), self._batches.sample(m, rng)])

    def vary(self, codes: Array, scale: float, rng: np.random.Generator) -> Array:
        """Return a variation of one part of each of (m, D) pairs."""
        of_network = rng.random(len(codes)) < NETWORK_SHARE
        networks, parameters = np.hsplit(codes.copy(), [self._width])
        networks[of_network] = self._networks.vary(networks[of_network], scale, rng)
        parameters[~of_network] = self._batches.vary(parameters[~of_network], rng, scale=scale)
        return np.hstack([networks, parameters])

    def renew(self, codes: Array) -> Iterator[Array]:
        """Yield the pair: another configuration is another candidate."""
        yield codes


class DecisionDomain:
    """Networks that are made of decisions, with the interface of `Perceptrons`.

    Args:
        space: The space.

    Attributes:
        kinds: (D,) names without a number at their end.
        option_counts: (D,) number of options of a decision without an order; 0 of one with an
            order, whose code is the position in [0, 1].

    Raises:
        UsageError: The space has no decisions.
    """

    def __init__(self, space: Space) -> None:
        """Name the kinds of decisions."""
        self._decisions = decisions_of(space, "arc")
        self._sizes = np.array([len(entry.choices) for entry in self._decisions.decisions])
        kinds = []
        counts = []
        for entry in self._decisions.decisions:
            kinds.append(entry.name.rpartition(" ")[0] if entry.name[-1].isdigit() else entry.name)
            counts.append(0 if entry.ordered else len(entry.choices))

        self.kinds = tuple(kinds)
        self.option_counts = tuple(counts)
        # An ordered decision with one option has the code 0.
        self._steps = np.where(np.array(counts) > 0, 1, np.maximum(self._sizes - 1, 1))

    def encode(
        self, architecture: Architecture, hyperparameters: Mapping[str, Any]
    ) -> Array | None:
        """Return the codes of a network, (D,) float64; None of one without decisions."""
        vector = None if hyperparameters else self._decisions.encode(architecture)
        return None if vector is None else self._codes(vector)

    def decode(self, codes: Array) -> tuple[Architecture, dict[str, Any]]:
        """Return the network of codes; it has no hyperparameters.

        Raises:
            InvalidArchitectureError: They describe no network.
        """
        return self._decisions.build(self._vector(codes)), {}

    def depth(self, codes: Array) -> int:
        """Return the number of decisions that are made."""
        return int((~np.isnan(codes)).sum())

    def sample(self, m: int, rng: np.random.Generator) -> Array:
        """Return m random networks, by uniform decisions: (m, D) float64."""
        rows = []
        for _ in range(m):
            rows.append(self._complete([ABSENT] * len(self._sizes), rng))

        return np.array(rows).reshape(m, len(self._sizes))

    def vary(self, codes: Array, scale: float, rng: np.random.Generator) -> Array:
        """Return a variation of each of (m, D) networks in one decision."""
        del scale
        rows = []
        for row in codes:
            vector = list(self._vector(row))
            made = np.flatnonzero((np.array(vector) != ABSENT) & (self._sizes > 1))
            position = int(rng.choice(made))
            if self.option_counts[position]:
                step = int(rng.integers(1, self._sizes[position]))
                vector[position] = (vector[position] + step) % int(self._sizes[position])
            else:
                step = 1 if rng.random() < 0.5 else -1
                vector[position] = int(
                    np.clip(vector[position] + step, 0, self._sizes[position] - 1)
                )

            rows.append(self._complete(vector, rng))

        return np.array(rows).reshape(codes.shape)

    def _complete(self, vector: list[int], rng: np.random.Generator) -> Array:
        return self._codes(self._decisions.complete(vector, rng))

    def _codes(self, vector: Vector) -> Array:
        values = np.array(vector, np.float64)
        return np.where(values == ABSENT, np.nan, values / self._steps)

    def _vector(self, codes: Array) -> Vector:
        positions = np.where(np.isnan(codes), ABSENT, np.rint(codes * self._steps))
        return tuple(positions.astype(int).tolist())
