"""Results of all networks by task and protocol, for comparisons of networks and of recipes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from archive.database.user_query import run_query
from archive.store.properties import from_json
from archive.store.studies.configurations import has_names

if TYPE_CHECKING:
    from archive.database.connection import Connection

TASKS = "MATCH (t:Task) RETURN DISTINCT t.name AS task ORDER BY task"

# One row a task: both servers spend more time on a row than on its content.
RESULTS = """
MATCH (t:Task)
WHERE $task IS NULL OR t.name = $task
MATCH (t)<-[:ON]-(e:Evaluation)-[:OF]->(a:Architecture)
WHERE e.partial IS NULL AND e.answered_from IS NULL
WITH t, collect([a.key, CASE WHEN $metric IS NULL THEN e.value ELSE e['metric_' + $metric] END,
                 e.family, e.pretraining]) AS rows
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


@dataclass(frozen=True)
class TaskResults:
    """Results of networks on one task under one protocol.

    Attributes:
        task: Name of the task.
        protocol: Name of the protocol.
        rows: Key of the network, value of the metric, family, and data of the pretraining.
    """

    task: str
    protocol: str
    rows: list[tuple[str, float | None, str | None, str | None]]


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


def task_names(connection: Connection) -> list[str]:
    """Return the names of the tasks with or without results, by name."""
    return [task for (task,) in run_query(connection, TASKS).rows]


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
    """
    asked = {"task": task, "metric": metric}
    tuned: dict[tuple[str, str], set[str]] = {}
    for name, protocol, keys in run_query(connection, HYPERPARAMETERS, {"task": task}).rows:
        tuned[name, protocol] = set(keys)

    results = []
    for name, protocol, rows in run_query(connection, RESULTS, asked).rows:
        left_out = tuned.get((name, protocol), set())
        kept = [tuple(row) for row in rows if row[0] not in left_out]
        results.append(TaskResults(name, protocol, kept))

    return results


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
