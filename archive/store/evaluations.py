"""Results: each written once with its neighbours, read as columns (`archive.store.result_columns`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from archive import gc_pause
from archive.database.statements import write_all
from archive.errors import UsageError
from archive.store import result_columns
from archive.store.architectures import Architectures, batched
from archive.store.properties import CURVE, curve_properties, evaluation_from, plain, result_properties, study_of
from archive.store.records import Direction, Evaluation, Result, State
from archive.store.result_columns import StudyResults

if TYPE_CHECKING:
    import numpy as np
    from neo4j import ManagedTransaction
    from numpy.typing import NDArray

    from archive.database.connection import Connection

__all__ = ["Evaluation", "Evaluations", "Result", "record", "task_id"]

BATCH = 500

_WHOLE = ("number", "agent", "architecture", "hyperparameters", "evaluation")
_SCALARS = ("id", "value", "epochs", "answered_from", "partial", "created")

# By way of the study, to which everybody writes: what is missed is counted below (`archive.database.statements`).
STUDIES = """
UNWIND $studies AS name
MATCH (s:Study {name: name})
USING INDEX SEEK s:Study(name)
MATCH (s)-[:ON]->(t:Task)
RETURN name, t.id AS task
"""

_NEIGHBOURS = """
UNWIND $rows AS row
MATCH (p:Proposal {id: row.id})
USING INDEX SEEK p:Proposal(id)
MATCH (a:Architecture {key: p.architecture})
USING INDEX SEEK a:Architecture(key)
MATCH (t:Task {id: row.task})
USING INDEX SEEK t:Task(id)
"""

_EVALUATION = """
CREATE (e:Evaluation {id: row.id})
SET e += row.properties, e.created = timestamp()
CREATE (p)-[:RESULTED_IN]->(e)
CREATE (e)-[:OF]->(a)
CREATE (e)-[:ON]->(t)
"""

# The caller holds the proposals' locks and has seen that they have no result, so nothing here can be there twice.
RECORD = f"{_NEIGHBOURS}{_EVALUATION}RETURN count(*) AS written"

# Locks, tests, changes and records in one step. What it passes over, for whatever reason, stays as it was: nothing is
# written before everything is found.
FINISH = f"""{_NEIGHBOURS}SET p.touched = timestamp()
WITH p, a, t, row
WHERE p.state = 'RUNNING' AND p.token = row.token AND p.rung_values IS NULL
  AND p.architecture = coalesce(row.architecture, p.architecture)
  AND none(name IN keys(p) WHERE name STARTS WITH 'curve_' AND NOT name IN row.curve)
SET p += row.changes, p.finished = timestamp()
{_EVALUATION}RETURN collect(p.id) AS finished
"""

CHECKPOINT = """
UNWIND $rows AS row
MATCH (e:Evaluation {id: row.id})
USING INDEX SEEK e:Evaluation(id)
MERGE (c:Checkpoint {uri: row.uri})
SET c.sha256 = row.sha256, c.bytes = row.bytes
CREATE (e)-[:SAVED]->(c)
RETURN count(*) AS written
"""

OF_TASK = """
MATCH (t:Task) WHERE ($task IS NULL OR t.name = $task) AND ($protocol IS NULL OR t.protocol = $protocol)
MATCH (t)<-[:ON]-(e:Evaluation)-[:OF]->(a:Architecture)
WHERE $space IS NULL OR a.space = $space
OPTIONAL MATCH (e)<-[:RESULTED_IN]-(p:Proposal)<-[:PROPOSED]-(s:Study)
RETURN properties(e) AS evaluation, s.name AS study, coalesce(s.direction, t.direction) AS direction,
       p.number AS number, p.agent AS agent, a.key AS architecture, t.name AS task, t.protocol AS protocol,
       p.hyperparameters AS hyperparameters
