"""Configurations of one space as configurations of another one that shares parameters with it.

| parameter                                   | its value in the other space                        |
|---------------------------------------------|-----------------------------------------------------|
| shared: in both under one name, with values | its value; a configuration with a value that the    |
| in common                                   | other space lacks is left out                       |
| new                                         | its default, or central value                       |
| vanished                                    | dropped                                             |
"""

from __future__ import annotations

from archive.errors import UsageError
from archive.parameters.domains import Choice, Constant, Domain, Value
from archive.parameters.leaves import Configuration
from archive.parameters.parameter_space import ParameterSpace


def shared_names(old: ParameterSpace, new: ParameterSpace) -> list[str]:
    """Return the names of parameters that have values in common in two spaces, in order.

    Constants tell nothing apart, and are left out.
    """
    names = []
    for parameter in old.parameters:
        if parameter.name not in new.names:
            continue

        other = new[parameter.name].domain
        constant = isinstance(parameter.domain, Constant) and isinstance(other, Constant)
        if not constant and _overlap(parameter.domain, other):
            names.append(parameter.name)

    return names


def carry(space: ParameterSpace, values: Configuration, names: set[str]) -> dict[str, Value] | None:
    """Return the configuration of a space that has the shared values of another configuration.

    Args:
        space: The space.
        values: A configuration of another space.
        names: Names of the shared parameters.

    Returns:
        The configuration; None if a value is outside its domain, or the constraints forbid it.
    """
    shared = {name: value for name, value in values.items() if name in names}
    try:
        completed = space.complete(shared)
    except UsageError:
        return None

    checked = {name: space[name].domain.normal(value) for name, value in completed.items()}
    return checked if space.allows(checked) else None


def _overlap(first: Domain, second: Domain) -> bool:
    """Return whether two domains have a value in common; of ranges, whether they overlap."""
    if isinstance(first, Choice | Constant):
        return any(_has(second, value) for value in first.values())

    if isinstance(second, Choice | Constant):
        return any(_has(first, value) for value in second.values())

    return max(first.low, second.low) <= min(first.high, second.high)


def _has(domain: Domain, value: Value) -> bool:
    try:
        domain.check(value)
    except UsageError:
        return False

    return True
