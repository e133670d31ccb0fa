"""Base class of the spaces `cnn` and `mlp`: networks of layers within limits, changed by the
modifiers of Table 6.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from archive.architecture.graph import Architecture, Layer
from archive.architecture.operations import INPUT, OUTPUT, vocabulary
from archive.errors import InvalidArchitectureError, SettingsError
from archive.spaces.base import Mutation, Space, check_space
from archive.spaces.limits import Limits
from archive.spaces.modifiers.apply import changed
from archive.spaces.modifiers.every import every
from archive.spaces.modifiers.sampled import mutate, steps

POOL_SIZE = 10

# Maximum number of modifications between the initial pool and a random member.
_SAMPLE_STEPS = 10


class LayerwiseSpace(Space):
    """Networks of one vocabulary within limits, changed by the nine modifiers of NASBOT.

    A member has at least one layer between the input and the decision layers. Without one there is
    nothing to search, and the mass, which normalises distances, would be zero.

    Args:
        **config: Limits by name (`archive.spaces.limits.Limits`).

    Raises:
        UnknownNameError: There is no limit of that name.
        SettingsError: A limit has an invalid value.
    """

    def __init__(self, **config: Any) -> None:
        self.limits = Limits.of(self.name, config)

    @abstractmethod
    def designs(self) -> Iterator[Architecture]:
        """Yield networks for the initial pool: the paper's ten, then others with fewer layers."""

    @property
    def config(self) -> dict[str, Any]:
        """The limits."""
        return self.limits.config

    def validate(self, architecture: Architecture) -> None:
        """Check the vocabulary, the limits and that there is a layer between input and decision.

        Raises:
            InvalidArchitectureError: The architecture is not a member; the message gives the
                reason.
        """
        check_space(self.name, architecture)
        self._check(architecture)

    def initial_pool(self, rng: np.random.Generator | None = None) -> list[Architecture]:
        """Return ten fixed designs, narrowed if units or mass exceed the limits.

        Designs that exceed other limits are replaced by ones with fewer layers. If the limits
        exclude those too, the pool is smaller.

        Raises:
            SettingsError: The limits admit no design.
        """
        if not self._pool:
            raise SettingsError(
                f"the limits of space {self.name} admit no network to begin with: {self.config}"
            )

        return list(self._pool)

    def sample(self, rng: np.random.Generator) -> Architecture:
        """Return a member of the initial pool after 1 to 10 random modifications."""
        pool = self.initial_pool()
        start = pool[rng.integers(len(pool))]
        return steps(
            start, int(rng.integers(1, _SAMPLE_STEPS + 1)), self.limits, self._check, rng
        ).child

    def mutate(self, architecture: Architecture, rng: np.random.Generator) -> Mutation:
        """Apply 1 to 5 random modifiers, with probabilities 0.5, 0.25, 0.125, 0.075 and 0.05.

        Steps that undo each other are not listed among the operations. If all are undone, one more
        step is taken.
        """
        return mutate(architecture, self.limits, self._check, rng)

    def neighbours(self, architecture: Architecture) -> Iterator[Mutation]:
        """Yield the results of one modifier, in the order of Table 6."""
        seen = {architecture.key}
        for name, child in every(architecture, self.limits):
            if child.key not in seen and self.contains(child):
                seen.add(child.key)
                yield Mutation(child, (name,))

    @cached_property
    def _pool(self) -> tuple[Architecture, ...]:
        pool: dict[str, Architecture] = {}
        for design in self.designs():
            fitted = self._fitted(design)
            if fitted is not None:
                pool.setdefault(fitted.key, fitted)

            if len(pool) == POOL_SIZE:
                break

        return tuple(pool.values())

    def _check(self, architecture: Architecture) -> None:
        self.limits.check(architecture)
        words = vocabulary(self.name).operations
        if all(
            words[layer.op].group in ("input", "decision", "output")
            for layer in architecture.layers
        ):
            raise InvalidArchitectureError(
                "a network needs a layer between input and decision layers, got none"
            )

    def _fitted(self, design: Architecture) -> Architecture | None:
        """Return the design as a member, all its units shrunk by 1/8 until the limits hold;

        None if they never do.
        """
        widths = [layer.units for layer in design.layers]
        while True:
            layers = [
                Layer(
                    layer.op,
                    None if units is None else max(units, self.limits.min_units),
                    layer.stride,
                )
                for layer, units in zip(design.layers, widths, strict=True)
            ]
            fitted = Architecture(self.name, layers, design.edges)
            if self.contains(fitted):
                return fitted

            if all(units is None or units <= self.limits.min_units for units in widths):
                return None

            widths = [None if units is None else max(1, changed(units, -1)) for units in widths]


def chain(space: str, inner: list[Layer]) -> Architecture:
    """Return the feed-forward network of these layers, one after the other, between input and
    output.
    """
    layers = [Layer(INPUT), *inner, Layer(OUTPUT)]
    return Architecture(space, layers, [(u, u + 1) for u in range(len(layers) - 1)])
