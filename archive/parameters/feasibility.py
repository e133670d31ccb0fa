"""Whether a constraint on parameters can hold in some configuration."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from archive.errors import SettingsError
from archive.parameters.expressions import Expression, ExpressionError
from archive.parameters.leaves import combinations, names_behind

if TYPE_CHECKING:
    import numpy as np

if TYPE_CHECKING:
    from archive.parameters.parameter_space import ParameterSpace

_MOST_ENUMERATED = 20_000
"""Most combinations of the parameters of a constraint that are tried one by one."""


def can_hold(space: ParameterSpace, constraint: Expression, rng: np.random.Generator) -> bool:
    """Return whether a configuration is found in which a constraint is not false.

    All combinations of the parameters that it depends on are tried where they are few, else
    random ones and changes of these.
    """
    names = names_behind({parameter.name: parameter for parameter in space.parameters}, constraint)
    involved = [parameter for parameter in space.parameters if parameter.name in names]
    count = math.prod(parameter.domain.size for parameter in involved)
    if count <= _MOST_ENUMERATED:
        return any(not constraint.forbids(values) for values in combinations(involved))

    only = space.with_parameters(tuple(involved), (constraint,))
    try:
        only.sample(rng)
    except ExpressionError:
        raise
    except SettingsError:
        return False

    return True
