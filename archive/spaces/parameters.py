"""The space `parameters`: configurations of a user's parameters, searched as networks are.

Settings are the parameters and constraints of an `archive.parameters` space, as its `json()` gives
them. A network is the graph of one configuration
(`archive.architecture.parameter_operations`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, final

import numpy as np

from archive.architecture.graph import Architecture
from archive.architecture.parameter_operations import NAME, configuration_of, network_of
from archive.errors import InvalidArchitectureError, UsageError
from archive.parameters.domains import json_text
from archive.parameters.leaves import Parameter
from archive.parameters.parameter_space import ParameterSpace
from archive.spaces.base import Mutation, Space, check_space, draw_distinct, refuse_settings
from archive.spaces.decisions import ABSENT, Decision, Decisions, Vector

_POOL_SIZE = 10
_MOST_LISTED = 20_000
_MOST_CHOICES = 64
"""Most values of a parameter that is a categorical decision."""

EXAMPLE: list[list[Any]] = [
    ["depth", {"kind": "integer", "low": 1, "high": 8}],
    ["width", {"kind": "integer", "low": 8, "high": 512, "log": True}],
    ["activation", {"kind": "choice", "options": ["relu", "gelu", "silu"]}],
    ["learning_rate", {"kind": "real", "low": 1e-5, "high": 0.1, "log": True}],
    [
        "dropout",
        {"kind": "real", "low": 0.0, "high": 0.8, "when": "depth >= 2"},
    ],
]
"""Parameters of a perceptron with its training: the space without settings."""


@final
class Parameters(Space):
    """Configurations of parameters with conditions and constraints.

    Args:
        parameters: Pairs of a name and a JSON object, as `ParameterSpace.json()` has them; or that
            space. None means the parameters of a perceptron.
        constraints: Texts that must not be false in a configuration.
        model: Reference of the function that builds a configuration's network; None for none.
        example: Shapes of its inputs (`archive.parameters.model`).
        fixed: Values by flat name, to search a part of the space (`ParameterSpace.fix`).
        **config: Refused.

    Attributes:
        parameters: The parameters and constraints.

    Raises:
        SettingsError: The parameters or the constraints are invalid.
        UnknownNameError: There is another setting.
    """

    name = NAME
    adopts = True

    def __init__(
        self,
        parameters: Any = None,
        constraints: Sequence[str] = (),
        model: str | None = None,
        example: Any = None,
        fixed: Mapping[str, Any] | None = None,
        **config: Any,
    ) -> None:
        """Read the settings."""
        refuse_settings(self.name, config)
        if isinstance(parameters, ParameterSpace):
            self.parameters = parameters
        else:
            document = {
                "parameters": EXAMPLE if parameters is None else parameters,
                "constraints": constraints,
                "model": model,
                "example": example,
                "fixed": fixed,
            }
            self.parameters = ParameterSpace.from_json(document)

    @property
    def config(self) -> dict[str, Any]:
        """The parameters as pairs, and the constraints."""
        return self.parameters.json()

    def part(self, parameters: ParameterSpace) -> Parameters:
        """Return the space of a part of the parameters' space."""
        return Parameters(parameters)

    def named(self, architecture: Architecture) -> dict[str, Any]:
        """Return the values of a configuration by flat name, in the order of the space.

        Parameters that the space got after the configuration was recorded have their defaults.

        Raises:
            InvalidArchitectureError: The architecture is no member.
        """
        check_space(self.name, architecture)
        try:
            return self.parameters.check(self.parameters.supply(configuration_of(architecture)))
        except InvalidArchitectureError:
            raise
        except UsageError as error:
            raise InvalidArchitectureError(str(error)) from None

    def parameters_of(self, architecture: Architecture) -> dict[str, Any]:
        """See `Space.parameters_of`: groups are dictionaries and lists."""
        return self.parameters.nested(super().parameters_of(architecture))

    def of_names(self, names: Mapping[str, Any]) -> Architecture:
        """Return the network of a configuration, the inverse of `named`.

        Args:
            names: Values by flat name, or a tree as `ParameterSpace.nested` returns it.

        Raises:
            InvalidArchitectureError: The values are no configuration of the space.
        """
        try:
            values = self.parameters.supply(self.parameters.flat(names))
            return self.network_of(self.parameters.check(values))
        except UsageError as error:
            raise InvalidArchitectureError(str(error)) from None

    def fill(self, names: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return values with the central ones of the parameters that are left out.

        Raises:
            UnknownNameError: A name is no parameter.
            UsageError: A value is outside the domain of its parameter, or its parameter does not
                exist beside the others.
        """
        values = self.parameters.flat(names)
        completed = self.parameters.complete(values)
        for name in values:
            if name not in completed:
                conditions = [condition.text for condition in self.parameters[name].conditions]
                raise UsageError(f"{name} exists only where {' and '.join(conditions)}")

        return completed

    def adopt(self, architecture: Architecture) -> Architecture | None:
        """See `Space.adopt`: completed by defaults, and None outside a part of the space."""
        try:
            values = self.named(architecture)
        except InvalidArchitectureError:
            return None if self.parameters.fixed else architecture

        complete = len(values) == len(architecture.layers) - 2
        return architecture if complete else self.network_of(values)

    def network_of(self, configuration: Mapping[str, Any]) -> Architecture:
        """Return the network of a checked configuration by flat name."""
        return network_of(self.parameters, configuration)

    def validate(self, architecture: Architecture) -> None:
        """Check that the architecture is a configuration of the space.

        Raises:
            InvalidArchitectureError: It is not; the message gives the reason.
        """
        self.named(architecture)

    def initial_pool(self, rng: np.random.Generator | None = None) -> list[Architecture]:
        """Return ten random configurations, parameters with a prior drawn from it.

        Where a parameter has a default or a prior, the first configuration has these values.
        """
        generator = np.random.default_rng(0) if rng is None else rng
        pool = draw_distinct(
            lambda: self.network_of(self.parameters.sample(generator, prior=True)),
            lambda network: network.functional_key,
            _POOL_SIZE,
        )
        if self.parameters.has_expectations:
            expected = self.parameters.complete({})
            if self.parameters.allows(expected):
                first = self.network_of(expected)
                others = [
                    network for network in pool if network.functional_key != first.functional_key
                ]
                pool = [first, *others][:_POOL_SIZE]

        return pool

    def sample(self, rng: np.random.Generator) -> Architecture:
        """Draw each parameter uniformly on its scale, among configurations that are allowed."""
        return self.network_of(self.parameters.sample(rng))

    def mutate(self, architecture: Architecture, rng: np.random.Generator) -> Mutation:
        """Change one parameter; those that begin to exist are drawn."""
        before = self.named(architecture)
        after = self.parameters.mutate(before, rng)
        return Mutation(self.network_of(after), changes(before, after))

    def neighbours(self, architecture: Architecture) -> Iterator[Mutation]:
        """Yield the configurations with a neighbouring value of one parameter."""
        before = self.named(architecture)
        for after in self.parameters.neighbours(before):
            yield Mutation(self.network_of(after), changes(before, after))

    def members(self) -> Sequence[Architecture] | None:
        """Return every configuration, of at most 20,000 combinations of values."""
        if self.parameters.size > _MOST_LISTED:
            return None

        if "_members" not in vars(self):
            self.__dict__["_members"] = tuple(map(self.network_of, self.parameters.every()))

        members: tuple[Architecture, ...] = self.__dict__["_members"]
        return members

    def decisions(self) -> Decisions | None:
        """Return the parameters as decisions; None if one has more than 64 values."""
        sizes = [parameter.domain.size for parameter in self.parameters.parameters]
        return ParameterDecisions(self) if max(sizes) <= _MOST_CHOICES else None


def part_of(
    space: Space,
    fixed: Mapping[str, Any],
    only: Sequence[str] = (),
    base: Mapping[str, Any] = MappingProxyType({}),
) -> Space:
    """Return the part of a space with some values fixed and some parameters searched.

    Args:
        space: A space of parameters.
        fixed: Values by name. A text stands for the JSON value that it spells if the parameter
            has that value, as in `width=64`.
        only: Names of the searched parameters or groups; empty for all that are not fixed.
        base: Values of the others by flat name; without one, a parameter has its default.

    Raises:
        UnknownNameError: A name is no parameter.
        UsageError: The space has no parameters, a value is outside its domain, or no configuration
            has all values.
    """
    from archive.spaces.joint import JointSpace

    if not isinstance(space, Parameters | JointSpace):
        raise UsageError(
            "a part of a space is searched where it consists of parameters (--space space.toml) or "
            f"has parameters beside its networks (--parameters), got the space {space.name}"
        )

    values = {}
    for name, value in space.parameters.flat(fixed).items():
        values[name] = _spelled(space.parameters[name], value)

    part = space.parameters.fix(values)
    if only:
        names = {*space.parameters.names}
        part = part.only(only, {name: base[name] for name in base if name in names})

    return space.part(part)


def _spelled(parameter: Parameter, value: Any) -> Any:
    """Return the value that a text spells, or the text where it is one itself."""
    if not isinstance(value, str):
        return value

    with suppress(ValueError, UsageError):
        read = json.loads(value)
        parameter.check(read)
        return read

    return value


@final
class ParameterDecisions(Decisions):
    """Parameters with few values as decisions; a choice is the JSON text of a value.

    Args:
        space: The space.

    Attributes:
        parameters: The parameters, one for each decision.
    """

    def __init__(self, space: Parameters) -> None:
        """Name the decisions as the space does."""
        super().__init__(space)
        self.parameters = space.parameters.parameters
        self._space = space.parameters
        decisions = []
        for parameter in self.parameters:
            texts = tuple(map(json_text, parameter.domain.values()))
            decisions.append(Decision(parameter.name, texts, parameter.domain.ordered))

        self.decisions = tuple(decisions)
        conditional = any(parameter.conditions for parameter in self.parameters)
        self.roots = 1 if conditional else 0

    def needed(self, prefix: Sequence[int]) -> bool:
        """Return whether the conditions of the next parameter hold."""
        parameter = self.parameters[len(prefix)]
        return parameter.exists(self.values(prefix))

    def encode(self, architecture: Architecture) -> Vector | None:
        """Return the positions of the values, `ABSENT` where a parameter does not exist."""
        if not self.space.contains(architecture):
            return None

        return self.encode_values(configuration_of(architecture))

    def encode_values(self, values: Mapping[str, Any]) -> Vector:
        """Return the positions of values by name, `ABSENT` where there is none."""
        vector = []
        for parameter, decision in zip(self.parameters, self.decisions, strict=True):
            if parameter.name in values:
                vector.append(decision.choices.index(json_text(values[parameter.name])))
            else:
                vector.append(ABSENT)

        return tuple(vector)

    def build(self, vector: Vector) -> Architecture:
        """Return the network of the values that exist.

        Raises:
            InvalidArchitectureError: They do not meet the constraints.
        """
        values = self.values(vector)
        if not self._space.allows(values):
            raise InvalidArchitectureError("the configuration does not meet the constraints")

        return network_of(self._space, values)

    def values(self, vector: Sequence[int]) -> dict[str, Any]:
        """Return the values of the leading parameters by name, those that exist."""
        values: dict[str, Any] = {}
        pairs = zip(self.parameters, vector, strict=False)
        for parameter, position in pairs:
            if position != ABSENT:
                values[parameter.name] = parameter.domain.values()[position]

        return values


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the name of the modification: the first parameter whose value changed."""
    for name, value in after.items():
        if name not in before or json_text(before[name]) != json_text(value):
            return (f"set_{name}",)

    removed = [f"unset_{name}" for name in before if name not in after]
    return tuple(removed[:1])