ORDER BY study, number, e.id
"""

TASK = """
MERGE (t:Task {id: $id})
ON CREATE SET t.name = $name, t.protocol = $protocol
SET t.direction = coalesce(t.direction, $direction)
RETURN t.direction AS direction
"""

IMPORT = """
MATCH (t:Task {id: $task})
USING INDEX SEEK t:Task(id)
UNWIND $rows AS row
MATCH (a:Architecture {key: row.architecture})
USING INDEX SEEK a:Architecture(key)
MERGE (e:Evaluation {id: row.id})
WITH t, a, e, row WHERE NOT EXISTS { (e)-[:OF]->() }
SET e += row.properties, e.created = timestamp()
CREATE (e)-[:OF]->(a)
CREATE (e)-[:ON]->(t)
"""


@dataclass(frozen=True, slots=True)
class Finished:
    """What the holder of a proposal found, where no rungs are concerned.

    Attributes:
        id: Of the proposal.
        token: Of the claim.
        state: What the proposal becomes.
        result: What was found.
        architecture: Key of the network that was trained; None where the sender does not know.
    """

    id: str
    token: str
    state: State
    result: Result
    architecture: str | None = None


@dataclass(frozen=True, eq=False)
class Observed:
    """What studies found, as arrays of n evaluations, by study and number.

    Attributes:
        studies: (n,) names.
        numbers: (n,) int64, of the proposals.
        architectures: (n,) keys.
        values: (n,) float64, the objective in the task's own unit.
        scores: (n,) float64, the values with their sign such that larger is better.
    """

    studies: NDArray[np.str_]
    numbers: NDArray[np.int64]
    architectures: NDArray[np.str_]
    values: NDArray[np.float64]
    scores: NDArray[np.float64]


class Evaluations:
    """Reads results with their architectures, and imports those of others."""

    def __init__(self, connection: Connection, architectures: Architectures) -> None:
        """Read and write through this connection; `architectures` keeps what was read before."""
        self._connection = connection
        self._architectures = architectures

    @gc_pause.paused()
    def of_studies(self, names: Sequence[str]) -> list[Evaluation]:
        """Return the evaluations of these studies, by study and number."""
        found = result_columns.read(self._connection, names, _WHOLE)
        return self._with_networks([row for one in found for row in _rows_of(one, _WHOLE)])

    @gc_pause.paused()
    def to_learn_from(self, names: Sequence[str], objective: str) -> list[Evaluation]:
        """Return the evaluations of these studies by study and number, with only what a search agent learns from.

        They lack metrics, seconds, seed and device. Where any of them is partial, all have the curve of the objective,
        else none has a curve.
        """
        columns = [*_WHOLE[:-1], *_SCALARS]
        found = result_columns.read(self._connection, names, columns)
        if any(partial for one in found for partial in one.columns["partial"]):
            columns.append(CURVE + objective)
            found = result_columns.read(self._connection, names, columns)
        rows = [row for one in found for row in _rows_of(one, columns)]
        for row in rows:
            row["evaluation"] = {name: row[name] for name in columns[4:] if row[name] is not None}
        return self._with_networks(rows)

    def observed(self, names: Sequence[str]) -> Observed:
        """Return what these studies found, without the networks themselves."""
        # The trainer reads no history: it is not to wait for numpy.
        import numpy as np

        found = result_columns.read(self._connection, names, ["architecture", "value"])
        sizes = [len(one.columns["number"]) for one in found]
        signs = [-1.0 if one.direction == "minimise" else 1.0 for one in found]
        numbers, keys, values = (
            [value for one in found for value in one.columns[name]] for name in ("number", "architecture", "value")
        )
        return Observed(
            np.repeat(np.array([one.study for one in found], np.str_), sizes),
            np.array(numbers, np.int64),
            np.array(keys, np.str_),
            np.array(values, np.float64),
            np.repeat(np.array(signs, np.float64), sizes) * np.array(values, np.float64),
        )

    def of_task(self, task: str | None, space: str | None, protocol: str | None) -> list[Evaluation]:
        """Return all evaluations of a task, a space and a protocol, imported ones too; None stands for any."""
        return self._read(OF_TASK, task=task, space=space, protocol=protocol)

    def add(
        self,
        task: str,
        protocol: str,
        rows: Iterable[tuple[str, str, Result]],
        *,
        direction: Direction | None = None,
    ) -> None:
        """Import results: (id, architecture key, result); the architectures must be there.

        An id that is there already is left as it is. Each batch is one transaction, so an interrupted
        import goes on where it stopped.

        Args:
            task: Name of the task.
            protocol: How it was measured.
            rows: The results.
            direction: Whether larger or smaller values are better; None leaves it to the task's other results.

        Raises:
            UsageError: The task is on record with the other direction.
        """
        at = task_id(task, protocol)
        self._connection.write(partial(_task, at=at, name=task, protocol=protocol, direction=direction))
        for part in batched(rows, BATCH):
            table = [
                {"id": id_, "architecture": key, "properties": result_properties(result)}
                for id_, key, result in sorted(part, key=lambda row: row[0])
            ]
            self._connection.write(partial(_import, task=at, rows=table), alone=True)

    def _read(self, query: str, **parameters: Any) -> list[Evaluation]:
        return self._with_networks(self._connection.read(lambda tx: plain(tx.run(query, parameters))))

    def _with_networks(self, rows: Sequence[Mapping[str, Any]]) -> list[Evaluation]:
        networks = self._architectures.get_many(row["architecture"] for row in rows)
        # A user may have deleted a network by Cypher; an Evaluation has one.
        return [evaluation_from(row, networks[row["architecture"]]) for row in rows if row["architecture"] in networks]


def _rows_of(found: StudyResults, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Return one row an evaluation of a study, by number."""
    study = {name: getattr(found, name) for name in ("study", "direction", "task", "protocol")}
    rows = zip(*(found.columns[name] for name in columns), strict=True)
    return [{**study, **dict(zip(columns, row, strict=True))} for row in rows]


