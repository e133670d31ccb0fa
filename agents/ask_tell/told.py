"""Validation of a told result: the objectives of the study, and the quantities of its constraints.

A quantity with a known cost is a function of the network: it need not be told, its value on record
is that of the function, and a told value must agree with it. Where the function returns NaN, the
told value counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from archive.agents.ask_tell.types import Told, numbers_of, real, values_of
from archive.architecture.graph import Architecture
from archive.errors import UsageError
from archive.known_costs import KnownCosts, computed

if TYPE_CHECKING:
    from archive.store.records import Study


TOLERANCE = 1e-6
"""Relative difference of a told value from a known cost that counts as rounding, such as that of a
float32."""


def checked(
    record: Study,
    told: Told,
    metrics: Mapping[str, float],
    network: Callable[[], Architecture],
    costs: KnownCosts,
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the values of a study's objectives by name, and all metrics of the result.

    Where a told objective is not finite, there is no result: other objectives and constrained
    metrics may be missing.

    Args:
        record: The study.
        told: What the caller told, see `archive.agents.ask_tell.study.AskTellStudy.tell`.
        metrics: Further metrics that were told.
        network: Returns the network; called where a quantity of the study has a known cost.
        costs: Known costs.

    Raises:
        UsageError: An objective or a constrained metric has no value although the objectives told
            are finite, a value is not a number or contradicts a known cost, or a name is neither;
            or a known cost is not one number for each network.
    """
    objectives = [each.name for each in record.objectives]
    constrained = [each.name for each in record.constraints if each.name not in objectives]
    known = _known([*objectives, *constrained], network, costs)
    further = numbers_of(metrics)
    if isinstance(told, Mapping):
        further |= {name: real(told[name], name) for name in constrained if name in told}
        told = {name: value for name, value in told.items() if name not in constrained}

    of_objectives = {
        name: known[name] for name in objectives if not math.isnan(known.get(name, math.nan))
    }
    values = values_of(told, record.objectives, {**of_objectives, **further})
    further |= values
    for name in constrained:
        if name not in further and name not in known and all(map(math.isfinite, values.values())):
            raise UsageError(
                f"a result needs a value of each constrained metric; there is none of {name}"
            )

    further |= {name: _agreed(name, further.get(name), cost) for name, cost in known.items()}
    return {name: further[name] for name in values}, further


def _known(
    names: Sequence[str], network: Callable[[], Architecture], costs: KnownCosts
) -> dict[str, float]:
    """Return the known costs of the network among these names."""
    chosen = dict.fromkeys(name for name in names if name in costs)
    networks = [network()] if chosen else []
    return {name: float(computed(costs, name, networks)[0]) for name in chosen}


def _agreed(name: str, told: float | None, cost: float) -> float:
    """Return a known cost, with which a told number must agree; the told value where one of the two
    is no number.
    """
    if told is None:
        return cost

    if math.isnan(cost) or not math.isfinite(told):
        return told

    if not math.isclose(told, cost, rel_tol=TOLERANCE):
        raise UsageError(f"{name} is a known cost, {cost:.12g} for this network, got {told:.12g}")

    return cost
