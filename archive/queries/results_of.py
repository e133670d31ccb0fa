"""Results of a network in the whole archive, and its proposals without a result.

Networks with one functional key compute the same function: results of one are results of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archive.database.user_query import run_query

if TYPE_CHECKING:
    from archive.database.connection import Connection

RESULTS = """
MATCH (a:Architecture {functional_key: $key})
MATCH (a)<-[:OF]-(e:Evaluation)
MATCH (e)-[:ON]->(t:Task)
OPTIONAL MATCH (e)<-[:RESULTED_IN]-(p:Proposal)
RETURN e.id AS evaluation, a.key AS architecture, t.name AS task, t.protocol AS protocol, e.value AS value,
       t.direction AS direction, p.study AS study, p.agent AS agent, e.epochs AS epochs, e.seconds AS seconds,
       e.seed AS seed, coalesce(e.partial, false) AS partial, e.answered_from AS answered_from,
       p.motivation AS motivation
ORDER BY task, protocol, evaluation
"""

OF_KEY = """
MATCH (:Architecture {key: $key})<-[:OF]-(e:Evaluation)-[:ON]->(t:Task)
RETURN e.id AS evaluation, t.name AS task, t.protocol AS protocol, e.value AS value, e.epochs AS epochs,
       e.seconds AS seconds
ORDER BY task, evaluation
"""

OPEN = """
MATCH (a:Architecture {functional_key: $key})
MATCH (a)<-[:OF]-(p:Proposal)
WHERE p.state IN ['WAITING', 'RUNNING', 'FAILED']
RETURN p.id AS proposal, p.study AS study, p.state AS state, p.reason AS reason, p.motivation AS motivation
ORDER BY proposal
"""

MEANS = """
UNWIND $keys AS key
MATCH (a:Architecture {key: key})
MATCH (a)<-[:OF]-(e:Evaluation)
WHERE e.answered_from IS NULL AND e.partial IS NULL AND NOT isNaN(e.value)
MATCH (e)-[:ON]->(t:Task)
WHERE $task IS NULL OR t.name = $task
RETURN key, t.name AS task, t.protocol AS protocol, avg(e.value) AS value, t.direction AS direction,
       count(e) AS results
ORDER BY key, task, protocol
"""


@dataclass(frozen=True)
class StoredResult:
    """One evaluation of a network.

    `study` is null for an imported one, `answered_from` the result that it repeats.
    """

    evaluation: str
    architecture: str
    task: str
    protocol: str
    value: float | None
    direction: str | None
    study: str | None
    agent: str | None
    epochs: int | None
    seconds: float | None
    seed: int | None
    partial: bool
    answered_from: str | None
    motivation: str | None


@dataclass(frozen=True)
class EvaluationItem:
    """A result of an architecture.

    Attributes:
        evaluation: Its id.
        task: Name of the task.
        protocol: How it was measured.
        value: The objective.
        epochs: Epochs trained.
        seconds: Wall-clock time of the training.
    """

    evaluation: str
    task: str
    protocol: str
    value: float | None
    epochs: int | None
    seconds: float | None


@dataclass(frozen=True)
class OpenProposal:
    """A proposal of a network that waits, runs or has failed."""

    proposal: str
    study: str
    state: str
    reason: str | None
    motivation: str | None


@dataclass(frozen=True)
class MeanValue:
    """Mean of the whole trainings of a network under one protocol.

    `direction` says which values are better.
    """

    task: str
    protocol: str
    value: float | None
    direction: str | None
    results: int


def results(connection: Connection, functional_key: str, most: int) -> list[StoredResult]:
    """Return the evaluations of all networks with a functional key, by task.

    They are from any study or import.
    """
    rows = run_query(connection, RESULTS, {"key": functional_key}, limit=most).rows
    return [StoredResult(*row) for row in rows]


def of_key(connection: Connection, key: str) -> list[EvaluationItem]:
    """Return the evaluations of one architecture, in any study or import, by task."""
    return [EvaluationItem(*row) for row in run_query(connection, OF_KEY, {"key": key}).rows]


def open_proposals(connection: Connection, functional_key: str, most: int) -> list[OpenProposal]:
    """Return the proposals of these networks that wait, run or have failed."""
    rows = run_query(connection, OPEN, {"key": functional_key}, limit=most).rows
    return [OpenProposal(*row) for row in rows]


def means(
    connection: Connection, keys: Sequence[str], task: str | None = None
) -> dict[str, list[MeanValue]]:
    """Return the mean values of networks by key; each network has a list, empty without results."""
    values: dict[str, list[MeanValue]] = {key: [] for key in keys}
    for key, *mean in run_query(connection, MEANS, {"keys": list(values), "task": task}).rows:
        values[key].append(MeanValue(*mean))

    return values
