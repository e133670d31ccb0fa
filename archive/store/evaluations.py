"""Evaluations: read with their architectures or as columns, and imported.

Columns are in `archive.store.result_columns`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from archive import runtime
from archive.database import messages
from archive.errors import UnknownNameError, UsageError
from archive.objectives import sign
from archive.store import result_columns
from archive.store.architectures import Architectures, batched
from archive.store.properties import (
    CURVE,
    METRIC,
    evaluation_from,
    from_json,
    plain,
    proposal_id,
    read_column,
    result_properties,
    study_of,
    task_id,
)
from archive.store.records import Direction, Evaluation, Result, State
from archive.store.result_columns import StudyResults
from archive.store.studies.rows import COLUMNS
from archive.values import whole_number

if TYPE_CHECKING:
    import numpy as np
    from neo4j import ManagedTransaction
    from numpy.typing import NDArray

    from archive.architecture.graph import Architecture
    from archive.database.connection import Connection

BATCH = 500

_WHOLE = ("number", "agent", "architecture", "hyperparameters", "evaluation")
_SCALARS = ("id", "value", "epochs", "answered_from", "partial", "created", "seed")

# `{evaluation}` is an expression for the properties of `e`. Sorted by the reader: ArcadeDB sorts in
# its heap.
OF_TASK = """
MATCH (t:Task) WHERE ($task IS NULL OR t.name = $task) AND ($protocol IS NULL OR t.protocol = $protocol)
MATCH (t)<-[:ON]-(e:Evaluation)-[:OF]->(a:Architecture)
WHERE $space IS NULL OR a.space = $space
OPTIONAL MATCH (e)<-[:RESULTED_IN]-(p:Proposal)<-[:PROPOSED]-(s:Study)
RETURN {evaluation} AS evaluation, s.name AS study, coalesce(s.direction, t.direction) AS direction,
       p.number AS number, p.agent AS agent, a.key AS architecture, t.name AS task, t.protocol AS protocol,
       p.hyperparameters AS hyperparameters
"""

ONE = """
MATCH (e:Evaluation {id: $id})-[:ON]->(t:Task)
MATCH (e)-[:OF]->(a:Architecture)
OPTIONAL MATCH (e)<-[:RESULTED_IN]-(p:Proposal)<-[:PROPOSED]-(s:Study)
RETURN properties(e) AS evaluation, s.name AS study, coalesce(s.direction, t.direction) AS direction,
       p.number AS number, p.agent AS agent, a.key AS architecture, t.name AS task, t.protocol AS protocol,
       p.hyperparameters AS hyperparameters
