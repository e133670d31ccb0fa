"""Conditional hyperparameters, which depend on values of others: the domain of the Arc kernel.

Swersky, Duvenaud, Snoek, Hutter, Osborne: Raiders of the Lost Architecture (2014).

| symbol   | meaning                                                                | shape   |
|----------|------------------------------------------------------------------------|---------|
| x        | a configuration: a value for each parameter that exists in it          | (D,)    |
| delta_i  | whether parameter i exists in x (the paper: "is relevant")             | bool    |
| l_i, u_i | bounds of a real parameter on its scale (linear or log)                | scalars |
| code     | (x_i - l_i) / (u_i - l_i), or a choice's position; NaN without delta_i | (n, D)  |

Values of parameters that do not exist in a configuration are ignored everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archive.errors import SettingsError, UnknownNameError, UsageError

Floats = NDArray[np.float64]
Value = float | int | str | bool
Configuration = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class When:
    """Condition on another parameter: it exists, and its value is large enough or one of a list.

    Attributes:
        parameter: Name of the other parameter.
        at_least: Minimum value; None with `one_of`.
        one_of: Accepted values; empty with `at_least`.
    """

    parameter: str
    at_least: float | None = None
    one_of: tuple[Value, ...] = ()

    def __post_init__(self) -> None:
        """Check that exactly one of the two is set."""
        if (self.at_least is None) == (not self.one_of):
            raise SettingsError(f"a condition needs at_least or one_of, and not both, got {self}")

    def holds(self, value: Value) -> bool:
        """Return whether a value meets the condition."""
        if self.at_least is not None:
            return float(value) >= self.at_least

        return value in self.one_of


@dataclass(frozen=True, slots=True)
class Real:
    """A number between bounds.

    Attributes:
        name: Name of the parameter.
        low: Minimum value.
        high: Maximum value.
        log: Whether the scale is logarithmic.
        integer: Whether values are whole numbers.
        when: Conditions, all of which must hold for the parameter to exist.
    """

    name: str
    low: float
    high: float
    log: bool = False
    integer: bool = False
    when: tuple[When, ...] = ()

    def __post_init__(self) -> None:
        """Check the bounds."""
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise SettingsError(
                f"{self.name} needs finite bounds low < high, got {self.low} and {self.high}"
            )

        if self.log and self.low <= 0:
            raise SettingsError(f"{self.name} is on a log scale and needs low > 0, got {self.low}")

        if self.integer and not (float(self.low).is_integer() and float(self.high).is_integer()):
            raise SettingsError(f"{self.name} needs whole bounds, got {self.low} and {self.high}")

    def check(self, value: Value) -> None:
        """Check that a value is a number between the bounds.

        Raises:
            UsageError: It is not.
        """
        if isinstance(value, (bool, str)) or not self.low <= value <= self.high:
            raise UsageError(f"{self.name} must be in [{self.low:g}, {self.high:g}], got {value!r}")

        if self.integer and not float(value).is_integer():
            raise UsageError(f"{self.name} must be a whole number, got {value!r}")

    def encode(self, value: Value) -> float:
        """Return (x - l) / (u - l), on the parameter's scale."""
        scale = math.log if self.log else float
        low = scale(self.low)
        high = scale(self.high)
        x = scale(float(value))
        return (x - low) / (high - low)

    def decode(self, code: float) -> Value:
        """Return the value of a code in [0, 1], rounded for a parameter of whole numbers."""
        if self.log:
            x = math.exp(math.log(self.low) + code * (math.log(self.high) - math.log(self.low)))
        else:
            x = self.low + code * (self.high - self.low)

        # Rounding must not move a value beyond a bound.
        x = min(max(x, self.low), self.high)
        return round(x) if self.integer else x

    def sample(self, rng: np.random.Generator) -> Value:
        """Draw uniformly on the parameter's scale."""
        if self.integer and not self.log:
            return int(rng.integers(int(self.low), int(self.high), endpoint=True))

        return self.decode(float(rng.random()))


@dataclass(frozen=True, slots=True)
class Categorical:
    """One of several choices without an order.

    Attributes:
        name: Name of the parameter.
        choices: Two or more choices.
        when: Conditions, all of which must hold for the parameter to exist.
    """

    name: str
    choices: tuple[Value, ...]
    when: tuple[When, ...] = ()

    def __post_init__(self) -> None:
        """Check the choices."""
        if len(self.choices) < 2 or len(set(self.choices)) < len(self.choices):
            raise SettingsError(
                f"{self.name} needs two or more distinct choices, got {self.choices}"
            )

    def check(self, value: Value) -> None:
        """Check that a value is one of the choices.

        Raises:
            UsageError: It is not.
        """
        if value not in self.choices:
            raise UsageError(
                f"{self.name} must be one of {', '.join(map(str, self.choices))}, got {value!r}"
            )

    def encode(self, value: Value) -> float:
        """Return the position of the choice."""
        return float(self.choices.index(value))

    def sample(self, rng: np.random.Generator) -> Value:
        """Draw uniformly."""
        return self.choices[int(rng.integers(len(self.choices)))]


Parameter = Real | Categorical


