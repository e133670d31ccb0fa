"""The parameters of a space: the leaves of a declaration, each behind those that it depends on.

A repeated group `stage` with a parameter `op` has the leaves `stage_1_op`, `stage_2_op`, …. A
condition within a group reads the names of its repetition first, then the names of the groups around
it, then flat names.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, product
from typing import TYPE_CHECKING

from archive.errors import SettingsError, UsageError
from archive.parameters.declaration import (
    CONFIDENCES,
    MOST_REPEATS,
    NO_DEFAULT,
    Declaration,
    Group,
    Prior,
)
from archive.parameters.domains import Choice, Constant, Domain, Value
from archive.parameters.expressions import Expression, ExpressionError
from archive.parameters.parser import parse
from archive.parameters.ranges import Integer, Real
from archive.values import brief, is_number

if TYPE_CHECKING:
    import numpy as np

Configuration = Mapping[str, Value]
"""Values by the flat names of parameters."""

MOST_PARAMETERS = 2000
"""Most parameters of a space, repetitions counted."""


class DeclarationError(SettingsError):
    """A parameter that contradicts the others.

    Attributes:
        parameter: Its name.
    """

    def __init__(self, parameter: str, fault: str) -> None:
        """Keep the name beside the message."""
        self.parameter = parameter
        super().__init__(fault)


@dataclass(frozen=True)
class Parameter:
    """A leaf of a declaration.

    Attributes:
        name: Flat name, different in one space.
        path: Names of the groups around it with the numbers of repetitions, from 1, then its name.
        domain: Its values.
        conditions: Conditions that must all hold for it to exist, with the conditions of its groups.
        default: Value where it is not searched; `NO_DEFAULT` for none.
        prior: Where the best value is expected.
    """

    name: str
    path: tuple[str | int, ...]
    domain: Domain
    conditions: tuple[Expression, ...] = ()
    default: Value = NO_DEFAULT
    prior: Prior | None = None

    def exists(self, values: Configuration) -> bool:
        """Return whether it exists beside the values of the parameters before it."""
        return all(condition.holds(values) for condition in self.conditions)

    @property
    def is_expected(self) -> bool:
        """Whether a default or a prior says where its best value may be."""
        return self.default is not NO_DEFAULT or self.prior is not None

    @property
    def is_supplied(self) -> bool:
        """Whether a configuration without a value of it has a certain one."""
        return self.default is not NO_DEFAULT or isinstance(self.domain, Constant)

    def check(self, value: Value) -> None:
        """Check that a value is in the domain.

        Raises:
            UsageError: It is not; the message names the parameter.
        """
        try:
            self.domain.check(value)
        except UsageError as error:
            raise UsageError(f"{self.name} {error}") from None

    @property
    def central(self) -> Value:
        """The default; without one, the value of the prior, or the middle of the domain."""
        if self.default is not NO_DEFAULT:
            return self.default

        if self.prior is not None:
            return self.prior.value

        is_nominal = isinstance(self.domain, Choice) and not self.domain.ordered
        return self.domain.decode(0.0 if is_nominal else 0.5)


@dataclass(frozen=True)
class _Scope:
    """The names that a condition can read: of its group, then of the groups around it."""

    prefix: str
    members: Mapping[str, Declaration | Group]
    outer: _Scope | None

    def resolve(self, name: str) -> str | None:
        """Return the flat name of a parameter, None if no scope has it."""
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.members:
                return f"{scope.prefix}{name}"

            scope = scope.outer

        return None


@dataclass(frozen=True)
class _Leaf:
    """A declaration with its place, before its conditions are read."""

    name: str
    path: tuple[str | int, ...]
    entry: Declaration
    conditions: tuple[tuple[str, _Scope], ...]
    scope: _Scope


def flatten(declared: Mapping[str, Declaration | Group]) -> list[Parameter]:
    """Return the leaves of a declaration in its order.

    Raises:
        SettingsError: There are too many, a name is given twice, or a condition reads a name that
            is none.
    """
    top = _Scope("", declared, None)
    leaves: list[_Leaf] = []
    for leaf in _leaves(top, (), ()):
        leaves.append(leaf)
        if len(leaves) > MOST_PARAMETERS:
            raise SettingsError(f"a space has at most {MOST_PARAMETERS:,} parameters")

    names: set[str] = set()
    for leaf in leaves:
        if leaf.name in names:
            raise DeclarationError(leaf.name, f"the parameter {leaf.name} is given twice")

        names.add(leaf.name)

    parameters = []
    for leaf in leaves:
        texts = list(leaf.conditions)
        if leaf.entry.when is not None:
            texts.append((leaf.entry.when, leaf.scope))

        conditions = []
        for text, scope in texts:
            condition = parse(text, partial(_resolve, scope, names))
            conditions.append(condition)

        entry = leaf.entry
        parameters.append(
            Parameter(
                name=leaf.name,
                path=leaf.path,
                domain=entry.domain,
                conditions=tuple(conditions),
                default=entry.default,
                prior=entry.prior,
            )
        )

    return parameters


def _leaves(
    scope: _Scope,
    path: tuple[str | int, ...],
    conditions: tuple[tuple[str, _Scope], ...],
) -> Iterator[_Leaf]:
    for name, entry in scope.members.items():
        inner_path = (*path, name)
        if isinstance(entry, Declaration):
            yield _Leaf(f"{scope.prefix}{name}", inner_path, entry, conditions, scope)
            continue

        inside = conditions if entry.when is None else (*conditions, (entry.when, scope))
        if entry.count is None:
            inner = _Scope(f"{scope.prefix}{name}_", entry.parameters, scope)
            yield from _leaves(inner, inner_path, inside)
            continue

        for number in range(1, _most_repeats(name, entry.count, scope) + 1):
            repeated = inside
            if isinstance(entry.count, str):
                repeated = (*inside, (f"{entry.count} >= {number}", scope))

            inner = _Scope(f"{scope.prefix}{name}_{number}_", entry.parameters, scope)
            yield from _leaves(inner, (*inner_path, number), repeated)


def _most_repeats(name: str, count: int | str, scope: _Scope) -> int:
    """Return how often a group is repeated at most.

    Raises:
        SettingsError: Its count is no parameter of whole numbers, or is too large.
    """
    if isinstance(count, int):
        return count

    declared: Declaration | Group | None = None
    around: _Scope | None = scope
    while around is not None and declared is None:
        declared = around.members.get(count)
        around = around.outer

    if not isinstance(declared, Declaration):
        raise DeclarationError(name, f"{name} is repeated {count!r} times, which is no parameter")

    domain = declared.domain
    bounds: list[Value]
    if isinstance(domain, Integer):
        bounds = [domain.low, domain.high]
    elif isinstance(domain, Choice):
        bounds = list(domain.options)
    else:
        bounds = [domain.value if isinstance(domain, Constant) else domain.low]

    for bound in bounds:
        if not isinstance(bound, int) or isinstance(bound, bool) or bound < 0:
            raise DeclarationError(
                name,
                f"{name} is repeated {count} times, "
                f"which must be whole numbers from 0, got {brief(bound)}",
            )

    most: int = max(bounds)
    if most > MOST_REPEATS:
        raise DeclarationError(
            name, f"{name} is repeated {count} times, which is at most {MOST_REPEATS}, got {most}"
        )

    return most


def _resolve(scope: _Scope, names: set[str], name: str) -> str | None:
    """Return the flat name of a parameter that a condition of a group reads."""
    return resolve_flat(names, scope.resolve(name) or name)


def resolve_flat(names: set[str], name: str) -> str | None:
    """Return a flat name, None if it names no parameter."""
    return name if name in names else None


def sort(parameters: Sequence[Parameter]) -> tuple[Parameter, ...]:
    """Return parameters behind those that their conditions read, otherwise in their order.

    Raises:
        SettingsError: Conditions form a cycle; the message names it.
    """
    position_of = {parameter.name: position for position, parameter in enumerate(parameters)}
    waiting: list[set[int]] = []
    readers: list[list[int]] = [[] for _ in parameters]
    for position, parameter in enumerate(parameters):
        read = {position_of[name] for name in _read_names(parameter)}
        waiting.append(read)
        for other in read:
            readers[other].append(position)

    ready = [position for position, read in enumerate(waiting) if not read]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        position = heapq.heappop(ready)
        order.append(position)
        for reader in readers[position]:
            waiting[reader].discard(position)
            if not waiting[reader]:
                heapq.heappush(ready, reader)

    if len(order) < len(parameters):
        cycle = _find_cycle(parameters, position_of, set(order))
        raise DeclarationError(cycle[0], f"conditions form a cycle: {' -> '.join(cycle)}")

    return tuple(parameters[position] for position in order)


def _read_names(parameter: Parameter) -> Iterable[str]:
    for condition in parameter.conditions:
        yield from condition.names


def _find_cycle(
    parameters: Sequence[Parameter], position_of: Mapping[str, int], placed: set[int]
) -> list[str]:
    """Return the names along a cycle, the first again at the end."""
    position = next(index for index in range(len(parameters)) if index not in placed)
    walk: list[int] = []
    while position not in walk:
        walk.append(position)
        for name in _read_names(parameters[position]):
            if position_of[name] not in placed:
                position = position_of[name]
                break

    cycle = [*walk[walk.index(position) :], position]
    return [parameters[index].name for index in cycle]


def combinations(parameters: Sequence[Parameter]) -> Iterator[dict[str, Value]]:
    """Yield all configurations of parameters with finite domains, some of them more than once."""
    for values in product(*(parameter.domain.values() for parameter in parameters)):
        configuration: dict[str, Value] = {}
        for parameter, value in zip(parameters, values, strict=True):
            if parameter.exists(configuration):
                configuration[parameter.name] = value

        yield configuration


def draw_uniformly(parameter: Parameter, rng: np.random.Generator) -> Value:
    """Draw from the domain of a parameter."""
    return parameter.domain.sample(rng)


def draw_prior(parameter: Parameter, rng: np.random.Generator) -> Value:
    """Draw from the prior of a parameter, uniformly where it has none."""
    if parameter.prior is None:
        return parameter.domain.sample(rng)

    width = CONFIDENCES[parameter.prior.confidence]
    return parameter.domain.sample_near(parameter.prior.value, width, rng)


def names_behind(parameters: Mapping[str, Parameter], expression: Expression) -> set[str]:
    """Return the parameters that an expression depends on, through conditions too.

    Args:
        parameters: Parameters by flat name.
        expression: The expression.
    """
    reached: set[str] = set()
    names = list(expression.names)
    while names:
        name = names.pop()
        if name not in reached:
            reached.add(name)
            for condition in parameters[name].conditions:
                names += condition.names

    return reached


def check_comparisons(
    parameters: Mapping[str, Parameter], constraints: Iterable[Expression]
) -> None:
    """Check the comparisons with constants in all conditions and constraints.

    Args:
        parameters: The parameters by name.
        constraints: The constraints.

    Raises:
        ExpressionError: A parameter never has a value that it is compared with, or its values have
            no order.
    """
    conditions = chain.from_iterable(parameter.conditions for parameter in parameters.values())
    for expression in chain(conditions, constraints):
        for comparison in expression.comparisons:
            domain = parameters[comparison.name].domain
            for value in comparison.values:
                fault = _fault_of_comparison(domain, value, comparison.ordered)
                if fault:
                    raise ExpressionError(
                        expression.text, f"{comparison.name} {fault}", comparison.column
                    )


def _fault_of_comparison(domain: Domain, value: Value, ordered: bool) -> str:
    """Return why a comparison with a value makes no sense; empty where it does."""
    if isinstance(domain, Integer | Real):
        return "" if is_number(value) else f"is a number, and never {brief(value)}"

    if isinstance(domain, Choice) and ordered:
        numbers = all(map(is_number, domain.options))
        return "" if numbers and is_number(value) else "has options without an order"

    try:
        domain.check(value)
    except UsageError as error:
        return str(error)

    return ""
