"""Hyperparameters of a proposal that override the protocol.

| name            | value                                                 | default        |
|-----------------|-------------------------------------------------------|----------------|
| `learning_rate` | > 0: the peak of the protocol's schedule              | the protocol's |
| `weight_decay`  | >= 0                                                  | the protocol's |
| `dropout`       | in [0, 1): share of a layer's inputs                  | 0              |
| `max_norm`      | > 0: bound of the L2 norm of a unit's weights,        | no bound       |
|                 | kept by scaling after each step                       |                |

A value is a number for the whole network, or a list with one number for each layer with weights
(decision layers included): in the order of `Architecture.canonical`, or of
`archive.trainer.nn.base.weighted_layers` where an operation of the architecture is several layers.
A weight that several layers share counts as one layer with the inputs of all of them. A unit
is an output feature or channel, or an index of an embedding.

The protocol decides everything else, and the evaluation keeps its name; the overrides are recorded
with the proposal and in the evaluation's environment.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, cast

from archive.errors import UnknownNameError, UsageError

Value = float | tuple[float, ...] | None

_RANGES: dict[str, tuple[str, Callable[[float], bool]]] = {
    "learning_rate": ("> 0", lambda value: value > 0),
    "weight_decay": (">= 0", lambda value: value >= 0),
    "dropout": ("in [0, 1)", lambda value: 0 <= value < 1),
    "max_norm": ("> 0", lambda value: value > 0),
}


@dataclass(frozen=True, slots=True)
class Hyperparameters:
    """Hyperparameters of a proposal; None where the protocol decides."""

    learning_rate: Value = None
    weight_decay: Value = None
    dropout: Value = None
    max_norm: Value = None

    @classmethod
    def of(cls, recorded: Mapping[str, Any]) -> Hyperparameters:
        """Return the hyperparameters of a proposal, validated.

        Raises:
            UnknownNameError: There is no hyperparameter of a name.
            UsageError: A value is no number, no list of numbers, or out of range.
        """
        names = [field.name for field in fields(cls)]
        for name in recorded:
            if name not in names:
                raise UnknownNameError("hyperparameter", name, names)

        return cls(**{name: _value(name, value) for name, value in recorded.items()})

    def of_layers(self, name: str, layers: int, default: float) -> list[float]:
        """Return one value for each layer with weights.

        Raises:
            UsageError: There is a list of another length.
        """
        value = cast(Value, getattr(self, name))
        if value is None:
            return [default] * layers

        if not isinstance(value, tuple):
            return [value] * layers

        if len(value) != layers:
            raise UsageError(
                f"{name} must be one number, or one for each of {layers} layers, got {len(value)}"
            )

        return list(value)


def _value(name: str, value: Any) -> Value:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(_number(name, number) for number in value)

    return _number(name, value)


def _number(name: str, value: Any) -> float:
    description, is_in_range = _RANGES[name]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (is_number and math.isfinite(value) and is_in_range(value)):
        raise UsageError(f"{name} must be {description}, got {value!r}")

    return float(value)