class Conditional:
    """A set of configurations. Immutable.

    Args:
        parameters: Parameters with conditions on earlier ones only, so that none depends on itself.

    Raises:
        SettingsError: There are no parameters, a name is given twice, or a condition names no
            earlier parameter, or sets a minimum for choices, which have no order.
    """

    def __init__(self, parameters: Sequence[Parameter]) -> None:
        """Check the parameters."""
        self.parameters = tuple(parameters)
        if not self.parameters:
            raise SettingsError("parameters must be one or more, got none")

        earlier: dict[str, Parameter] = {}
        for parameter in self.parameters:
            if parameter.name in earlier:
                raise SettingsError(f"the parameter {parameter.name} is given twice")

            for condition in parameter.when:
                _check_condition(parameter.name, condition, earlier)

            earlier[parameter.name] = parameter

    def __eq__(self, other: object) -> bool:
        """Compare the parameters."""
        return isinstance(other, Conditional) and self.parameters == other.parameters

    def __hash__(self) -> int:
        """Hash the parameters."""
        return hash(self.parameters)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters, in order."""
        return tuple(parameter.name for parameter in self.parameters)

    def existing(self, configuration: Configuration) -> dict[str, Value]:
        """Return the parameters that exist in a configuration with their values.

        These are equal for equal ones.

        Raises:
            UsageError: One of them has no value, or an invalid one.
            UnknownNameError: The configuration has a name that is no parameter of this set.
        """
        for name in configuration:
            if name not in self.names:
                raise UnknownNameError("parameter", name, self.names)

        values: dict[str, Value] = {}
        for parameter in self.parameters:
            if _exists(parameter, values):
                if parameter.name not in configuration:
                    raise UsageError(
                        f"{parameter.name} exists in this configuration and needs a value, got none"
                    )

                parameter.check(configuration[parameter.name])
                values[parameter.name] = configuration[parameter.name]

        return values

    def encode(self, configurations: Sequence[Configuration]) -> Floats:
        """Return the codes of n configurations: (n, D) float64, NaN for an absent parameter.

        Raises:
            UsageError: As for `existing`.
        """
        codes = np.full((len(configurations), len(self.parameters)), np.nan)
        for row, configuration in zip(codes, configurations, strict=True):
            values = self.existing(configuration)
            for index, parameter in enumerate(self.parameters):
                if parameter.name in values:
                    row[index] = parameter.encode(values[parameter.name])

        return codes

    def sample(self, rng: np.random.Generator) -> dict[str, Value]:
        """Return a random configuration, without parameters that do not exist in it."""
        return self._complete({}, rng)

    def mutate(self, configuration: Configuration, rng: np.random.Generator) -> dict[str, Value]:
        """Draw one parameter again, and draw or remove the parameters that depend on it."""
        values = self.existing(configuration)
        name = list(values)[int(rng.integers(len(values)))]
        parameter = self.parameters[self.names.index(name)]
        return self._complete({**values, name: parameter.sample(rng)}, rng)

    def _complete(self, fixed: Configuration, rng: np.random.Generator) -> dict[str, Value]:
        values: dict[str, Value] = {}
        for parameter in self.parameters:
            if not _exists(parameter, values):
                continue

            if parameter.name in fixed:
                values[parameter.name] = fixed[parameter.name]
            else:
                values[parameter.name] = parameter.sample(rng)

        return values


def perceptrons(max_depth: int = 5) -> Conditional:
    """Return the paper's experiment: 0 to `max_depth` hidden layers, and their training.

    Besides the depth there are 4 parameters for each hidden layer (learning rate, bound of the L2
    norm of a unit's weights, dropout rate, units), 2 for the output layer and the dropout rate of
    the input: 23 for 5 layers. The paper gives their kinds and their number, not their bounds;
    those here are ours.

    Raises:
        SettingsError: `max_depth` is below 1.
    """
    if max_depth < 1:
        raise SettingsError(f"max_depth must be >= 1, got {max_depth}")

    parameters: list[Parameter] = [
        Real("depth", 0, max_depth, integer=True),
        Real("dropout_input", 0.0, 0.8),
        Real("learning_rate_output", 1e-4, 1.0, log=True),
        Real("norm_output", 0.1, 20.0, log=True),
    ]
    for layer in range(1, max_depth + 1):
        when = (When("depth", at_least=layer),)
        parameters += [
            Real(f"learning_rate_{layer}", 1e-4, 1.0, log=True, when=when),
            Real(f"norm_{layer}", 0.1, 20.0, log=True, when=when),
            Real(f"dropout_{layer}", 0.0, 0.8, when=when),
            Real(f"units_{layer}", 8, 1024, log=True, integer=True, when=when),
        ]

    return Conditional(parameters)


def _exists(parameter: Parameter, values: Mapping[str, Any]) -> bool:
    for condition in parameter.when:
        if condition.parameter not in values or not condition.holds(values[condition.parameter]):
            return False

    return True


def _check_condition(name: str, condition: When, earlier: Mapping[str, Parameter]) -> None:
    other = earlier.get(condition.parameter)
    if other is None:
        raise SettingsError(
            f"{name} depends on {condition.parameter}, which must be a parameter "
            "that stands before it"
        )

    if condition.at_least is not None and isinstance(other, Categorical):
        raise SettingsError(
            f"{name} needs {other.name} >= {condition.at_least:g}, but its choices have no order"
        )

    if isinstance(other, Categorical):
        for value in condition.one_of:
            if value not in other.choices:
                raise SettingsError(
                    f"{name} depends on {other.name} = {value!r}, which is no choice of it"
                )
