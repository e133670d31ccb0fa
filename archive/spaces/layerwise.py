"""Spaces of networks of layers within limits, changed by modifiers; chains.

Limits are in appendix B.1 of NASBOT, modifiers in its Table 6.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from itertools import pairwise, product
from typing import Any, final

import numpy as np

from archive.architecture.graph import Architecture, Layer
from archive.architecture.layer_mass import total_mass
from archive.architecture.operations import CNN, INPUT, MLP, OUTPUT, Vocabulary
from archive.errors import InvalidArchitectureError, SettingsError, UnknownNameError
from archive.spaces.base import Mutation, Space, check_space
from archive.spaces.decisions import ABSENT, Decision, Decisions, Vector
from archive.spaces.modifiers.apply import change_units
from archive.spaces.modifiers.choices import every
from archive.spaces.modifiers.sampled import mutate, steps


@dataclass(frozen=True, slots=True)
class Limits:
    """The constraints on members of a space; defaults are the paper's.

    Attributes:
        max_layers: Layers, input, output and decision layers included.
        max_mass: Total mass, in the form of appendix A.3.
        max_degree: Edges into a layer, and edges out of a layer.
        max_edges: Edges.
        min_units: Units (channels or neurons) of a layer that has units.
        max_units: Units of a layer that has units.
    """

    max_layers: int = 60
    max_mass: float = 1e8
    max_degree: int = 5
    max_edges: int = 200
    min_units: int = 8
    max_units: int = 1024

    @classmethod
    def of(cls, space: str, config: dict[str, Any]) -> Limits:
        """Return the limits of a space's configuration.

        Raises:
            UnknownNameError: There is no limit of that name.
            SettingsError: A value that cannot be used.
        """
        names = [field.name for field in fields(cls)]
        for name in config:
            if name not in names:
                raise UnknownNameError(f"setting of space {space}", name, names)

        return cls(**config)

    def __post_init__(self) -> None:
        """Refuse values that no network could meet.

        Raises:
            SettingsError: A value that cannot be used.
        """
        for name, least in (
            ("max_layers", 4),
            ("max_degree", 1),
            ("max_edges", 3),
            ("min_units", 1),
            ("max_units", 1),
        ):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise SettingsError(f"{name} must be a whole number >= {least}, got {value!r}")

        mass = self.max_mass
        if (
            isinstance(mass, bool)
            or not isinstance(mass, (int, float))
            or not (0 < mass and math.isfinite(mass))
        ):
            raise SettingsError(f"max_mass must be a number > 0, got {mass!r}")

        # One network must have one recorded configuration, however the number was written.
        object.__setattr__(self, "max_mass", float(mass))
        if self.max_units < self.min_units:
            raise SettingsError(
                f"max_units must be >= min_units = {self.min_units}, got {self.max_units}"
            )

    @property
    def config(self) -> dict[str, Any]:
        """The limits as a JSON object."""
        return asdict(self)

    def clip(self, units: int) -> int:
        """Return the nearest allowed number of units."""
        return min(max(units, self.min_units), self.max_units)

    def check(self, architecture: Architecture) -> None:
        """Check a network against every limit, the cheap ones first.

        Raises:
            InvalidArchitectureError: A limit is exceeded; the message names it and the value.
        """
        self._check_size(architecture)
        self._check_layers(architecture)
        mass = total_mass(architecture)
        if mass > self.max_mass:
            raise InvalidArchitectureError(f"the mass must be <= {self.max_mass:g}, got {mass:g}")

    def _check_size(self, architecture: Architecture) -> None:
        if len(architecture.layers) > self.max_layers:
            raise InvalidArchitectureError(
                f"a network must have at most {self.max_layers} layers, got "
                f"{len(architecture.layers)}"
            )

        if len(architecture.edges) > self.max_edges:
            raise InvalidArchitectureError(
                f"a network must have at most {self.max_edges} edges, got {len(architecture.edges)}"
            )

    def _check_layers(self, architecture: Architecture) -> None:
        most = self.max_degree
        low = self.min_units
        high = self.max_units
        layers = zip(architecture.layers, architecture.parents, architecture.children, strict=True)
        for u, (layer, parents, children) in enumerate(layers):
            if len(parents) > most:
                raise InvalidArchitectureError(
                    f"at most {most} edges lead into a layer, got {len(parents)}", u
                )

            if len(children) > most:
                raise InvalidArchitectureError(
                    f"at most {most} edges lead out of a layer, got {len(children)}", u
                )

            if layer.units is not None and not low <= layer.units <= high:
                raise InvalidArchitectureError(
                    f"units must be in [{low}, {high}], got {layer.units}", u
                )


POOL_SIZE = 10

# Maximum number of modifications between the initial pool and a random member.
_SAMPLE_STEPS = 10


class LayerwiseSpace(Space):
    """Networks of one vocabulary within limits, changed by the nine modifiers of NASBOT.

    A member has at least one layer between the input and the decision layers. Without one there is
    nothing to search, and the mass, which normalises distances, would be zero.

    Args:
        **config: Limits by name (`archive.spaces.layerwise.Limits`).

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
            fitted = self._fit(design)
            if fitted is not None:
                pool.setdefault(fitted.key, fitted)

            if len(pool) == POOL_SIZE:
                break

        return tuple(pool.values())

    def _check(self, architecture: Architecture) -> None:
        self.limits.check(architecture)
        if {"input", "decision", "output"}.issuperset(architecture.groups):
            raise InvalidArchitectureError(
                "a network needs a layer between input and decision layers, got none"
            )

    def _fit(self, design: Architecture) -> Architecture | None:
        """Return the design as a member, its units shrunk by 1/8 until the limits hold, or None."""
        layers = design.layers
        while True:
            fitted = Architecture(self.name, map(self._widen, layers), design.edges)
            if self.contains(fitted):
                return fitted

            widest = max(layer.units or 0 for layer in layers)
            if widest <= self.limits.min_units:
                return None

            layers = tuple(map(_narrow, layers))

    def _widen(self, layer: Layer) -> Layer:
        """Return a layer with at least the least number of units."""
        if layer.units is None:
            return layer

        return replace(layer, units=max(layer.units, self.limits.min_units))