"""

TASK = """
UNWIND $rows AS row
MERGE (t:Task {id: row.id})
ON CREATE SET t.name = row.task, t.protocol = row.protocol
SET t.direction = coalesce(t.direction, row.direction)
RETURN t.name AS task, t.protocol AS protocol, t.direction AS stored, row.direction AS direction
"""

NETWORKS_OF = """
UNWIND $ids AS id
MATCH (e:Evaluation {id: id})
USING INDEX SEEK e:Evaluation(id)
MATCH (e)-[:OF]->(a:Architecture)
RETURN e.id AS id, a.key AS key, a.params AS params, e.family AS family
"""

IMPORT = """
UNWIND $rows AS row
MATCH (t:Task {id: row.task})
USING INDEX SEEK t:Task(id)
MATCH (a:Architecture {key: row.architecture})
USING INDEX SEEK a:Architecture(key)
MERGE (e:Evaluation {id: row.id})
WITH t, a, e, row WHERE NOT EXISTS { (e)-[:OF]->() }
SET e += row.properties, e.created = timestamp()
CREATE (e)-[:OF]->(a)
CREATE (e)-[:ON]->(t)
"""


WITH_SOURCES = """
OPTIONAL MATCH (s:Study {name: $name})
USING INDEX SEEK s:Study(name)
OPTIONAL MATCH (s)-[:WARM_STARTED_FROM]->(source:Study)
RETURN collect(DISTINCT s.name) + collect(source.name) AS names
"""


@dataclass(frozen=True)
class TaskProtocol:
    """Task and protocol of imported results.

    Attributes:
        task: Name of the task.
        protocol: Name of the training protocol.
        direction: Whether larger or smaller values are better; None leaves it to the task's other
            results.
    """

    task: str
    protocol: str
    direction: Direction | None = None

    @property
    def id(self) -> str:
        """Id of the node."""
        return task_id(self.task, self.protocol)


@dataclass(frozen=True)
class UnfinishedProposal:
    """A proposal without a result.

    Attributes:
        number: Number in the study.
        architecture: Its network.
        hyperparameters: Training settings that belong to this proposal.
        failed: Whether it has failed; else it waits or runs.
    """

    number: int
    architecture: Architecture
    hyperparameters: Mapping[str, Any]
    failed: bool


@dataclass(frozen=True)
class StudyHistory:
    """What the agents of a study learn from.

    Attributes:
        evaluations: Evaluations of the study, then of its source studies, by study and number.
        open: Waiting and running proposals of the study, by number.
        failed: Failed proposals of the study, by number.
    """

    evaluations: list[Evaluation]
    open: list[UnfinishedProposal]
    failed: list[UnfinishedProposal]


@dataclass(frozen=True, eq=False)
class ResultArrays:
    """Results of studies as arrays of n evaluations, by study and number.

    Attributes:
        studies: (n,) names of the studies.
        numbers: (n,) int64, numbers of the proposals.
        architectures: (n,) keys of the architectures.
        values: (n,) float64, the objective in the task's own unit.
        scores: (n,) float64, the values with their sign such that larger is better.
    """

    studies: NDArray[np.str_]
    numbers: NDArray[np.int64]
    architectures: NDArray[np.str_]
    values: NDArray[np.float64]
    scores: NDArray[np.float64]


class Evaluations:
    """Reader of evaluations with their architectures, and writer of imported ones."""

    def __init__(self, connection: Connection, architectures: Architectures) -> None:
        """Read and write through this connection; `architectures` caches networks."""
        self._connection = connection
        self._architectures = architectures

    @runtime.pause_gc()
    def of_studies(self, names: Sequence[str], *, curves: bool = True) -> list[Evaluation]:
        """Return the evaluations of these studies, by study and number.

        Without `curves`, their curves are empty.
        """
        whole = "evaluation" if curves else "evaluation_without_curves"
        columns = [*_WHOLE[:-1], whole, "rung_constrained"]
        results = result_columns.read(self._connection, names, columns)
        rows = [*chain.from_iterable(_rows_of(study, columns) for study in results)]
        return self._with_networks([{**row, "evaluation": row[whole]} for row in rows])

    @runtime.pause_gc()
    def to_learn_from(self, name: str, objective: str, further: Sequence[str] = ()) -> StudyHistory:
        """Return the evaluations of a study and its source studies.

        They have only the properties that agents use.

        Each is read as of one moment: a proposal is evaluated, open or failed. The evaluations lack
        seconds, device, and metrics other than the `further` ones. If any of them is partial, all
        have the curve of the objective; otherwise none has a curve.
        """
        columns = [*_WHOLE[:-1], *_SCALARS, *(METRIC + name for name in further)]
        results = self._connection.read(partial(_with_sources, name=name, columns=columns))
        if any(any(study.columns["partial"]) for study in results):
            columns.append(CURVE + objective)
            results = self._connection.read(partial(_with_sources, name=name, columns=columns))

        rows = [*chain.from_iterable(_rows_of(study, columns) for study in results)]
        for row in rows:
            row["evaluation"] = {name: row[name] for name in columns[4:] if row[name] is not None}

        others = []
        for study in results:
            if study.study == name:
                others += [row for row in study.others if row["state"] is not None]

        networks = self._architectures.get_many(read_column([*rows, *others], "architecture"))
        evaluations = _evaluations(rows, networks)
        unfinished = []
        for row in others:
            if row["architecture"] in networks:
                unfinished.append(
                    UnfinishedProposal(
                        number=row["number"],
                        architecture=networks[row["architecture"]],
                        hyperparameters=from_json(row["hyperparameters"]),
                        failed=row["state"] == State.FAILED,
                    )
                )

        return StudyHistory(
            sorted(evaluations, key=lambda evaluation: evaluation.study != name),
            [proposal for proposal in unfinished if not proposal.failed],
            [proposal for proposal in unfinished if proposal.failed],
        )

    def result_arrays(self, names: Sequence[str]) -> ResultArrays:
        """Return the results of these studies, without the networks."""
        # Imported lazily: the trainer never calls this and should not pay for importing numpy.
        import numpy as np

        results = result_columns.read(self._connection, names, ["architecture", "value"])
        sizes = [len(study.columns["number"]) for study in results]
        signs = [sign(study.direction) for study in results]
        numbers, keys, values = (
            [*chain.from_iterable(study.columns[name] for study in results)]
            for name in ("number", "architecture", "value")
        )
        return ResultArrays(
            np.repeat(np.array([study.study for study in results], np.str_), sizes),
            np.array(numbers, np.int64),
            np.array(keys, np.str_),
            np.array(values, np.float64),
            np.repeat(np.array(signs, np.float64), sizes) * np.array(values, np.float64),
        )

    def get(self, id_: str) -> Evaluation:
        """Return an evaluation by its id.

        It is `STUDY#NUMBER`, with or without leading zeros, or the id of an imported row.

        Raises:
            UnknownNameError: There is none.
        """
        study = study_of(id_)
        number = whole_number(id_.rpartition("#")[2])
        ids = [id_] if not study or number is None else [id_, proposal_id(study, number)]
        for candidate in dict.fromkeys(ids):
            for evaluation in self._read(ONE, id=candidate):
                return evaluation

        raise UnknownNameError(
            "evaluation", id_, (), "archive study show STUDY lists the results of a study"
        )

    def of_task(
        self, task: str | None, space: str | None, protocol: str | None, *, curves: bool = True
    ) -> list[Evaluation]:
        """Return all evaluations of a task, a space and a protocol, also imported ones.

        None stands for any.

        Without `curves`, theirs are empty.
        """
        query = OF_TASK.format(
            evaluation=COLUMNS["evaluation" if curves else "evaluation_without_curves"]
        )
        evaluations = self._read(query, task=task, space=space, protocol=protocol)
        return sorted(
            evaluations,
            key=lambda evaluation: (
                evaluation.study is None,
                evaluation.study or "",
                evaluation.number or 0,
                evaluation.id,
            ),
        )

    def add(
        self,
        task: str,
        protocol: str,
        rows: Iterable[tuple[str, str, Result]],
        *,
        direction: Direction | None = None,
    ) -> None:
        """Import results: (id, architecture key, result); the architectures must be stored already.

        An evaluation with an existing id does not change. Each batch is one transaction, so
        repeating an interrupted import continues it.

        Args:
            task: Name of the task.
            protocol: Name of the training protocol.
            rows: The results.
            direction: Whether larger or smaller values are better; None leaves it to the task's
                other results.

        Raises:
            UsageError: The task is on record with the other direction.
        """
        of_task = TaskProtocol(task, protocol, direction)
        self.add_many([of_task], ((id_, key, of_task, result) for id_, key, result in rows))

    def add_many(
        self,
        places: Sequence[TaskProtocol],
        rows: Iterable[tuple[str, str, TaskProtocol, Result]],
    ) -> None:
        """Import results of several tasks and protocols, as `add` does.

        Args:
            places: The tasks and protocols of the results.
            rows: Id, key of the architecture, task with protocol, and result.

        Raises:
            UsageError: A task is on record with the other direction.
        """
        self._connection.write(partial(_add_tasks, places=places))
        for part in batched(rows, BATCH):
            table = []
            for id_, key, task, result in sorted(part, key=lambda row: row[0]):
                table.append(
                    {
                        "id": id_,
                        "architecture": key,
                        "task": task.id,
                        "properties": result_properties(result),
                    }
                )

            for rows_of_part in messages.parts(table):
                self._connection.write(partial(_import, rows=rows_of_part), alone=True)

    def networks_of(self, ids: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Return `key` and `params` of the network and `family` of stored evaluations, by id."""
        networks = {}
        for part in batched(ids, BATCH):
            for row in self._connection.read(partial(_networks_of, ids=part)):
                networks[row.pop("id")] = row

        return networks

    def _read(self, query: str, **parameters: Any) -> list[Evaluation]:
        rows = self._connection.read(lambda tx: plain(tx.run(query, parameters)))
        return self._with_networks([{**row, "evaluation": dict(row["evaluation"])} for row in rows])

    def _with_networks(self, rows: Sequence[Mapping[str, Any]]) -> list[Evaluation]:
        return _evaluations(rows, self._architectures.get_many(read_column(rows, "architecture")))


