"""Parts of a space: some parameters have one value, and the others are searched.

The declaration stays whole: a configuration of the part is one of the space, with the same network.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from archive.errors import UnknownNameError, UsageError
from archive.parameters.declaration import NO_DEFAULT
from archive.parameters.domains import Constant, Value
from archive.parameters.leaves import Configuration, Parameter


def fix_parameters(
    parameters: Sequence[Parameter], values: Mapping[str, Value]
) -> tuple[Parameter, ...]:
    """Return parameters, those with a given value as constants of it.

    Args:
        parameters: The parameters of a space.
        values: Values by flat name, of parameters of the space.

    Raises:
        UsageError: A value is outside the domain of its parameter.
    """
    fixed = []
    for parameter in parameters:
        if parameter.name not in values:
            fixed.append(parameter)
            continue

        parameter.check(values[parameter.name])
        constant = Constant(parameter.domain.normal(values[parameter.name]))
        fixed.append(replace(parameter, domain=constant, default=NO_DEFAULT, prior=None))

    return tuple(fixed)


def values_of_others(
    parameters: Sequence[Parameter], searched: Iterable[str], values: Configuration
) -> dict[str, Value]:
    """Return the values at which a search of some parameters keeps all others.

    Args:
        parameters: The parameters of a space.
        searched: Flat names of the searched ones, or names of groups for all that are in them.
        values: Values of the others by flat name; without one, a parameter has its central value.

    Raises:
        UnknownNameError: A name is no parameter and no group.
        UsageError: There is no name.
    """
    names = dict.fromkeys(searched)
    if not names:
        raise UsageError("a part of a space has one parameter or more to search, got none")

    groups: set[str] = set()
    for parameter in parameters:
        groups.update(step for step in parameter.path[:-1] if isinstance(step, str))

    fixed = {parameter.name for parameter in parameters} | groups
    for name in names:
        if name not in fixed:
            raise UnknownNameError("parameter", name, sorted(fixed))

    others = {}
    for parameter in parameters:
        if parameter.name not in names and not names.keys() & set(parameter.path):
            others[parameter.name] = values.get(parameter.name, parameter.central)

    return others
