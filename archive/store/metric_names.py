"""Units of metrics, and the costs on the nodes of networks.

Costs are imported values, which never change once they are stored. An evaluation has the costs of
its network for its task as metrics (`archive.trainer.trial.costs`). `archive.objectives` has the
directions of metrics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from archive.objectives import PREFIXES
from archive.store.protocol_names import DEFAULT_RECIPE, ProtocolName
from archive.values import checked_size

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.store.records import Study

STANDARDISED = "of the standardised target: a constant predictor scores about 1"
"""Unit of the mean squared errors of this package's tasks."""

OWN_UNIT = "in the target's own unit"
"""Unit of the root mean squared errors of this package's tasks."""

_FAMILIES = ("csv", "diabetes", "images", "naval", "npz", "parquet", "protein")


def unit_of(protocol: str, metric: str) -> str | None:
    """Return the unit of a metric in words.

    Args:
        protocol: Name of the protocol that trains the networks.
        metric: Name of the metric.

    Returns:
        The unit; None where the name says it, or where it is unknown: a recipe of a user may undo
        the standardisation.
    """
    name = ProtocolName.parse(protocol)
    for prefix in PREFIXES:
        metric = metric.removeprefix(prefix)

    if name.recipe != DEFAULT_RECIPE or name.base.partition("/")[0] not in _FAMILIES:
        return None

    return {"mse": STANDARDISED, "rmse": OWN_UNIT}.get(metric)


def own_unit_metric(study: Study) -> str | None:
    """Return the metric that has a study's objective in the target's own unit; None without one."""
    if unit_of(study.protocol, study.objective) != STANDARDISED:
        return None

    return _root(study.objective)


def _root(metric: str) -> str:
    return metric.removesuffix("mse") + "rmse"


def units_of(study: Study) -> str | None:
    """Return the units of a study's objectives in one text; None where there is nothing to say."""
    units = []
    for objective in study.objectives:
        unit = unit_of(study.protocol, objective.name)
        if unit is not None:
            text = f"{objective.name} is {unit}"
            if unit == STANDARDISED:
                text += f" ({_root(objective.name)} is the error {OWN_UNIT})"

            units.append(text)

    return "; ".join(units) or None


SET_COSTS = """
UNWIND $rows AS row
MATCH (a:Architecture {key: row.key})
USING INDEX SEEK a:Architecture(key)
SET a.params = coalesce(a.params, row.params), a.flops = coalesce(a.flops, row.flops)
"""


def add_costs(tx: ManagedTransaction, rows: Sequence[Mapping[str, Any]]) -> None:
    """Store `params` and `flops` of networks by `key`, for those without such values.

    Raises:
        UsageError: One is no whole number from 0 to 2^63 - 1.
    """
    checked = []
    for row in rows:
        checked.append(
            {**row, **{name: checked_size(name, row[name]) for name in ("params", "flops")}}
        )

    tx.run(SET_COSTS, rows=checked).consume()
