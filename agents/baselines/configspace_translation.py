"""Spaces in ConfigSpace's terms, which SMAC3 searches: parameters, and named decisions.

| domain   | hyperparameter                                                                |
|----------|-------------------------------------------------------------------------------|
| real     | `UniformFloatHyperparameter`, with its log scale; as an integer, with a step  |
| integer  | `UniformIntegerHyperparameter`, with its log scale; of positions, with a step |
| choice   | `CategoricalHyperparameter` of positions                                      |
| ordinal  | `OrdinalHyperparameter` of positions                                          |

A parameter with one value is no hyperparameter.

A condition is evaluated for all values that it reads, or along the scale of the one number that it
reads (`configspace_conditions`).

A constraint that refuses a product of sets is a forbidden clause. Other constraints are left to
`NativeParameters.allows`. More than one clause for a constraint would make ConfigSpace draw samples
by the square of their number.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, final

import ConfigSpace
import numpy as np
from ConfigSpace.util import deactivate_inactive_hyperparameters

from archive.agents.baselines.configspace_conditions import (
    AnyHyperparameter,
    Booleans,
    conditions_between,
    conditions_of_table,
    conjunction,
    product_sets,
    take_values,
    values_of,
)
from archive.architecture.graph import Architecture
from archive.errors import InvalidArchitectureError
from archive.parameters.domains import Choice, Domain
from archive.parameters.expressions import Expression
from archive.parameters.leaves import Configuration, Parameter
from archive.parameters.ranges import Integer, Real
from archive.spaces.decisions import ABSENT, Decisions
from archive.spaces.parameters import Parameters

Natives = dict[str, Any]
"""Values of hyperparameters by name."""

MOST_CASES = 4096
"""Most combinations of values for which a condition or a constraint is evaluated."""


class NativeSpace(ABC):
    """A space as a `ConfigurationSpace`.

    Attributes:
        configspace: The hyperparameters, conditions and forbidden clauses.
    """

    configspace: ConfigSpace.ConfigurationSpace

    @abstractmethod
    def encode_network(self, architecture: Architecture) -> ConfigSpace.Configuration | None:
        """Return the native form of a network; None if it has none."""

    @abstractmethod
    def decode_network(self, configuration: ConfigSpace.Configuration) -> Architecture | None:
        """Return the network of a native configuration; None if it is no member of the space."""

    @abstractmethod
    def allows(self, configuration: ConfigSpace.Configuration) -> bool:
        """Return whether a local search may visit a native configuration."""


@final
class NativeParameters(NativeSpace):
    """A space of parameters as a `ConfigurationSpace`, and its configurations.

    Args:
        networks: The space.

    Attributes:
        configspace: The hyperparameters, conditions and forbidden clauses.
        space: The parameters.
        constraints: Constraints that ConfigSpace cannot express.
    """

    def __init__(self, networks: Parameters) -> None:
        """Translate the parameters, then their conditions and the constraints."""
        self.networks = networks
        self.space = networks.parameters
        self.configspace = ConfigSpace.ConfigurationSpace()
        space = self.space
        # ConfigSpace refuses a default configuration that a clause forbids.
        default = space.complete({})
        if not space.allows(default):
            default = space.sample(np.random.default_rng(0))

        self._default: Natives = {}
        for parameter in space.parameters:
            if parameter.domain.size > 1:
                value = default.get(parameter.name, parameter.central)
                self._default[parameter.name] = _to_native(parameter.domain, value)

        self.configspace.add(
            [_hyperparameter(space[name], native) for name, native in self._default.items()]
        )
        for name in self._default:
            self._add_conditions(space[name])

        self.constraints: list[Expression] = []
        for constraint in space.constraints:
            clause = self._clause(constraint)
            if clause is None:
                self.constraints.append(constraint)
            else:
                self.configspace.add(clause)

    def encode(self, values: Configuration) -> ConfigSpace.Configuration:
        """Return the native form of a checked configuration."""
        natives = dict(self._default)
        for name, value in values.items():
            if name in natives:
                natives[name] = _to_native(self.space[name].domain, value)

        return deactivate_inactive_hyperparameters(natives, self.configspace)

    def decode(self, configuration: ConfigSpace.Configuration) -> dict[str, Any]:
        """Return the values of a native configuration by flat name, whether allowed or not."""
        values = {}
        for name, native in configuration.items():
            values[name] = _from_native(self.space[name].domain, native)

        return self.space.complete(values)

    def encode_network(self, architecture: Architecture) -> ConfigSpace.Configuration | None:
        """See `NativeSpace.encode_network`."""
        try:
            return self.encode(self.networks.named(architecture))
        except InvalidArchitectureError:
            return None

    def decode_network(self, configuration: ConfigSpace.Configuration) -> Architecture | None:
        """See `NativeSpace.decode_network`."""
        values = self.decode(configuration)
        return self.networks.network_of(values) if self.space.allows(values) else None

    def allows(self, configuration: ConfigSpace.Configuration) -> bool:
        """See `NativeSpace.allows`: only constraints that ConfigSpace lacks are evaluated."""
        if not self.constraints:
            return True

        values = self.decode(configuration)
        return not any(constraint.forbids(values) for constraint in self.constraints)

    def _add_conditions(self, parameter: Parameter) -> None:
        child = self.configspace[parameter.name]
        conditions: list[Any] = []
        for condition in parameter.conditions:
            conditions += self._conditions(child, condition)

        if conditions:
            self.configspace.add(conjunction(ConfigSpace.AndConjunction, conditions))

    def _conditions(self, child: AnyHyperparameter, condition: Expression) -> list[Any]:
        """Return conditions that hold together where one does; none if there are no such."""
        parents = self._searched(condition)
        if parents is None:
            return []

        if len(parents) == 1 and _count(parents) > MOST_CASES:
            holds = self._test(condition, condition.holds)
            return conditions_between(child, self.configspace[parents[0].name], holds)

        table = self._table(condition, parents, condition.holds)
        if table is None:
            return []

        hyperparameters = [self.configspace[parent.name] for parent in parents]
        exist = not any(parent.conditions for parent in parents)
        return conditions_of_table(child, hyperparameters, table, complement=exist)

    def _clause(self, constraint: Expression) -> Any:
        """Return the forbidden clause of a constraint; None if there is no such."""
        parents = self._searched(constraint)
        table = self._table(constraint, parents, constraint.forbids) if parents else None
        sets = None if table is None else product_sets(table)
        if parents is None or sets is None:
            return None

        clauses = []
        for parent, positions in zip(parents, sets, strict=True):
            hyperparameter = self.configspace[parent.name]
            values = take_values(values_of(hyperparameter), positions)
            clauses.append(ConfigSpace.ForbiddenInClause(hyperparameter, values))

        return conjunction(ConfigSpace.ForbiddenAndConjunction, clauses)

    def _searched(self, expression: Expression) -> list[Parameter] | None:
        """Return the hyperparameters that an expression reads.

        None if it reads a parameter with one value that does not always exist.
        """
        searched = []
        for name in expression.names:
            parameter = self.space[name]
            if name in self._default:
                searched.append(parameter)
            elif parameter.conditions:
                return None

        return searched

    def _test(
        self, expression: Expression, test: Callable[[Configuration], bool]
    ) -> Callable[..., bool]:
        """Return a test of an expression as a function of the natives that it reads, in order."""
        fixed = {name: self.space[name].central for name in expression.names}
        searched = [name for name in expression.names if name in self._default]

        def holds(*natives: Any) -> bool:
            values = dict(fixed)
            for name, native in zip(searched, natives, strict=True):
                values[name] = _from_native(self.space[name].domain, native)

            return test(values)

        return holds

    def _table(
        self,
        expression: Expression,
        parents: Sequence[Parameter],
        test: Callable[[Configuration], bool],
    ) -> Booleans | None:
        """Return a test for all values of parents, an axis each; None if there are too many."""
        if _count(parents) > MOST_CASES:
            return None

        holds = self._test(expression, test)
        values = [values_of(self.configspace[parent.name]) for parent in parents]
        truths = [holds(*case) for case in product(*values)]
        return np.array(truths, np.bool_).reshape([len(options) for options in values])


@final
class NativeDecisions(NativeSpace):
    """Named decisions of a space as a `ConfigurationSpace`, and its networks.

    A decision exists by the root decisions and by the one before it. Decisions of spaces without
    roots always have a choice, the first where it has no effect.

    Args:
        decisions: The decisions.

    Attributes:
        configspace: The hyperparameters and conditions.
    """

    def __init__(self, decisions: Decisions) -> None:
        """Translate the decisions."""
        self.decisions = decisions
        self.configspace = ConfigSpace.ConfigurationSpace()
        for position in range(len(decisions.decisions)):
            self._add(position)

    def encode_network(self, architecture: Architecture) -> ConfigSpace.Configuration | None:
        """See `NativeSpace.encode_network`: a network without decisions has none."""
        vector = self.decisions.encode(architecture)
        if vector is None:
            return None

        natives = {}
        for decision, choice in zip(self.decisions.decisions, vector, strict=True):
            if decision.name in self.configspace:
                natives[decision.name] = max(choice, 0)

        return deactivate_inactive_hyperparameters(natives, self.configspace)

    def decode_network(self, configuration: ConfigSpace.Configuration) -> Architecture | None:
        """See `NativeSpace.decode_network`."""
        vector: list[int] = []
        for decision in self.decisions.decisions:
            if self.decisions.roots and not self.decisions.needed(vector):
                vector.append(ABSENT)
            elif decision.name in configuration or decision.name not in self.configspace:
                vector.append(int(configuration.get(decision.name, 0)))
            else:
                return None

        return self.decisions.decode(tuple(vector))

    def allows(self, configuration: ConfigSpace.Configuration) -> bool:
        """See `NativeSpace.allows`: true, as a local search would build thousands of networks."""
        del configuration
        return True

    def _add(self, position: int) -> None:
        """Add the hyperparameter of a decision, unless it never exists or has one choice."""
        decision = self.decisions.decisions[position]
        values = range(len(decision.choices))
        parents = self._parents(position)
        table = np.ones((), np.bool_)
        if self.decisions.roots:
            table = self._table(position, parents)

        if len(values) < 2 or not table.any():
            return

        kind = ConfigSpace.OrdinalHyperparameter if decision.ordered else _categorical
        child = kind(decision.name, list(values))
        self.configspace.add(child)
        names = [self.decisions.decisions[parent].name for parent in parents]
        hyperparameters = [self.configspace[name] for name in names]
        conditions = conditions_of_table(child, hyperparameters, table, complement=False)
        if conditions:
            self.configspace.add(conjunction(ConfigSpace.AndConjunction, conditions))

    def _parents(self, position: int) -> list[int]:
        """Return the positions of the decisions by which another one exists."""
        if not self.decisions.roots:
            return []

        before = {
            *range(min(self.decisions.roots, position)),
            *range(max(position - 1, 0), position),
        }
        parents = []
        for parent in sorted(before):
            if self.decisions.decisions[parent].name in self.configspace:
                parents.append(parent)

        return parents

    def _table(self, position: int, parents: Sequence[int]) -> Booleans:
        """Return whether a decision exists, for all choices of its parents."""
        counts = [len(self.decisions.decisions[parent].choices) for parent in parents]
        truths = []
        for case in product(*map(range, counts)):
            prefix = [0] * position
            for parent, choice in zip(parents, case, strict=True):
                prefix[parent] = choice

            truths.append(self.decisions.needed(prefix))

        return np.array(truths, np.bool_).reshape(counts)


def _hyperparameter(parameter: Parameter, default: Any) -> AnyHyperparameter:
    domain = parameter.domain
    name = parameter.name
    if isinstance(domain, Choice):
        positions = list(range(domain.size))
        if domain.ordered:
            return ConfigSpace.OrdinalHyperparameter(name, positions, default_value=default)

        return _categorical(name, positions, default)

    assert isinstance(domain, Integer | Real), "a constant is no hyperparameter"
    if isinstance(domain, Integer) or domain.step is not None:
        low = _to_native(domain, domain.low)
        high = low + int(domain.size) - 1
        return ConfigSpace.UniformIntegerHyperparameter(name, low, high, default, log=domain.log)

    return ConfigSpace.UniformFloatHyperparameter(
        name, domain.low, domain.high, default, log=domain.log
    )


def _categorical(name: str, positions: Sequence[int], default: int = 0) -> AnyHyperparameter:
    return ConfigSpace.CategoricalHyperparameter(name, positions, default_value=default)


def _to_native(domain: Domain, value: Any) -> Any:
    if isinstance(domain, Choice):
        return domain.position(value)

    assert isinstance(domain, Integer | Real), "a constant is no hyperparameter"
    step = _position_step(domain)
    return round((value - domain.low) / step) if step else value


def _from_native(domain: Domain, native: Any) -> Any:
    if isinstance(domain, Choice):
        return domain.options[int(native)]

    assert isinstance(domain, Integer | Real), "a constant is no hyperparameter"
    step = _position_step(domain)
    if step:
        return domain.normal(domain.low + int(native) * step)

    # The vectors of ConfigSpace are rounded: a bound may come back a little beyond itself.
    return domain.normal(min(max(native, domain.low), domain.high))


def _position_step(domain: Integer | Real) -> float | None:
    """Return the step of numbers that are positions in ConfigSpace; None for other numbers."""
    if isinstance(domain, Integer):
        return domain.step if domain.step > 1 else None

    return domain.step


def _count(parents: Sequence[Parameter]) -> float:
    return math.prod(parent.domain.size for parent in parents)
