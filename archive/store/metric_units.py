"""Units of metrics whose names do not say them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archive.store.protocol_names import DEFAULT_RECIPE, ProtocolName

if TYPE_CHECKING:
    from archive.store.records import Study

STANDARDISED = "of the standardised target: a constant predictor scores about 1"
"""Unit of the mean squared errors of this package's tasks."""

_FAMILIES = ("csv", "diabetes", "naval", "npz", "protein")
_PREFIXES = ("train_", "valid_", "test_")


def unit_of(protocol: str, metric: str) -> str | None:
    """Return the unit of a metric in words.

    Args:
        protocol: Name of the protocol that trains the networks.
        metric: Name of the metric.

    Returns:
        The unit; None where the name says it, or nobody knows it: a recipe of a user may undo the
        standardisation.
    """
    name = ProtocolName.parse(protocol)
    for prefix in _PREFIXES:
        metric = metric.removeprefix(prefix)

    if (
        metric == "mse"
        and name.recipe == DEFAULT_RECIPE
        and name.base.partition("/")[0] in _FAMILIES
    ):
        return STANDARDISED

    return None


def units_of(study: Study) -> str | None:
    """Return the units of a study's objectives in one text; None where there is nothing to say."""
    units = []
    for objective in study.objectives:
        unit = unit_of(study.protocol, objective.name)
        if unit is not None:
            units.append(f"{objective.name} is {unit}")

    return "; ".join(units) or None
