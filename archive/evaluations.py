"""The results of the archive: written once with their neighbours, read in two round trips with their architectures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from archive.architectures import Architectures, batched
from archive.records import Evaluation, Result
from archive.rows import evaluation_from, plain, result_properties

if TYPE_CHECKING:
    import numpy as np
    from neo4j import ManagedTransaction
    from numpy.typing import NDArray

    from archive.connection import Connection

__all__ = ["Evaluation", "Evaluations", "Result", "record", "task_id"]

BATCH = 500

# The caller holds the proposals' locks and has seen that they have no result, so nothing here can be there twice.
# Each step starts from what is bound: in one pattern, the embedded server visits the proposals of all studies.
RECORD = """
UNWIND $rows AS row
MATCH (p:Proposal {id: row.id})
MATCH (p)-[:OF]->(a:Architecture)
MATCH (p)<-[:PROPOSED]-(s:Study)
MATCH (s)-[:ON]->(t:Task)
CREATE (e:Evaluation {id: row.id})
SET e += row.properties, e.created = timestamp()
CREATE (p)-[:RESULTED_IN]->(e)
CREATE (e)-[:OF]->(a)
CREATE (e)-[:ON]->(t)
"""

CHECKPOINT = """
UNWIND $rows AS row
MATCH (e:Evaluation {id: row.id})
MERGE (c:Checkpoint {uri: row.uri})
SET c.sha256 = row.sha256, c.bytes = row.bytes
CREATE (e)-[:SAVED]->(c)
"""

# The task comes before the proposals: after them, it would be looked up for each. One list a study instead of one row
# an evaluation: the driver takes longer over a row than over all that is in it.
OF_STUDIES = """
UNWIND $studies AS name
MATCH (s:Study {name: name})-[:ON]->(t:Task)
MATCH (s)-[:PROPOSED]->(p:Proposal)-[:RESULTED_IN]->(e:Evaluation)
RETURN s.name AS study, s.direction AS direction, t.name AS task, t.protocol AS protocol,
       collect([p.number, p.agent, p.architecture, p.hyperparameters, properties(e)]) AS found
ORDER BY study
"""
FOUND = ("number", "agent", "architecture", "hyperparameters", "evaluation")

OBSERVED = """
UNWIND $studies AS name
MATCH (s:Study {name: name})-[:PROPOSED]->(p:Proposal)-[:RESULTED_IN]->(e:Evaluation)
RETURN name, s.direction AS direction, collect([p.number, p.architecture, e.value]) AS found
ORDER BY name
"""

OF_TASK = """
MATCH (t:Task) WHERE ($task IS NULL OR t.name = $task) AND ($protocol IS NULL OR t.protocol = $protocol)
MATCH (t)<-[:ON]-(e:Evaluation)-[:OF]->(a:Architecture)
WHERE $space IS NULL OR a.space = $space
OPTIONAL MATCH (e)<-[:RESULTED_IN]-(p:Proposal)<-[:PROPOSED]-(s:Study)
RETURN properties(e) AS evaluation, s.name AS study, s.direction AS direction, p.number AS number,
       p.agent AS agent, a.key AS architecture, t.name AS task, t.protocol AS protocol,
       p.hyperparameters AS hyperparameters
ORDER BY study, number, e.id
"""

TASK = """
MERGE (t:Task {id: $id})
ON CREATE SET t.name = $name, t.protocol = $protocol
"""

IMPORT = """
MATCH (t:Task {id: $task})
UNWIND $rows AS row
MATCH (a:Architecture {key: row.architecture})
MERGE (e:Evaluation {id: row.id})
WITH t, a, e, row WHERE NOT EXISTS { (e)-[:OF]->() }
SET e += row.properties, e.created = timestamp()
CREATE (e)-[:OF]->(a)
CREATE (e)-[:ON]->(t)
"""


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

    def of_studies(self, names: Sequence[str]) -> list[Evaluation]:
        """Return the evaluations of these studies, by study and number."""
        groups = self._connection.read(lambda tx: plain(tx.run(OF_STUDIES, studies=list(names))))
        return self._with_networks([row for group in groups for row in _rows_of(group)])

    def observed(self, names: Sequence[str]) -> Observed:
        """Return what these studies found, without the networks themselves."""
        # The trainer reads no history: it is not to wait for numpy.
        import numpy as np

        groups = self._connection.read(lambda tx: plain(tx.run(OBSERVED, studies=list(names))))
        rows = [row for group in groups for row in sorted(group["found"], key=lambda row: int(row[0]))]
        numbers, keys, values = zip(*rows, strict=True) if rows else ((), (), ())
        sizes = [len(group["found"]) for group in groups]
        signs = [-1.0 if group["direction"] == "minimise" else 1.0 for group in groups]
        found = np.array(values, np.float64)
        return Observed(
            np.repeat(np.array([group["name"] for group in groups], np.str_), sizes),
            np.array(numbers, np.int64),
            np.array(keys, np.str_),
            found,
            np.repeat(np.array(signs), sizes) * found,
        )

    def of_task(self, task: str | None, space: str | None, protocol: str | None) -> list[Evaluation]:
        """Return all evaluations of a task, a space and a protocol, imported ones too; None stands for any."""
        return self._read(OF_TASK, task=task, space=space, protocol=protocol)

    def add(self, task: str, protocol: str, rows: Iterable[tuple[str, str, Result]]) -> None:
        """Import results: (id, architecture key, result); the architectures must be there.

        An id that is there already is left as it is. Each batch is one transaction, so an interrupted
        import goes on where it stopped.
        """
        at = task_id(task, protocol)
        self._connection.write(lambda tx: tx.run(TASK, id=at, name=task, protocol=protocol).consume())
        for part in batched(rows, BATCH):
            table = [
                {"id": id_, "architecture": key, "properties": result_properties(result)}
                for id_, key, result in sorted(part, key=lambda row: row[0])
            ]
            self._connection.write(partial(_import, task=at, rows=table))

    def _read(self, query: str, **parameters: Any) -> list[Evaluation]:
        return self._with_networks(self._connection.read(lambda tx: plain(tx.run(query, parameters))))

    def _with_networks(self, rows: Sequence[Mapping[str, Any]]) -> list[Evaluation]:
        networks = self._architectures.get_many(row["architecture"] for row in rows)
        return [evaluation_from(row, networks[row["architecture"]]) for row in rows]


def _rows_of(group: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return one row an evaluation of a study, by number."""
    study = {name: group[name] for name in ("study", "direction", "task", "protocol")}
    rows = [{**study, **dict(zip(FOUND, found, strict=True))} for found in group["found"]]
    return sorted(rows, key=lambda row: int(row["number"]))


def _import(tx: ManagedTransaction, task: str, rows: Sequence[Mapping[str, Any]]) -> None:
    tx.run(IMPORT, task=task, rows=rows).consume()


def record(tx: ManagedTransaction, results: Sequence[tuple[str, Result]]) -> None:
    """Store the results of proposals, by id, that the caller has locked and that have none yet."""
    rows = [{"id": id_, "properties": result_properties(result)} for id_, result in results]
    saved = [{"id": id_, **vars(result.checkpoint)} for id_, result in results if result.checkpoint]
    if rows:
        tx.run(RECORD, rows=rows).consume()
    if saved:
        tx.run(CHECKPOINT, rows=saved).consume()


def task_id(task: str, protocol: str) -> str:
    """Return the id of the node of a task under a protocol."""
    return f"{task}@{protocol}"
