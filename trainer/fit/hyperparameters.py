"""Hyperparameters of a proposal that override the protocol: parameters beside a network.

| name            | value                                                 | default        |
|-----------------|-------------------------------------------------------|----------------|
| `learning_rate` | > 0: the peak of the protocol's schedule              | the protocol's |
| `weight_decay`  | >= 0                                                  | the protocol's |
| `dropout`       | in [0, 1): share of a layer's inputs                  | 0              |
| `max_norm`      | > 0: bound of the L2 norm of a unit's weights,        | no bound       |
|                 | kept by scaling after each step                       |                |
| `batch_size`    | whole number >= 1: largest batch                      | the protocol's |

A value is a number for the whole network, or a list with one number for each layer with weights
(decision layers included): in the order of `Architecture.canonical`, or of
`archive.trainer.nn.base.weighted_layers` where an operation of the architecture is several layers.
A weight that several layers share counts as one layer with the inputs of all of them. A unit
is an output feature or channel, or an index of an embedding. `batch_size` is one number.

The protocol decides everything else, and the evaluation keeps its name; the overrides are recorded
with the proposal and in the evaluation's environment.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from archive.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from archive.parameters.parameter_space import ParameterSpace
    from archive.trainer.protocols.base import TrainingProtocol

Value = float | tuple[float, ...] | None

_RANGES: dict[str, tuple[str, Callable[[float], bool]]] = {
    "learning_rate": ("> 0", lambda value: value > 0),
    "weight_decay": (">= 0", lambda value: value >= 0),
    "dropout": ("in [0, 1)", lambda value: 0 <= value < 1),
    "max_norm": ("> 0", lambda value: value > 0),
    "batch_size": ("a whole number >= 1", lambda value: value >= 1 and value == int(value)),
}

NAMES = tuple(_RANGES)
"""Names of the parameters that the built-in training reads."""


@dataclass(frozen=True, slots=True)
class Hyperparameters:
    """Hyperparameters of a proposal; None where the protocol decides."""

    learning_rate: Value = None
    weight_decay: Value = None
    dropout: Value = None
    max_norm: Value = None
    batch_size: Value = None

    @classmethod
    def of(cls, recorded: Mapping[str, Any]) -> Hyperparameters:
        """Return the hyperparameters of a proposal, validated.

        Raises:
            UnknownNameError: There is no hyperparameter of a name.
            UsageError: A value is no number, no list of numbers, or out of range.
        """
        for name in recorded:
            if name not in NAMES:
                raise UnknownNameError("hyperparameter", name, NAMES)

        if isinstance(recorded.get("batch_size"), list | tuple):
            raise UsageError(f"batch_size must be one number, got {recorded['batch_size']!r}")

        return cls(**{name: _value(name, value) for name, value in recorded.items()})

    def protocol_of(self, protocol: TrainingProtocol) -> TrainingProtocol:
        """Return a protocol with the batch size of the proposal, and as many tokens.

        Raises:
            UsageError: The tokens of an epoch are less than half a step.
        """
        if self.batch_size is None:
            return protocol

        batch = int(cast(float, self.batch_size))
        if protocol.tokens is None or protocol.epoch_steps is None:
            return replace(protocol, batch=batch)

        sequences = protocol.epoch_steps * protocol.batch
        steps = round(sequences / batch)
        if not steps:
            raise UsageError(
                f"batch_size must be at most the {sequences} sequences of an epoch of "
                f"{protocol.name}, got {batch}"
            )

        return replace(protocol, batch=batch, epoch_steps=steps)

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


def check_parameters(parameters: ParameterSpace) -> None:
    """Check that the built-in training reads each parameter beside a network, and takes its values.

    Raises:
        UsageError: It does not.
    """
    from archive.parameters.ranges import Integer, Real

    for parameter in parameters.parameters:
        domain = parameter.domain
        if parameter.name not in NAMES:
            raise UsageError(
                f"the built-in training does not read the parameter {parameter.name}, only "
                f"{', '.join(NAMES)}: rename it, or name a recipe that reads it, --recipe NAME"
            )

        bounded = isinstance(domain, Real | Integer)
        values = (domain.decode(0.0), domain.decode(1.0)) if bounded else domain.values()
        for value in values:
            Hyperparameters.of({parameter.name: value})


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
