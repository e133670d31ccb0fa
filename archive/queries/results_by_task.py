"""Results of all networks by task and protocol: for comparisons, and for models of results."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from archive.database.user_query import run_query
from archive.errors import UnknownNameError
from archive.store.properties import METRIC, from_json
from archive.store.studies.configurations import has_names

if TYPE_CHECKING:
    from archive.database.connection import Connection

PREDICTION = "prediction"
"""Source of an evaluation that was predicted (`archive.agents.transfer.zoo_source`): no result."""

TASKS = "MATCH (t:Task) RETURN DISTINCT t.name AS task ORDER BY task"

# One row a task: both servers spend more time on a row than on its content.
RESULTS = f"""
MATCH (t:Task)
WHERE $task IS NULL OR t.name = $task
MATCH (t)<-[:ON]-(e:Evaluation)-[:OF]->(a:Architecture)
WHERE e.partial IS NULL AND e.answered_from IS NULL AND coalesce(e.source, '') <> '{PREDICTION}'
WITH t, collect([a.key, a.space, e.id, e[$property], e.model, e.family, e.pretraining]) AS rows
RETURN t.name AS task, t.protocol AS protocol, rows
ORDER BY task, protocol
"""

# Values of one network under one protocol differ with the hyperparameters of its proposals.
HYPERPARAMETERS = """
MATCH (t:Task)
WHERE $task IS NULL OR t.name = $task
MATCH (t)<-[:ON]-(s:Study)-[:PROPOSED]->(p:Proposal)
WHERE p.hyperparameters <> '{}'
RETURN t.name AS task, t.protocol AS protocol, collect(DISTINCT p.architecture) AS keys
"""

METRICS = """
MATCH (t:Task)<-[:ON]-(e:Evaluation)
WHERE $task IS NULL OR t.name = $task
WITH e LIMIT 1000
UNWIND keys(e) AS name
RETURN DISTINCT name
"""

NETWORKS = """
MATCH (a:Architecture)
RETURN a.space AS space, collect([a.key, a.functional_key, a.params, a.flops]) AS rows
ORDER BY space
"""

CONFIGURATIONS = """
MATCH (a:Architecture {space: $space})<-[:OF]-(p:Proposal)
WHERE p.configuration IS NOT NULL
RETURN a.key AS key, min(p.configuration) AS configuration
"""

MODELS = """
UNWIND $keys AS key
MATCH (a:Architecture {key: key})<-[:OF]-(e:Evaluation)
WHERE e.model IS NOT NULL
RETURN key, min(e.model) AS model
"""

NAME_OF_VALUE = """
MATCH (:Task {name: $task})<-[:ON]-(e:Evaluation)
WITH e LIMIT 1
RETURN [name IN keys(e) WHERE name STARTS WITH 'metric_' AND e[name] = e.value | substring(name, 7)] AS names
"""


class TaskResult(NamedTuple):
    """A whole training or measurement of a network.

    Attributes:
        protocol: The protocol.
        architecture: Key of the network, or of a configuration of parameters.
        space: Its space.
        evaluation: Id of the evaluation.
        value: The value or the metric; NaN without one.
        model: Name of the model at its source; None without one.
        family: Its family there, likewise.
        pretraining: Data of its pretraining, likewise.
    """

    protocol: str
    architecture: str
    space: str
    evaluation: str
    value: float
    model: str | None
    family: str | None
    pretraining: str | None


@dataclass(frozen=True)
class TaskResults:
    """Results of networks on one task under one protocol.

    Attributes:
        task: Name of the task.
        protocol: Name of the protocol.
        rows: The results.
    """

    task: str
    protocol: str
    rows: list[TaskResult]


@dataclass(frozen=True)
class ComparedNetwork:
    """A network of the archive.

    Attributes:
        key: Its key.
        functional_key: Key of what it computes.
        params: Number of trained parameters, once it is known.
        flops: Multiply-adds of one input, once they are known.
    """

    key: str
    functional_key: str
    params: float | None
    flops: float | None


def results_by_task(
    connection: Connection, task: str | None, metric: str | None
) -> list[TaskResults]:
    """Return the results of whole trainings by task and protocol.

    Networks of proposals with hyperparameters are left out under the protocol: their values are not
    comparable.

    Args:
        connection: Connection to the archive.
        task: Name of a task; None for all.
        metric: Name of a metric; None for the value.

    Raises:
        UnknownNameError: The archive has no such task, or no result has the metric.
    """
    asked = {"task": task, "property": "value" if metric is None else METRIC + metric}
    found = run_query(connection, RESULTS, asked).rows
    if task is not None and not found:
        names = [name for (name,) in run_query(connection, TASKS).rows]
        if task not in names:
            hint = (
                "the archive has results of none yet; archive import zoo timm adds published ones"
            )
            raise UnknownNameError("task", task, names, hint)

    tuned: dict[tuple[str, str], set[str]] = {}
    for name, protocol, keys in run_query(connection, HYPERPARAMETERS, {"task": task}).rows:
        tuned[name, protocol] = set(keys)

    results = []
    has_values = False
    for name, protocol, rows in found:
        left_out = tuned.get((name, protocol), set())
        kept = []
        for key, space, evaluation, stored, *origin in rows:
            value = float(stored) if isinstance(stored, int | float) else math.nan
            has_values = has_values or math.isfinite(value)
            if key not in left_out:
                kept.append(TaskResult(protocol, key, space, evaluation, value, *origin))

        results.append(TaskResults(name, protocol, kept))

    if found and metric is not None and not has_values:
        owner = "" if task is None else f"the task {task}"
        raise UnknownNameError("metric", metric, metric_names(connection, task), owner=owner)

    return results


def metric_names(connection: Connection, task: str | None = None) -> list[str]:
    """Return the names of the metrics that results have.

    Args:
        connection: Connection to the archive.
        task: Restricts them to results of one task.
    """
    properties = [name for (name,) in run_query(connection, METRICS, {"task": task}).rows]
    return [name.removeprefix(METRIC) for name in properties if name.startswith(METRIC)]


def networks_by_space(connection: Connection) -> dict[str, list[ComparedNetwork]]:
    """Return the networks by space and key."""
    networks = {}
    for name, rows in run_query(connection, NETWORKS).rows:
        networks[name] = [ComparedNetwork(*row) for row in sorted(rows, key=_key)]

    return networks


def configurations_of_space(connection: Connection, space: str) -> dict[str, dict[str, str]]:
    """Return the values of named decisions of a space's networks as texts, by key and name.

    Networks without named decisions are left out.
    """
    if not has_names(space):
        return {}

    configurations = {}
    for key, text in run_query(connection, CONFIGURATIONS, {"space": space}).rows:
        configurations[key] = {name: str(value) for name, value in from_json(text).items()}

    return configurations


def models_of(connection: Connection, keys: list[str]) -> dict[str, str]:
    """Return the names of published models by the keys of their networks, as far as they have one."""
    return dict(map(tuple, run_query(connection, MODELS, {"keys": keys}).rows))


def name_of_value(connection: Connection, task: str) -> str:
    """Return the metric that is the value of a task's results; `value` where none is recorded."""
    for (names,) in run_query(connection, NAME_OF_VALUE, {"task": task}).rows:
        if names:
            return str(min(names))

    return "value"


def _key(row: list[Any]) -> str:
    return str(row[0])
