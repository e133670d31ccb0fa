"""Conditions of ConfigSpace from the truth of a condition: a table of values, or a number's scale.

| where it holds                 | condition in ConfigSpace                                      |
|--------------------------------|---------------------------------------------------------------|
| a product of sets of values    | `InCondition` for each set                                    |
| all but such a product         | `OrConjunction` of them                                       |
| between thresholds of a number | `GreaterThanCondition`, `LessThanCondition`                   |
| elsewhere                      | none: the hyperparameter is active too often, and then unused |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import ConfigSpace
import numpy as np
from ConfigSpace.hyperparameters import Hyperparameter
from numpy.typing import NDArray

AnyHyperparameter: TypeAlias = Hyperparameter[Any, Any]
Booleans = NDArray[np.bool_]

_STEPS = 512
"""Places on a number's scale where a condition is evaluated before its thresholds are bisected."""


def values_of(hyperparameter: AnyHyperparameter) -> Sequence[int]:
    """Return the native values of a hyperparameter with few of them."""
    if isinstance(hyperparameter, ConfigSpace.UniformIntegerHyperparameter):
        return range(hyperparameter.lower, hyperparameter.upper + 1)

    return range(int(hyperparameter.size))


def take_values(values: Sequence[int], positions: NDArray[np.int64]) -> list[int]:
    """Return the values at positions."""
    return [values[position] for position in positions.tolist()]


def product_sets(table: Booleans) -> list[NDArray[np.int64]] | None:
    """Return the sets of positions whose product is where a table is true; None if none is."""
    if not table.any():
        return None

    sets = []
    for axis in range(table.ndim):
        others = tuple(other for other in range(table.ndim) if other != axis)
        sets.append(np.flatnonzero(table.any(axis=others)))

    return sets if table[np.ix_(*sets)].all() else None


def conditions_of_table(
    child: AnyHyperparameter,
    parents: Sequence[AnyHyperparameter],
    table: Booleans,
    *,
    complement: bool,
) -> list[Any]:
    """Return conditions that hold together where a table is true; none if there are no such.

    Args:
        child: The hyperparameter that is conditional.
        parents: The hyperparameters of the axes.
        table: Whether the child exists.
        complement: Whether `OrConjunction` may be used: all parents must always exist.
    """
    if table.all():
        return []

    sets = product_sets(table)
    if sets is not None:
        return _in_conditions(child, parents, sets)

    outside = product_sets(~table) if complement else None
    if outside is None:
        return []

    inside = []
    for parent, positions in zip(parents, outside, strict=True):
        inside.append(np.setdiff1d(np.arange(len(values_of(parent))), positions))

    conditions = _in_conditions(child, parents, inside)
    return [conjunction(ConfigSpace.OrConjunction, conditions)]


def _in_conditions(
    child: AnyHyperparameter,
    parents: Sequence[AnyHyperparameter],
    sets: Sequence[NDArray[np.int64]],
) -> list[Any]:
    """Return the conditions that parents have values of sets; a set without effect has none."""
    conditions: list[Any] = []
    for parent, positions in zip(parents, sets, strict=True):
        values = values_of(parent)
        if 0 < len(positions) < len(values):
            conditions.append(
                ConfigSpace.InCondition(child, parent, take_values(values, positions))
            )

    return conditions


def conjunction(kind: Callable[..., Any], parts: Sequence[Any]) -> Any:
    """Return the conjunction of parts, which is the part itself where there is one."""
    return parts[0] if len(parts) == 1 else kind(*parts)


def conditions_between(
    child: AnyHyperparameter, parent: AnyHyperparameter, holds: Callable[[Any], bool]
) -> list[Any]:
    """Return the conditions of a child that exists in one interval of a number."""
    vectors = np.linspace(0.0, 1.0, _STEPS + 1)
    places = [parent.to_value(float(vector)) for vector in vectors]
    truths = [holds(level) for level in places]
    changes = [step for step in range(_STEPS) if truths[step] != truths[step + 1]]
    rising = [step for step in changes if truths[step + 1]]
    falling = [step for step in changes if truths[step]]
    if not changes or len(rising) > 1 or len(falling) > 1:
        return []

    if rising and falling and falling[0] < rising[0]:
        return []

    conditions: list[Any] = []
    for step in rising:
        last, _ = _bisect(places[step], places[step + 1], holds)
        conditions.append(ConfigSpace.GreaterThanCondition(child, parent, last))

    for step in falling:
        _, first = _bisect(places[step], places[step + 1], holds)
        conditions.append(ConfigSpace.LessThanCondition(child, parent, first))

    return conditions


def _bisect(low: Any, high: Any, holds: Callable[[Any], bool]) -> tuple[Any, Any]:
    """Return neighbouring numbers between which a condition changes as it does from low to high."""
    before = holds(low)
    while True:
        middle = (low + high) // 2 if isinstance(low, int) else (low + high) / 2.0
        if middle in (low, high):
            return low, high

        if holds(middle) == before:
            low = middle
        else:
            high = middle