def _task(tx: ManagedTransaction, at: str, name: str, protocol: str, direction: Direction | None) -> None:
    stored = tx.run(TASK, id=at, name=name, protocol=protocol, direction=direction).single(strict=True)["direction"]
    if direction not in (None, stored):
        raise UsageError(
            f"the archive has the task {name!r} under the protocol {protocol!r} with direction {stored}, "
            f"got results with direction {direction}: choose another name for the protocol"
        )


def _import(tx: ManagedTransaction, task: str, rows: Sequence[Mapping[str, Any]]) -> None:
    tx.run(IMPORT, task=task, rows=rows).consume()


def record(tx: ManagedTransaction, results: Sequence[tuple[str, Result]]) -> None:
    """Store the results of proposals, by id, that the caller has locked and that have none yet."""
    if results:
        tasks = _tasks(tx, [id_ for id_, _ in results])
        rows = [{"id": id_, "task": tasks.get(id_), "properties": result_properties(result)} for id_, result in results]
        write_all(tx, RECORD, rows)
    save(tx, results)


def finish(tx: ManagedTransaction, several: Sequence[Finished]) -> int:
    """Store in one step the results of proposals that are still held, each of them once; return how many those are.

    The others stay as they are: those that are not held any more, and those whose reports had curves that the result
    has not.
    """
    tasks = _tasks(tx, [one.id for one in several])
    rows = [_finished(one, tasks.get(one.id)) for one in sorted(several, key=lambda one: one.id)]
    done = set(tx.run(FINISH, rows=rows).single(strict=True)["finished"])
    save(tx, [(one.id, one.result) for one in several if one.id in done])
    return len(done)


def save(tx: ManagedTransaction, results: Sequence[tuple[str, Result]]) -> None:
    """Store where the weights of evaluations are, by id, as far as any were kept."""
    saved = [{"id": id_, **vars(result.checkpoint)} for id_, result in results if result.checkpoint]
    if saved:
        write_all(tx, CHECKPOINT, saved)


def _tasks(tx: ManagedTransaction, ids: Iterable[str]) -> dict[str, str]:
    """Return the id of the task of each proposal, without those of which it could not be read."""
    studies = {id_: study_of(id_) for id_ in ids}
    found = {row["name"]: row["task"] for row in tx.run(STUDIES, studies=sorted(set(studies.values())))}
    return {id_: found[study] for id_, study in studies.items() if study in found}


def _finished(one: Finished, task: str | None) -> dict[str, Any]:
    # The curve moves to the evaluation.
    curve = list(curve_properties(one.result.curve))
    changes = {"state": one.state.value, "reason": None, "open": None, "suspected": None, **dict.fromkeys(curve)}
    told = {"id": one.id, "token": one.token, "architecture": one.architecture, "task": task}
    return {**told, "curve": curve, "changes": changes, "properties": result_properties(one.result)}


def task_id(task: str, protocol: str) -> str:
    r"""Return the id of the node of a task under a protocol, `task@protocol`; an `@` of the task's own is `\@`."""
    # The first bare @ ends the task's name, so that no two pairs of names give one id.
    escaped = task.replace("\\", "\\\\").replace("@", "\\@")
    return f"{escaped}@{protocol}"
