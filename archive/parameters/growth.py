"""Growth of a space: what a study's space may become without losing its history.

| change                                                 | allowed                                    |
|--------------------------------------------------------|--------------------------------------------|
| wider bounds, a finer step that keeps the old values   | yes                                        |
| new options, the old ones in their order               | yes                                        |
| a constant that becomes searched                       | yes, if its value remains one              |
| a new parameter with a default                         | yes: earlier results have the default      |
| a new parameter whose condition earlier results do not | yes: earlier results do not have it        |
| meet, as one of a new option                           |                                            |
| further repetitions of a group                         | yes: earlier results do not have them      |
| a parameter that is missing, narrower or conditional   | no                                         |
| another scale, default or prior of a parameter         | no                                         |
| other constraints, another model                       | no                                         |

Two copies of a study may have grown apart. Their spaces have a *join*: the smallest space that both
may become.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

from archive.errors import SettingsError, UsageError
from archive.parameters.declaration import NO_DEFAULT, Declaration, Group
from archive.parameters.domains import Choice, Constant, Domain, Value, json_text
from archive.parameters.expressions import Expression
from archive.parameters.leaves import DeclarationError, Parameter
from archive.parameters.parameter_space import ParameterSpace
from archive.parameters.ranges import Integer, Real

_MOST_COMBINATIONS = 20_000
"""Most combinations of earlier values with which a condition of a new parameter is tried."""


def check_growth(old: ParameterSpace, new: ParameterSpace) -> None:
    """Check that every configuration of a space is one of another, where defaults complete it.

    Raises:
        DeclarationError: It is not; the message names the first parameter that differs.
        SettingsError: The constraints differ.
    """
    for parameter in old.parameters:
        if parameter.name not in new.names:
            raise DeclarationError(parameter.name, f"the parameter {parameter.name} is missing")

        fault = _change_of(parameter, new[parameter.name])
        if fault:
            raise DeclarationError(parameter.name, f"{parameter.name} {fault}")

    repeated = {_pattern(parameter) for parameter in old.parameters}
    for parameter in new.parameters:
        if parameter.name in old.names or parameter.is_supplied:
            continue

        if _pattern(parameter) not in repeated and _may_exist(parameter, old, new):
            raise DeclarationError(
                parameter.name,
                f"the new parameter {parameter.name} needs a default, its value in earlier results",
            )

    if old.model != new.model:
        raise SettingsError("the model or its example is another one")

    before = sorted(constraint.text for constraint in old.constraints)
    after = sorted(constraint.text for constraint in new.constraints)
    if before != after:
        differing = sorted(set(before) ^ set(after)) or after
        raise SettingsError(f"the constraint {differing[0]!r} is new or missing")


def join(first: ParameterSpace, second: ParameterSpace) -> ParameterSpace:
    """Return the smallest space that two spaces may grow into, in whichever order they are given.

    If one may become the other, it is the other one.

    Raises:
        DeclarationError: There is none; the message names the first parameter that differs.
        SettingsError: The constraints or the models differ.
    """
    first, second = sorted((first, second), key=lambda space: json_text(space.json()))
    for small, large in ((second, first), (first, second)):
        if _may_become(small, large):
            return large

    members = _join_members(first.declared, second.declared)
    parameters = [[name, entry.json()] for name, entry in members.items()]
    joined = ParameterSpace.from_json({**first.json(), "parameters": parameters})
    check_growth(first, joined)
    check_growth(second, joined)
    return joined


def _may_become(old: ParameterSpace, new: ParameterSpace) -> bool:
    try:
        check_growth(old, new)
    except SettingsError:
        return False

    return True


def _join_members(
    first: Mapping[str, Declaration | Group], second: Mapping[str, Declaration | Group]
) -> dict[str, Declaration | Group]:
    """Return the parameters and groups of both; names of the second alone are last."""
    joined = {**first}
    for name, entry in second.items():
        joined[name] = _join_entries(name, first[name], entry) if name in first else entry

    return joined


def _join_entries(
    name: str, first: Declaration | Group, second: Declaration | Group
) -> Declaration | Group:
    if isinstance(first, Group) and isinstance(second, Group):
        count = first.count
        if isinstance(count, int) and isinstance(second.count, int):
            count = max(count, second.count)

        return Group(_join_members(first.parameters, second.parameters), count, first.when)

    if isinstance(first, Group) or isinstance(second, Group):
        raise DeclarationError(name, f"{name} is a group in one of the spaces only")

    domain = _join_domains(first.domain, second.domain)
    return Declaration(domain, first.when, first.default, first.prior)


def _join_domains(first: Domain, second: Domain) -> Domain:
    """Return a domain with the values of both; `check_growth` refuses what does not fit."""
    if isinstance(first, Constant):
        return second

    if isinstance(first, Choice) and isinstance(second, Choice) and not first.ordered:
        new = [option for option in second.options if first.position(option) is None]
        return Choice((*first.options, *new))

    if isinstance(first, Choice) and isinstance(second, Choice):
        return max(first, second, key=lambda choice: len(choice.options))

    if isinstance(first, Integer) and isinstance(second, Integer):
        step = math.gcd(first.step, second.step, first.low - second.low)
        high = max(first.high, second.high)
        return Integer(min(first.low, second.low), high, step, first.log)

    if isinstance(first, Real) and isinstance(second, Real):
        bounds = min(first.low, second.low), max(first.high, second.high)
        return Real(*bounds, first.log, _join_steps(first, second))

    return first


def _join_steps(first: Real, second: Real) -> float | None:
    """Return the largest step whose grid has the values of both; None if one has no step."""
    if first.step is None or second.step is None:
        return None

    steps = [Fraction(repr(step)) for step in (first.step, second.step, first.low, second.low)]
    offset = steps[2] - steps[3]
    denominator = math.lcm(steps[0].denominator, steps[1].denominator, offset.denominator)
    wholes = [int(step * denominator) for step in (steps[0], steps[1], offset)]
    return float(Fraction(math.gcd(*wholes), denominator))


def _may_exist(parameter: Parameter, old: ParameterSpace, new: ParameterSpace) -> bool:
    """Return whether a new parameter may exist in a configuration of the old space."""
    return all(_may_hold(condition, old, new) for condition in parameter.conditions)


def _may_hold(condition: Expression, old: ParameterSpace, new: ParameterSpace) -> bool:
    """Return whether a condition may hold in a configuration of the old space.

    New parameters have their defaults there; those without one are missing.
    """
    values: dict[str, Sequence[Value]] = {}
    for name in condition.names:
        if name in old.names:
            domain = old[name].domain
            if domain.size > _MOST_COMBINATIONS:
                return True

            values[name] = domain.values()
        elif new[name].is_supplied:
            values[name] = [new[name].central]
        elif _may_exist(new[name], old, new):
            return True

    if math.prod(map(len, values.values())) > _MOST_COMBINATIONS:
        return True

    rows = product(*values.values())
    return any(condition.holds(dict(zip(values, row, strict=True))) for row in rows)


def _pattern(parameter: Parameter) -> tuple[str | int, ...]:
    """Return the path of a parameter without the number of its repetition."""
    return tuple(0 if isinstance(step, int) else step for step in parameter.path)


def _change_of(old: Parameter, new: Parameter) -> str | None:
    """Return what a growing space must not change of a parameter; None if it may."""
    if [condition.text for condition in old.conditions] != [
        condition.text for condition in new.conditions
    ]:
        return "has another condition"

    if isinstance(old.domain, Constant):
        return _change_of_constant(old.domain, new.domain)

    if json_text(_expectation(old)) != json_text(_expectation(new)):
        return "has another default or prior"

    return _change_of_domain(old.domain, new.domain)


def _expectation(parameter: Parameter) -> list[Any]:
    default = None if parameter.default is NO_DEFAULT else [parameter.default]
    prior = parameter.prior
    return [default, None if prior is None else [prior.value, prior.confidence]]


def _change_of_constant(old: Constant, new: Domain) -> str | None:
    try:
        new.check(old.value)
    except UsageError:
        return f"no longer has the value {json_text(old.value)}"

    return None


def _change_of_domain(old: Domain, new: Domain) -> str | None:
    if isinstance(old, Choice) and isinstance(new, Choice):
        return _change_of_options(old, new)

    if isinstance(old, Integer) and isinstance(new, Integer):
        kept = old.step % new.step == 0 and (old.low - new.low) % new.step == 0
        if not kept:
            return f"has other steps: {old.step} from {old.low}, got {new.step} from {new.low}"
    elif isinstance(old, Real) and isinstance(new, Real):
        if not _keeps_grid(old, new):
            return f"has other steps: {_show_steps(old)}, got {_show_steps(new)}"
    else:
        return f"is of another kind: {old.kind}, got {new.kind}"

    if old.log != new.log:
        return "has another scale: log differs"

    if new.low > old.low or new.high < old.high:
        return f"has narrower bounds: {old.low:g} to {old.high:g}, got {new.low:g} to {new.high:g}"

    return None


def _keeps_grid(old: Real, new: Real) -> bool:
    """Return whether the values of a real are on the grid of another one."""
    if new.step is None or old.step is None:
        return new.step is None

    step = Decimal(repr(new.step))
    offset = Decimal(repr(old.low)) - Decimal(repr(new.low))
    return Decimal(repr(old.step)) % step == 0 and offset % step == 0


def _show_steps(domain: Real) -> str:
    return "none" if domain.step is None else f"{domain.step:g} from {domain.low:g}"


def _change_of_options(old: Choice, new: Choice) -> str | None:
    if old.ordered != new.ordered:
        return "is no longer ordered" if old.ordered else "is ordered now"

    positions = [new.position(option) for option in old.options]
    for option, position in zip(old.options, positions, strict=True):
        if position is None:
            return f"no longer has the option {json_text(option)}"

    options = [position for position in positions if position is not None]
    if old.ordered and options != sorted(options):
        return "has its options in another order"

    return None
