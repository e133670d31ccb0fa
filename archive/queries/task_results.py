"""Results of a task under all its protocols, one row for each, as a model of results reads them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archive.errors import UnknownNameError
from archive.store.properties import METRIC

if TYPE_CHECKING:
    from archive.database.connection import Connection

RESULTS = """
MATCH (t:Task {name: $task})<-[:ON]-(e:Evaluation)-[:OF]->(a:Architecture)
WHERE e.partial IS NULL AND e.answered_from IS NULL
RETURN t.protocol AS protocol, a.key AS architecture, a.space AS space, e.id AS evaluation,
       e[$property] AS value, e.model AS model, e.family AS family, e.pretraining AS pretraining
"""

TASKS = "MATCH (t:Task) RETURN DISTINCT t.name AS task"

METRICS = """
MATCH (:Task {name: $task})<-[:ON]-(e:Evaluation)
WITH e LIMIT 1000
UNWIND keys(e) AS name
RETURN DISTINCT name
"""


@dataclass(frozen=True)
class TaskResult:
    """A whole training or measurement of a network on a task.

    Attributes:
        protocol: The protocol.
        architecture: Key of the network, or of a configuration of parameters.
        space: Its space.
        evaluation: Id of the evaluation.
        value: The objective, or the metric; finite.
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


def task_results(connection: Connection, task: str, metric: str | None = None) -> list[TaskResult]:
    """Return the results of a task with a finite value, by id.

    Args:
        connection: Connection to the archive.
        task: Name of the task.
        metric: Name of a metric; None for the objective.

    Raises:
        UnknownNameError: The archive has no such task, or no result of it has the metric.
    """
    prop = "value" if metric is None else METRIC + metric
    rows = connection.read(lambda tx: tx.run(RESULTS, task=task, property=prop).data())
    if not rows:
        names = connection.read(lambda tx: [row["task"] for row in tx.run(TASKS)])
        hint = "the archive has results of none yet; archive import zoo timm adds published ones"
        raise UnknownNameError("task", task, names, hint)

    results = []
    for row in rows:
        value = row["value"]
        if isinstance(value, int | float) and math.isfinite(value):
            results.append(TaskResult(**{**row, "value": float(value)}))

    if not results and metric is not None:
        properties = connection.read(lambda tx: [row[0] for row in tx.run(METRICS, task=task)])
        names = [name.removeprefix(METRIC) for name in properties if name.startswith(METRIC)]
        raise UnknownNameError("metric", metric, names, owner=f"the task {task}")

    return sorted(results, key=lambda result: result.evaluation)
