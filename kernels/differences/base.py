"""Parts of the distance of two networks: matches, changes, insertions, removals, and their costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from archive.architecture.graph import Architecture
from archive.architecture.layer import Layer
from archive.architecture.parameter_operations import describe_layer
from archive.words import layer as layer_word

Change = Literal["matched", "changed", "inserted", "removed"]
CHANGES: tuple[Change, ...] = ("matched", "changed", "inserted", "removed")


@dataclass(frozen=True, slots=True)
class DifferencePart:
    """A part of a distance.

    Attributes:
        subject: Kind of the part: `layer`, `skip`, `break`, `block`, `stream` or `mass` (the edit
            distance's and the transport's words).
        change: Change of the part on the way from the first network to the second.
        first: Positions in the first network: of a layer, of the two ends of a skip, or of the
            layers of a block; empty for an insertion.
        second: The same in the second network; empty for a removal.
        cost: Its share of the distance, >= 0.
        reason: Where the cost comes from; empty where it is 0.
        amount: Mass that is moved; 1 for a layer or a skip.
    """

    subject: Literal["layer", "skip", "break", "block", "stream", "mass"]
    change: Change
    first: tuple[int, ...]
    second: tuple[int, ...]
    cost: float
    reason: str = ""
    amount: float = 1.0


@dataclass(frozen=True, slots=True)
class Difference:
    """A distance in parts.

    Attributes:
        kernel: Name of the kernel.
        component: Name of the distance among the kernel's components.
        first: The first network.
        second: The second network.
        parts: All parts.
        layers: The pairs of matched layers and the layers without a partner, (position, None) or
            (None, position), in an order in which a picture can list them.
    """

    kernel: str
    component: str
    first: Architecture
    second: Architecture
    parts: tuple[DifferencePart, ...]
    layers: tuple[tuple[int | None, int | None], ...]

    @property
    def distance(self) -> float:
        """The sum of the costs."""
        return math.fsum(part.cost for part in self.parts)

    def change(self, pair: tuple[int | None, int | None]) -> Change:
        """Return the change of a pair of `layers`."""
        first, second = pair
        if first is None:
            return "inserted"

        if second is None:
            return "removed"

        return "matched" if self.first.layers[first] == self.second.layers[second] else "changed"

    def totals(self) -> list[tuple[str, Change, int, float]]:
        """Return subject, change, number and cost of each kind of part, in a fixed order."""
        sums: list[tuple[str, Change, int, float]] = []
        costs: dict[tuple[str, Change], list[float]] = {}
        for part in self.parts:
            costs.setdefault((part.subject, part.change), []).append(part.cost)

        for subject in dict.fromkeys(subject for subject, _ in costs):
            for change in CHANGES:
                of_kind = costs.get((subject, change), [])
                if of_kind:
                    sums.append((subject, change, len(of_kind), math.fsum(of_kind)))

        return sums


def words(layer: Layer) -> str:
    """Return a layer as a word: `conv3 64 /2`, or a parameter as `lr = 0.0003`."""
    setting = describe_layer(layer)
    if setting is not None:
        return setting

    parts = [layer_word(layer.op)]
    if layer.units is not None:
        parts.append(str(layer.units))

    if layer.stride > 1:
        parts.append(f"/{layer.stride}")

    return " ".join(parts)
