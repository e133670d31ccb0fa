"""Configurations of a parameter space as the domain of the agent `arc`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from archive.agents.configurations.history import Coder
from archive.agents.surrogates.base import Array
from archive.architecture.graph import Architecture
from archive.parameters.batches import CodeBatches
from archive.parameters.parameter_space import ParameterSpace
from archive.spaces.parameters import Parameters


class ConfigurationDomain:
    """Configurations of one space, with the interface of `archive.agents.encodings.Perceptrons`.

    Args:
        space: The space.

    Attributes:
        parameters: The parameters.
        kinds: (D,) names without the numbers of repetitions (`stage_op` for `stage_2_op`).
        option_counts: (D,) number of options of a choice without an order; 0 of a number.
    """

    def __init__(self, space: Parameters) -> None:
        """Name the kinds of parameters."""
        self.space = space
        self.parameters = space.parameters
        self.kinds = kinds_of(self.parameters)
        self.option_counts = self.parameters.option_counts
        self._batches = CodeBatches(self.parameters)
        self._coder = Coder(space)

    def encode(
        self, architecture: Architecture, hyperparameters: Mapping[str, Any]
    ) -> Array | None:
        """Return the codes of a configuration, (D,) float64; None outside the space."""
        del hyperparameters
        return self._coder.encode(architecture)

    def decode(self, codes: Array) -> tuple[Architecture, dict[str, Any]]:
        """Return the configuration of codes; it has no further hyperparameters."""
        return self.space.network_of(self.parameters.decode(codes)), {}

    def depth(self, codes: Array) -> int:
        """Return the number of parameters that exist."""
        return int((~np.isnan(codes)).sum())

    def sample(self, m: int, rng: np.random.Generator) -> Array:
        """Return m random configurations: (m, D) float64."""
        return self._batches.sample(m, rng)

    def vary(self, codes: Array, scale: float, rng: np.random.Generator) -> Array:
        """Return a variation of each of (m, D) configurations in a few parameters."""
        return self._batches.vary(codes, rng, scale=scale)

    def renew(self, codes: Array) -> Iterator[Array]:
        """Yield the configuration: another one is another candidate."""
        yield codes


def kinds_of(parameters: ParameterSpace) -> tuple[str, ...]:
    """Return the names of parameters without the numbers of repetitions: (D,)."""
    kinds = []
    for parameter in parameters.parameters:
        names = [str(step) for step in parameter.path if not isinstance(step, int)]
        kinds.append("_".join(names))

    return tuple(kinds)
