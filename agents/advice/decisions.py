"""Decisions of networks by name, and the levels that their values fall into.

| space                                 | decisions                                                 |
|---------------------------------------|-----------------------------------------------------------|
| parameters, choices, pairs of both    | the values by name                                        |
| slots (NAS-Bench-201, DARTS)          | the operation of each slot                                |
| others (perceptrons, CNNs, cells of   | numbers of the graph: depth, layers, edges, units, layers |
| NAS-Bench-101)                        | of each operation                                         |

A level is a value, or a third of the range of a number with many values.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archive.architecture.graph import Architecture
from archive.architecture.operations import vocabulary
from archive.errors import InvalidArchitectureError
from archive.spaces.base import Space
from archive.values import is_number, setting_text

ABSENT = "absent"
"""Level of a decision that a network does not have, as of a conditional parameter."""

MOST_VALUES = 6
"""Most different numbers that are levels themselves; more are put into `BANDS`."""

BANDS = 3
ENDS = ("ip", "op")
"""Operations that every network has once."""


@dataclass(frozen=True)
class Level:
    """A value of a decision, or a range of its values.

    Attributes:
        decision: Name of the decision.
        text: The value or range in words: `nor_conv_3x3`, `0.001 to 0.01`, `absent`.
        value: The value; None for a range or `absent`.
        low: Lower end of a range, included; None for a value.
        high: Upper end of a range, included; None for a value.
    """

    decision: str
    text: str
    value: Any = None
    low: float | None = None
    high: float | None = None

    def holds(self, decisions: Mapping[str, Any]) -> bool:
        """Return whether a network with these decisions is at this level."""
        if self.decision not in decisions:
            return self.text == ABSENT

        value = decisions[self.decision]
        if self.low is None or self.high is None:
            return self.text != ABSENT and bool(value == self.value)

        return self.low <= float(value) <= self.high


def decisions_of(space: Space, network: Architecture) -> dict[str, Any]:
    """Return the values of a network's decisions by name; empty for a network that is no member.

    Args:
        space: The space of the study.
        network: The network; in a space with parameters beside networks, the pair.
    """
    try:
        named = dict(space.named(network))
        slots = space.slots(network.network)
    except InvalidArchitectureError:
        return {}

    if slots is not None:
        return {**slots, **named}

    beside = network.configuration
    if named and named.keys() != beside.keys():
        return named

    return {**_numbers(network.network), **named}


def _numbers(network: Architecture) -> dict[str, int]:
    """Return numbers that describe the graph of a network, without dead layers."""
    live = network.functional
    numbers = {"depth": live.depth, "layers": len(live.layers), "edges": len(live.edges)}
    units = sum(layer.units or 0 for layer in live.layers)
    if units:
        numbers["units"] = units

    counts = Counter(layer.op for layer in live.layers)
    for operation in vocabulary(network.space).operations:
        if operation not in ENDS:
            numbers[f"{operation} layers"] = counts[operation]

    return numbers


def levels_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Level]]:
    """Return the levels of each decision in which networks differ, in the order of the decisions.

    Args:
        rows: The decisions of each network.
    """
    names: dict[str, None] = {}
    for row in rows:
        names |= dict.fromkeys(row)

    levels = {}
    for name in names:
        of_name = _levels(name, [row.get(name) for row in rows])
        if len(of_name) > 1:
            levels[name] = of_name

    return levels


def memberships(levels: Sequence[Level], rows: Sequence[Mapping[str, Any]]) -> NDArray[np.bool_]:
    """Return whether each of m networks is at each of k levels: (m, k)."""
    table = np.zeros((len(rows), len(levels)), np.bool_)
    for position, row in enumerate(rows):
        for column, level in enumerate(levels):
            table[position, column] = level.holds(row)

    return table


def _levels(name: str, values: Sequence[Any]) -> list[Level]:
    """Return the levels of one decision; a value of None is absent."""
    present = [value for value in values if value is not None]
    levels = []
    if len(present) < len(values):
        levels.append(Level(name, ABSENT))

    are_numbers = all(is_number(value) for value in present)
    different: list[Any] = []
    for value in present:
        if value not in different:
            different.append(value)

    if are_numbers and len(different) > MOST_VALUES:
        return levels + _bands(name, np.array(present, np.float64))

    if are_numbers:
        different.sort()

    for value in different:
        levels.append(Level(name, setting_text(value), value))

    return levels


def _bands(name: str, numbers: NDArray[np.float64]) -> list[Level]:
    """Return ranges that hold about equally many of the numbers, and meet each other."""
    shares = np.linspace(0.0, 1.0, BANDS + 1)
    edges = np.unique(np.quantile(numbers, shares, method="nearest")).tolist()
    is_whole = bool((numbers == np.round(numbers)).all())
    levels = []
    for low, edge in pairwise(edges):
        high = edge
        if edge != edges[-1]:
            high = float(np.nextafter(edge, low))

        text = f"{setting_text(low)} to {setting_text(edge)}"
        if is_whole:
            text = _whole_range(math.ceil(low), math.floor(high))

        levels.append(Level(name, text, None, low, high))

    return levels


def _whole_range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"
