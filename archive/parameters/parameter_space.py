"""The space of all configurations of some parameters.

| symbol  | meaning                                                                          | shape  |
|---------|----------------------------------------------------------------------------------|--------|
| x       | a configuration: a value for each parameter that exists in it                    | (D,)   |
| delta_i | whether parameter i exists in x: its conditions hold                             | bool   |
| code    | place of a number or an ordered option in [0, 1], position of another option;    | (n, D) |
|         | NaN where delta_i is false                                                       |        |

Values of parameters that do not exist in a configuration have no effect.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from archive.errors import SettingsError, UnknownNameError, UsageError
from archive.parameters import declaration, nesting
from archive.parameters.declaration import declarations
from archive.parameters.domains import Choice, Value, json_text
from archive.parameters.expressions import Expression, ExpressionError
from archive.parameters.feasibility import can_hold
from archive.parameters.leaves import (
    Configuration,
    DeclarationError,
    Parameter,
    check_comparisons,
    combinations,
    draw_prior,
    draw_uniformly,
    flatten,
    names_behind,
    resolve_flat,
    sort,
)
from archive.parameters.model import split_model
from archive.parameters.parser import parse
from archive.parameters.parts import fix_parameters, values_of_others
from archive.values import brief, counted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Codes = NDArray[np.float64]


_DRAWS = 200
"""Draws of whole configurations before a draw is repaired."""

_REPAIRS = 2000
"""Changes of one parameter of a draw that does not meet the constraints, before it is given up."""


class ParameterSpace:
    """The configurations of some parameters. Immutable.

    Args:
        parameters: The parameters and groups by name, where names are given as a mapping.
        constraints: Texts that must not be false in a configuration, as `"width * depth <= 512"`.
        model: Function that builds the network of a configuration, or its reference.
        example: Shape of the model's input, or further forms (`archive.parameters.model.model_of`).
        **named: The parameters and groups by name.

    Attributes:
        declared: The parameters and groups as they were declared.
        parameters: The leaves, each behind those that its conditions read.
        constraints: The constraints.
        model: The model; None for none.
        fixed: Values of the parameters that are constants in this part of the space (`fix`).

    Raises:
        SettingsError: There are no or too many parameters, a name is given twice, a condition reads
            a parameter that does not exist or forms a cycle with others, a comparison is with a
            value that the parameter never has, or no configuration meets the constraints.
    """

    def __init__(
        self,
        parameters: Mapping[str, Any] | None = None,
        /,
        *,
        constraints: Sequence[str] = (),
        model: Any = None,
        example: Any = None,
        **named: Any,
    ) -> None:
        """Check the parameters, and that a configuration exists."""
        self.model, named = split_model(model, example, named)
        by_name = dict(parameters or {})
        for name in named:
            if name in by_name:
                raise DeclarationError(name, f"the parameter {name} is given twice")

        if isinstance(constraints, str):
            raise SettingsError(f"constraints are a list of texts, got {brief(constraints)}")

        self.declared = declarations({**by_name, **named})
        self.parameters = sort(flatten(self.declared))
        self.fixed: dict[str, Value] = {}
        self._by_name = {parameter.name: parameter for parameter in self.parameters}
        resolve = partial(resolve_flat, set(self._by_name))
        self.constraints = tuple(parse(text, resolve) for text in constraints)
        check_comparisons(self._by_name, self.constraints)
        self._check_constraints()

    def __eq__(self, other: object) -> bool:
        """Compare the declarations and the constraints."""
        return isinstance(other, ParameterSpace) and self.json() == other.json()

    def __hash__(self) -> int:
        """Hash the names of the parameters."""
        return hash(self.names)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the declaration."""
        return (ParameterSpace.from_json, (self.json(),))

    def __repr__(self) -> str:
        """Count the parameters."""
        return f"<ParameterSpace of {counted(len(self.parameters), 'parameter')}>"

    def json(self) -> dict[str, Any]:
        """Return the space as a JSON object, which `from_json` reads.

        Parameters are pairs of a name and an object: a database may lose the order of names.
        """
        document: dict[str, Any] = {
            "parameters": [[name, entry.json()] for name, entry in self.declared.items()],
            "constraints": [constraint.text for constraint in self.constraints],
            **(self.model.json() if self.model else {}),
        }
        return {**document, "fixed": dict(self.fixed)} if self.fixed else document

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> ParameterSpace:
        """Return the space of a JSON object.

        Raises:
            SettingsError: It describes none.
        """
        try:
            parameters = {
                name: declaration.from_json(entry) for name, entry in document["parameters"]
            }
            space = cls(
                parameters,
                constraints=document.get("constraints", ()),
                model=document.get("model"),
                example=document.get("example"),
            )
            return space.fix(document["fixed"]) if document.get("fixed") else space
        except (KeyError, TypeError, ValueError):
            raise SettingsError(f"no space of parameters: {brief(dict(document))}") from None

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Flat names of the parameters, in order."""
        return tuple(self._by_name)

    @cached_property
    def option_counts(self) -> tuple[int, ...]:
        """(D,) number of options of each choice without an order; 0 for other parameters."""
        counts = []
        for parameter in self.parameters:
            domain = parameter.domain
            nominal = isinstance(domain, Choice) and not domain.ordered
            counts.append(int(domain.size) if nominal else 0)

        return tuple(counts)

    def __getitem__(self, name: str) -> Parameter:
        """Return a parameter.

        Raises:
            UnknownNameError: The space has none of this name.
        """
        if name not in self._by_name:
            raise UnknownNameError("parameter", name, self.names)

        return self._by_name[name]

    def __len__(self) -> int:
        """Return the number of parameters."""
        return len(self.parameters)

    def existing(self, configuration: Configuration) -> dict[str, Value]:
        """Return the parameters that exist in a configuration with their values, in order.

        Values of parameters that do not exist are left out: what they are has no effect.

        Raises:
            UsageError: A parameter that exists has no value, or one outside its domain.
            UnknownNameError: A name is no parameter of the space.
        """
        for name in configuration:
            if name not in self._by_name:
                raise UnknownNameError("parameter", name, self.names)

        values: dict[str, Value] = {}
        for parameter in self.parameters:
            if not parameter.exists(values):
                continue

            if parameter.name not in configuration:
                raise UsageError(
                    f"{parameter.name} exists in this configuration and needs a value, got none"
                )

            parameter.check(configuration[parameter.name])
            values[parameter.name] = parameter.domain.normal(configuration[parameter.name])

        return values

    def check(self, configuration: Configuration) -> dict[str, Value]:
        """Return what `existing` does, of a configuration that meets the constraints.

        Raises:
            UsageError: As for `existing`, or a constraint is false.
            UnknownNameError: As for `existing`.
        """
        values = self.existing(configuration)
        for constraint in self.constraints:
            if constraint.forbids(values):
                read = {name: values.get(name) for name in constraint.names}
                shown = ", ".join(f"{name}={json.dumps(value)}" for name, value in read.items())
                raise UsageError(f"the configuration does not meet {constraint.text!r}: {shown}")

        return values

    def complete(self, values: Configuration) -> dict[str, Value]:
        """Return a configuration with the given values, and the central ones of the rest.

        Raises:
            UsageError: A value is outside its domain.
            UnknownNameError: A name is no parameter of the space.
        """
        for name, value in values.items():
            self[name].check(value)

        return self._fill(values, lambda parameter: parameter.central)

    def supply(self, values: Configuration) -> dict[str, Value]:
        """Return a configuration with the defaults of parameters that were added after it."""
        supplied = dict(values)
        for parameter in self.parameters:
            missing = parameter.name not in values and parameter.exists(supplied)
            if missing and parameter.is_supplied:
                supplied[parameter.name] = parameter.central

        return supplied

    def fix(self, values: Mapping[str, Any]) -> ParameterSpace:
        """Return the part of the space in which some parameters have one value.

        Args:
            values: Values by flat name, or as a tree.

        Raises:
            UnknownNameError: A name is no parameter.
            UsageError: A value is outside its domain, or no configuration has all values.
        """
        flat = self.flat(values)
        part = self.with_parameters(fix_parameters(self.parameters, flat), self.constraints)
        part.fixed |= {name: part[name].central for name in flat}
        try:
            part._check_constraints()
        except SettingsError as error:
            shown = ", ".join(f"{name}={json_text(value)}" for name, value in part.fixed.items())
            raise UsageError(f"no configuration has {shown}: {error}") from None

        return part

    def only(self, names: Iterable[str], values: Configuration | None = None) -> ParameterSpace:
        """Return the part in which only some parameters vary, the others fixed.

        Args:
            names: Flat names, or names of groups.
            values: Values of the others, such as a good configuration; those without one have their
                central value.

        Raises:
            UnknownNameError: A name is no parameter and no group.
            UsageError: As of `fix`.
        """
        return self.fix(values_of_others(self.parameters, names, {**(values or {}), **self.fixed}))

    def encode(self, configurations: Sequence[Configuration]) -> Codes:
        """Return the codes of n configurations: (n, D) float64, NaN where no parameter exists.

        Raises:
            UsageError: As for `existing`.
        """
        import numpy as np

        codes = np.full((len(configurations), len(self.parameters)), np.nan)
        for row, configuration in zip(codes, configurations, strict=True):
            values = self.existing(configuration)
            for column, parameter in enumerate(self.parameters):
                if parameter.name in values:
                    row[column] = parameter.domain.encode(values[parameter.name])

        return codes

    def decode(self, codes: Codes) -> dict[str, Value]:
        """Return the configuration of one row of codes, (D,).

        A code of NaN of a parameter that exists stands for its central value; codes of others are
        ignored. Constraints are not looked at.
        """
        values: dict[str, Value] = {}
        for column, parameter in enumerate(self.parameters):
            if not parameter.exists(values):
                continue

            code = float(codes[column])
            values[parameter.name] = (
                parameter.central if math.isnan(code) else parameter.domain.decode(code)
            )

        return values

    def nested(self, configuration: Configuration) -> dict[str, Any]:
        """Return a configuration as a model or a training takes it (`archive.parameters.nesting`).

        A group is a dictionary, a repeated one a list of dictionaries. Parameters that do not exist
        are missing.
        """
        return nesting.nest(self.declared, self.parameters, configuration)

    def flat(self, tree: Mapping[str, Any]) -> dict[str, Value]:
        """Return the configuration of what `nested` returns; flat names are accepted as well.

        Raises:
            UnknownNameError: A name is no parameter and no group of the space.
        """
        return nesting.flatten_tree(self._by_name, tree)

    def sample(self, rng: np.random.Generator, *, prior: bool = False) -> dict[str, Value]:
        """Return a random configuration that meets the constraints.

        Each parameter that exists is drawn uniformly on its scale, or from its prior.

        Args:
            rng: Source of every random choice.
            prior: Whether parameters with a prior are drawn from it.

        Raises:
            SettingsError: No draw met the constraints.
        """
        draw = partial(draw_prior if prior else draw_uniformly, rng=rng)
        values: dict[str, Value] = {}
        for _ in range(_DRAWS):
            values = self._fill({}, draw)
            if self.allows(values):
                return values

        return self._repair(values, rng)

    def mutate(self, configuration: Configuration, rng: np.random.Generator) -> dict[str, Value]:
        """Return a configuration that differs in one parameter, and in those that depend on it.

        A number moves by a normal step of a fifth of its scale; another option is drawn.

        Args:
            configuration: A configuration of the space.
            rng: Source of every random choice.

        Raises:
            UsageError: As for `existing`.
        """
        values = self.existing(configuration)
        movable = [self[name] for name in values if self[name].domain.size > 1]
        draw = partial(draw_uniformly, rng=rng)
        for _ in range(_DRAWS if movable else 0):
            parameter = movable[int(rng.integers(len(movable)))]
            moved = parameter.domain.move(values[parameter.name], rng)
            other = self._fill({**values, parameter.name: moved}, draw)
            if json_text(other) != json_text(values) and self.allows(other):
                return other

        return values

    def neighbours(self, configuration: Configuration) -> Iterator[dict[str, Value]]:
        """Yield the configurations with a neighbouring value of one parameter.

        Parameters that begin to exist have their central value.

        Args:
            configuration: A configuration of the space.

        Raises:
            UsageError: As for `existing`.
        """
        values = self.existing(configuration)
        for name, value in values.items():
            for near in self[name].domain.neighbours(value):
                other = self._fill({**values, name: near}, lambda parameter: parameter.central)
                if self.allows(other):
                    yield other

    def allows(self, values: Configuration) -> bool:
        """Return whether the values of all existing parameters meet the constraints."""
        return not any(constraint.forbids(values) for constraint in self.constraints)

    @cached_property
    def size(self) -> float:
        """Number of configurations, conditions and constraints aside; inf with a real."""
        return math.prod(parameter.domain.size for parameter in self.parameters)

    @cached_property
    def has_expectations(self) -> bool:
        """Whether a parameter has a default or a prior."""
        return any(parameter.is_expected for parameter in self.parameters)

    def every(self) -> Iterator[dict[str, Value]]:
        """Yield every configuration once; all domains must be finite.

        The values of the last parameter change fastest.
        """
        seen: set[str] = set()
        for values in combinations(self.parameters):
            text = json_text(values)
            if text not in seen and self.allows(values):
                seen.add(text)
                yield values

    def _fill(self, values: Configuration, make: Any) -> dict[str, Value]:
        """Return the values of all existing parameters, those that are not given made."""
        filled: dict[str, Value] = {}
        for parameter in self.parameters:
            if parameter.exists(filled):
                name = parameter.name
                filled[name] = values[name] if name in values else make(parameter)

        return filled

    def _repair(self, values: dict[str, Value], rng: np.random.Generator) -> dict[str, Value]:
        """Return a configuration that meets the constraints, from one that does not.

        One parameter that a false constraint depends on is drawn again at a time. The draw stays if
        the constraints are no farther from true then, each relative to its distance at the start.
        """
        draw = partial(draw_uniformly, rng=rng)
        scales = [max(constraint.distance(values), 1e-9) for constraint in self.constraints]

        def distances(configuration: Configuration) -> list[float]:
            pairs = zip(self.constraints, scales, strict=True)
            return [constraint.distance(configuration) / scale for constraint, scale in pairs]

        apart = distances(values)
        for _ in range(_REPAIRS):
            broken = [index for index, distance in enumerate(apart) if distance]
            if not broken:
                return values

            constraint = self.constraints[broken[int(rng.integers(len(broken)))]]
            names = sorted(names_behind(self._by_name, constraint) & values.keys())
            name = names[int(rng.integers(len(names)))]
            other = self._fill({**values, name: draw(self[name])}, draw)
            other_apart = distances(other)
            if sum(other_apart) <= sum(apart):
                values = other
                apart = other_apart

        shown = ", ".join(repr(constraint.text) for constraint in self.constraints)
        raise SettingsError(f"no configuration was found that meets the constraints {shown}")

    def _check_constraints(self) -> None:
        """Refuse constraints that no configuration meets."""
        import numpy as np

        rng = np.random.default_rng(0)
        for constraint in self.constraints:
            if not can_hold(self, constraint, rng):
                raise ExpressionError(constraint.text, "no configuration meets it")

        self.sample(rng)

    def with_parameters(
        self, parameters: tuple[Parameter, ...], constraints: tuple[Expression, ...]
    ) -> ParameterSpace:
        """Return a space of these parameters and constraints; nothing is checked."""
        part = ParameterSpace.__new__(ParameterSpace)
        part.declared = self.declared
        part.parameters = parameters
        part.constraints = constraints
        part.model = self.model
        part.fixed = dict(self.fixed)
        part._by_name = {parameter.name: parameter for parameter in parameters}
        return part
