"""Chains of layers as decisions: the feed-forward networks that TreeBO searches (NASBOT, appendix
C.1).

The first decision is the number of layers, followed by each layer's operation and units. Units are
powers of two within the space's limits; other units are encoded as the nearest of these. Networks
with branches have no encoding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import final

import numpy as np

from archive.architecture.graph import Architecture, Layer
from archive.architecture.operations import CNN, MLP, Vocabulary
from archive.spaces.base import Space
from archive.spaces.decisions import ABSENT, Decision, Decisions, Vector
from archive.spaces.layerwise import chain
from archive.spaces.limits import Limits

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
        known = {field.name for field in fields(Limits)}
        self.limits = Limits.of(
            space.name, {name: value for name, value in space.config.items() if name in known}
        )
        names = self.vocabulary.of_group(*self.groups)
        self.kinds: tuple[Kind, ...] = tuple(
            (op, s) for op in names for s in self.vocabulary[op].strides
        )
        self.units = _powers_of_two(self.limits.min_units, self.limits.max_units)
        self.most = self.limits.max_layers - _ENDS
        self.most_fc = min(_MOST_FC, self.most - 1) if self.head else 0
        self.decisions = tuple(self._decisions())

    def needed(self, prefix: Sequence[int]) -> bool:
        """Return whether the decision exists: not beyond the depth, nor for the units of an
        operation without units.
        """
        at = len(prefix)
        if at < 2:
            return at == 0 or bool(self.head)

        layer, of_units = divmod(at - 2, 2)
        if layer >= self.most:
            return of_units == 1 and layer - self.most < prefix[1]

        return layer <= prefix[0] and (not of_units or self._has_units(prefix[-1]))

    def encode(self, architecture: Architecture) -> Vector | None:
        """Return the decisions of a chain; other units are encoded as the nearest choice."""
        last = len(architecture.layers) - 1
        if architecture.edges != tuple((u, u + 1) for u in range(last)) or not self.space.contains(
            architecture
        ):
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
        for at in range(2, 4 + 2 * vector[0], 2):
            op, stride = self.kinds[vector[at]]
            layers.append(Layer(op, self._chosen_units(vector[at + 1]), stride))

        for at in range(max(vector[1], 0)):
            layers.append(Layer(self.head[0], self._chosen_units(vector[3 + 2 * (self.most + at)])))

        return chain(self.space.name, [*layers, Layer(self.last)])

    def _decisions(self) -> Iterator[Decision]:
        units = tuple(map(str, self.units))
        yield Decision(
            "layers", tuple(str(depth) for depth in range(1, self.most + 1)), ordered=True
        )
        yield Decision(
            "fc layers", tuple(str(count) for count in range(self.most_fc + 1)), ordered=True
        )
        for u in range(1, self.most + 1):
            yield Decision(
                f"operation {u}", tuple(op if s == 1 else f"{op}/{s}" for op, s in self.kinds)
            )
            yield Decision(f"units {u}", units, ordered=True)

        for u in range(1, self.most_fc + 1):
            # Fully connected layers have one operation. The decision has one choice, so that each
            # layer has two places.
            yield Decision(f"fc operation {u}", self.head)
            yield Decision(f"fc units {u}", units, ordered=True)

    def _has_units(self, kind: int) -> bool:
        return self.vocabulary[self.kinds[kind][0]].has_units

    def _chosen_units(self, level: int) -> int | None:
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
    """Return the powers of two in [low, high]; the bounds where there are none."""
    powers = tuple(2**k for k in range(high.bit_length()) if low <= 2**k <= high)
    return powers or tuple(sorted({low, high}))
