"""Objectives as text, `NAME[:minimise|maximise]`, and the directions that names declare.

| names                                          | direction |
|------------------------------------------------|-----------|
| `accuracy`, and with a prefix such as `valid_` | maximise  |
| `loss`, `mse`, `error`, likewise               | minimise  |
| costs: `params`, `flops`, `latency…`, `peak…`  | minimise  |
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, cast

from archive.errors import UnknownNameError, UsageError
from archive.store.costs import METRICS

Direction = Literal["maximise", "minimise"]
DIRECTIONS = ("maximise", "minimise")

_PREFIXES = ("train_", "valid_", "test_")
_OF_PREDICTIONS: Mapping[str, Direction] = {
    "accuracy": "maximise",
    "loss": "minimise",
    "mse": "minimise",
    "error": "minimise",
}


@dataclass(frozen=True)
class Objective:
    """One of the quantities that a study optimises.

    Attributes:
        name: Name of the metric.
        direction: Whether larger or smaller values are better.
    """

    name: str
    direction: Direction = "maximise"

    def __str__(self) -> str:
        """Return it as the command line takes it, `latency_ms:minimise`."""
        return f"{self.name}:{self.direction}"


def parse(
    text: str, declared: Mapping[str, Direction] | None = None, known: Collection[str] = ()
) -> Objective:
    """Return the objective that a text names.

    Args:
        text: `NAME` or `NAME:DIRECTION`.
        declared: Directions of names, before those that names declare by themselves.
        known: Names with a direction, for the error about a name without one; empty where any
            metric may be meant.

    Raises:
        UnknownNameError: The text has no direction, and its name declares none.
        UsageError: The name is empty, or the direction is none.
    """
    name, separator, direction = text.partition(":")
    name = name.strip()
    direction = direction.strip()
    if not name or (separator and direction not in DIRECTIONS):
        raise UsageError(f"an objective is NAME, NAME:minimise or NAME:maximise, got {text!r}")

    stated = direction or (declared or {}).get(name) or direction_of(name)
    if stated is None:
        raise UnknownNameError(
            "objective", name, known, f"write {name}:minimise or {name}:maximise"
        )

    return Objective(name, cast(Direction, stated))


def direction_of(name: str) -> Direction | None:
    """Return the direction that the name of a quantity declares; None where it declares none."""
    if name in METRICS or name.startswith("latency"):
        return "minimise"

    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)

    return _OF_PREDICTIONS.get(name)
