"""Validation of a told result: the objectives of the study, and the quantities of its constraints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from archive.agents.ask_tell.types import Told, real, values_of
from archive.architecture.graph import Architecture
from archive.errors import UsageError
from archive.known_costs import KnownCosts, computed

if TYPE_CHECKING:
    from archive.store.records import Study


def checked(
    record: Study, told: Told, metrics: Mapping[str, float], network: Callable[[], Architecture], costs: KnownCosts
) -> tuple[tuple[float, ...], dict[str, float]]:
    """Return the value of each objective of a study, and all metrics of the result.

    Args:
        record: The study.
        told: What the caller told, see `archive.agents.ask_tell.study.AskTellStudy.tell`.
        metrics: Further metrics that were told.
        network: Returns the network; called where a known cost was not told.
        costs: Known costs.

    Raises:
        UsageError: An objective or a constrained metric has no value, a value is not a number, or a name is neither; or
            a known cost is not one number for each network.
    """
    objectives = [each.name for each in record.objectives]
    constrained = [each.name for each in record.constraints if each.name not in objectives]
    further = {name: real(value, name) for name, value in metrics.items()}
    if isinstance(told, Mapping):
        further |= {name: real(told[name], name) for name in constrained if name in told}
        told = {name: value for name, value in told.items() if name not in constrained}
    values = values_of(told, record.objectives, further)
    for name in constrained:
        if name not in further and name in costs:
            further[name] = float(computed(costs, name, [network()])[0])
        if name not in further:
            raise UsageError(f"a result needs a value of each constrained metric; there is none of {name}")
    return values, further | dict(zip(objectives, values, strict=True))