def _narrow(layer: Layer) -> Layer:
    """Return a layer with units decreased by 1/8."""
    if layer.units is None:
        return layer

    return replace(layer, units=max(1, change_units(layer.units, -1)))


def chain(space: str, inner: list[Layer]) -> Architecture:
    """Return the feed-forward network of these layers in a row between input and output."""
    layers = [Layer(INPUT), *inner, Layer(OUTPUT)]
    return Architecture(space, layers, pairwise(range(len(layers))))


# Input, output and the decision layer.
_ENDS = 3
# VGG nets have three.
_MOST_FC = 4

Kind = tuple[str, int]


class Chain(Decisions):
    """A chain: `body` layers, then, where the vocabulary has them, `head` fully connected ones."""

    roots = 2
    vocabulary: Vocabulary
    groups: tuple[str, ...]
    head: tuple[str, ...]
    last: str

    def __init__(self, space: Space) -> None:
        """Make the decisions from the limits of the space, the paper's where it has none."""
        super().__init__(space)
        limits = Limits().config
        for name in limits.keys() & space.config.keys():
            limits[name] = space.config[name]

        self.limits = Limits.of(space.name, limits)
        kinds: list[Kind] = []
        for op in self.vocabulary.of_group(*self.groups):
            kinds += product([op], self.vocabulary[op].strides)

        self.kinds = tuple(kinds)
        self.units = _powers_of_two(self.limits.min_units, self.limits.max_units)
        self.most = self.limits.max_layers - _ENDS
        self.most_fc = min(_MOST_FC, self.most - 1) if self.head else 0
        self.decisions = tuple(self._decisions())

    def needed(self, prefix: Sequence[int]) -> bool:
        """Return whether the decision exists: not beyond the depth, or for absent units."""
        position = len(prefix)
        if position < 2:
            return position == 0 or bool(self.head)

        layer, of_units = divmod(position - 2, 2)
        if layer >= self.most:
            return of_units == 1 and layer - self.most < prefix[1]

        return layer <= prefix[0] and (not of_units or self._has_units(prefix[-1]))

    def encode(self, architecture: Architecture) -> Vector | None:
        """Return the decisions of a chain; other units are encoded as the nearest choice."""
        in_a_row = tuple(pairwise(range(len(architecture.layers))))
        if architecture.edges != in_a_row or not self.space.contains(architecture):
            return None

        layers = architecture.layers[1:-2]
        body = [layer for layer in layers if (layer.op, layer.stride) in self.kinds]
        head = layers[len(body) :]
        if not body or any(layer.op not in self.head for layer in head) or len(head) > self.most_fc:
            return None

        vector = [len(body) - 1, len(head) if self.head else ABSENT]
        for layer in body:
            vector += [self.kinds.index((layer.op, layer.stride)), self._level(layer)]

        vector += [ABSENT] * (2 * (self.most - len(body)))
        for layer in head:
            vector += [ABSENT, self._level(layer)]

        return tuple(vector) + (ABSENT,) * (len(self.decisions) - len(vector))

    def build(self, vector: Vector) -> Architecture:
        """See `Decisions.build`."""
        layers = []
        for position in range(2, 4 + 2 * vector[0], 2):
            op, stride = self.kinds[vector[position]]
            layers.append(Layer(op, self._units_at(vector[position + 1]), stride))

        for position in range(max(vector[1], 0)):
            layers.append(
                Layer(self.head[0], self._units_at(vector[3 + 2 * (self.most + position)]))
            )

        return chain(self.space.name, [*layers, Layer(self.last)])

    def _decisions(self) -> Iterator[Decision]:
        units = tuple(map(str, self.units))
        kinds = tuple(op if stride == 1 else f"{op}/{stride}" for op, stride in self.kinds)
        yield Decision("layers", tuple(map(str, range(1, self.most + 1))), ordered=True)
        yield Decision("fc layers", tuple(map(str, range(self.most_fc + 1))), ordered=True)
        for u in range(1, self.most + 1):
            yield Decision(f"operation {u}", kinds)
            yield Decision(f"units {u}", units, ordered=True)

        for u in range(1, self.most_fc + 1):
            # Fully connected layers have one operation. The decision has one choice, so that each
            # layer has two places.
            yield Decision(f"fc operation {u}", self.head)
            yield Decision(f"fc units {u}", units, ordered=True)

    def _has_units(self, kind: int) -> bool:
        return self.vocabulary[self.kinds[kind][0]].has_units

    def _units_at(self, level: int) -> int | None:
        return None if level == ABSENT else self.units[level]

    def _level(self, layer: Layer) -> int:
        if layer.units is None:
            return ABSENT

        return int(np.argmin([abs(math.log(units / layer.units)) for units in self.units]))


@final
class MlpChain(Chain):
    """Layers of rectifiers and sigmoids."""

    vocabulary = MLP
    groups = ("rectifier", "sigmoid")
    head = ()
    last = "linear"


@final
class CnnChain(Chain):
    """Convolutions and pools, then up to four fully connected layers."""

    vocabulary = CNN
    groups = ("conv", "pool")
    head = ("fc",)
    last = "softmax"


def _powers_of_two(low: int, high: int) -> tuple[int, ...]:
    """Return the powers of two in [low, high]; the bounds if the range has no power of two."""
    powers = tuple(2**k for k in range(high.bit_length()) if low <= 2**k <= high)
    return powers or tuple(sorted({low, high}))