def _evaluations(
    rows: Sequence[Mapping[str, Any]], networks: Mapping[str, Architecture]
) -> list[Evaluation]:
    # A user may have deleted the network of an evaluation by Cypher; such an evaluation is left
    # out.
    evaluations = []
    for row in rows:
        if row["architecture"] in networks:
            evaluations.append(evaluation_from(row, networks[row["architecture"]]))

    return evaluations


def _with_sources(tx: ManagedTransaction, name: str, columns: Sequence[str]) -> list[StudyResults]:
    """Return the results of a study and its source studies."""
    names = tx.run(WITH_SOURCES, name=name).single(strict=True)["names"]
    return result_columns.read_within(
        tx, names, [column for column in columns if column != "number"]
    )


def _rows_of(results: StudyResults, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Return one row for each evaluation of a study, by number."""
    study = {name: getattr(results, name) for name in ("study", "direction", "task", "protocol")}
    rows = zip(*(results.columns[name] for name in columns), strict=True)
    return [{**study, **dict(zip(columns, row, strict=True))} for row in rows]


def _add_tasks(tx: ManagedTransaction, places: Sequence[TaskProtocol]) -> None:
    rows = []
    for task in sorted(places, key=lambda task: task.id):
        rows.append({**vars(task), "id": task.id})

    for row in plain(tx.run(TASK, rows=rows)):
        if row["direction"] not in (None, row["stored"]):
            raise UsageError(
                f"the archive has the task {row['task']!r} under the protocol {row['protocol']!r} "
                f"with direction {row['stored']}, got results with direction {row['direction']}: "
                "choose another name for the protocol"
            )


def _networks_of(tx: ManagedTransaction, ids: Sequence[str]) -> list[dict[str, Any]]:
    return plain(tx.run(NETWORKS_OF, ids=ids))


def _import(tx: ManagedTransaction, rows: Sequence[Mapping[str, Any]]) -> None:
    tx.run(IMPORT, rows=rows).consume()
