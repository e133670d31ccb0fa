"""Metrics by name: objectives as text `NAME[:minimise|maximise]`, directions, units and costs.

| names                                          | direction |
|------------------------------------------------|-----------|
| `accuracy`, and with a prefix such as `valid_` | maximise  |
| `loss`, `mse`, `error`, likewise               | minimise  |
| costs: `params`, `flops`, `latency…`, `peak…`  | minimise  |

Costs are imported values on the nodes of networks, which never change once they are stored. An
evaluation has the costs of its network for its task as metrics (`archive.trainer.trial.costs`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from archive.errors import UnknownNameError, UsageError
from archive.store.protocol_names import DEFAULT_RECIPE, ProtocolName
from archive.values import checked_size

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.store.records import Study

Direction = Literal["maximise", "minimise"]
DIRECTIONS = ("maximise", "minimise")

COST_METRICS = (
    "params",
    "flops",
    "latency_ms",
    "latency_iqr_ms",
    "latency_batch",
    "peak_memory_bytes",
)
"""Metrics of an evaluation that are costs."""

_PREFIXES = ("train_", "valid_", "test_")
_OF_PREDICTIONS: Mapping[str, Direction] = {
    "accuracy": "maximise",
    "loss": "minimise",
    "mse": "minimise",
    "error": "minimise",
}


@dataclass(frozen=True)
class Objective:
    """One of the quantities that a study optimises.

    Attributes:
        name: Name of the metric.
        direction: Whether larger or smaller values are better.
    """

    name: str
    direction: Direction = "maximise"

    def __str__(self) -> str:
        """Return it as the command line takes it, `latency_ms:minimise`."""
        return f"{self.name}:{self.direction}"


def parse(
    text: str, declared: Mapping[str, Direction] | None = None, known: Collection[str] = ()
) -> Objective:
    """Return the objective that a text names.

    Args:
        text: `NAME` or `NAME:DIRECTION`.
        declared: Directions of names, before those that names declare by themselves.
        known: Names with a direction, for the error about a name without one; empty where any
            metric may be meant.

    Raises:
        UnknownNameError: The text has no direction, and its name declares none.
        UsageError: The name is empty, or the direction is none.
    """
    name, separator, direction = text.partition(":")
    name = name.strip()
    direction = direction.strip()
    if not name or (separator and direction not in DIRECTIONS):
        raise UsageError(f"an objective is NAME, NAME:minimise or NAME:maximise, got {text!r}")

    stated = direction or (declared or {}).get(name) or direction_of(name)
    if stated is None:
        raise UnknownNameError(
            "objective", name, known, f"write {name}:minimise or {name}:maximise"
        )

    return Objective(name, cast(Direction, stated))


def direction_of(name: str) -> Direction | None:
    """Return the direction that the name of a quantity declares; None where it declares none."""
    if name in COST_METRICS or name.startswith("latency"):
        return "minimise"

    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)

    return _OF_PREDICTIONS.get(name)


STANDARDISED = "of the standardised target: a constant predictor scores about 1"
"""Unit of the mean squared errors of this package's tasks."""

_FAMILIES = ("csv", "diabetes", "naval", "npz", "protein")


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
