"""Deletion of a study with its proposals and results; data shared with other studies stay.

    deleted     the study, its proposals, their evaluations and texts
    kept        architectures with their costs, distances and morphisms, tasks, agents, workers, files of weights

A task that has no study and no result any more is without a direction, as before its first one.

`archive db gc` removes files of weights that no evaluation names any more. A result of another
study that reuses one of this study keeps its value. Its `answered_from` is marked as deleted,
because a new study of the same name may give the id to another result.

Trainers stop the trials of deleted proposals as they stop cancelled ones
(`archive.store.wake_up`).

Deletion runs in batches, and ends with a transaction that finds the study empty, so additions of a
running search are deleted, too. An interrupted deletion leaves the study with a budget of 0, and
repeating the call completes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from archive.database.statements import revised, rewritten
from archive.store.properties import read_column

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.database.connection import Connection

BATCH = 500

COUNTS = """
MATCH (p:Proposal {study: $study})
USING INDEX SEEK p:Proposal(study)
OPTIONAL MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
RETURN count(p) AS proposals, count(e) AS evaluations, count(CASE WHEN p.state = 'RUNNING' THEN 1 END) AS running
"""

REPEATS = (
    "MATCH (e:Evaluation) WHERE e.answered_from STARTS WITH $prefix AND NOT e.id STARTS "
    "WITH $prefix"
)
REPEATED = f"{REPEATS} RETURN count(e) AS repeated"
MARK = f"""
{REPEATS} AND NOT e.answered_from ENDS WITH $mark
WITH e ORDER BY e.id LIMIT $limit
SET e.answered_from = e.answered_from + $mark
RETURN count(e) AS done
"""

LEARNERS = """
MATCH (s:Study {name: $study})<-[:WARM_STARTED_FROM]-(other:Study)
RETURN other.name AS name ORDER BY name
"""

CLOSE = f"""
MATCH (s:Study {{name: $study}})
USING INDEX SEEK s:Study(name)
SET s.budget = 0, {revised("s")}, {rewritten("s")}
"""

BATCH_OF_PROPOSALS = """
MATCH (p:Proposal {study: $study})
USING INDEX SEEK p:Proposal(study)
WITH p LIMIT $limit
OPTIONAL MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
OPTIONAL MATCH (p)-[:HAS_TEXT]->(t:RunText)
DETACH DELETE e, t, p
RETURN count(*) AS done
"""

LAST = """
MATCH (s:Study {name: $study})
USING INDEX SEEK s:Study(name)
WHERE NOT EXISTS { (s)-[:PROPOSED]->() }
DETACH DELETE s
"""

# Results of files may give the task any direction once nothing contradicts it.
UNDIRECT = """
MATCH (s:Study {name: $study})-[:ON]->(t:Task)
WHERE NOT EXISTS { (s)-[:PROPOSED]->() }
MATCH (t)<-[:ON]-(other)
WITH t, other LIMIT 2
WITH t, count(other) AS users
WHERE users = 1
SET t.direction = NULL
"""

LEFT = "MATCH (s:Study {name: $study}) RETURN count(s) AS left"

MARK_OF_DELETED = " (deleted)"


@dataclass(frozen=True)
class Deletion:
    """Result of the deletion of a study.

    Attributes:
        study: Its name.
        proposals: Number of deleted proposals.
        evaluations: Number of deleted results.
        running: Number of the deleted proposals that were in training.
        repeated: Number of results of other studies that repeat one of these; they are kept.
        learners: Studies that started warm from it.
    """

    study: str
    proposals: int
    evaluations: int
    running: int
    repeated: int
    learners: tuple[str, ...]


def plan(connection: Connection, study: str) -> Deletion:
    """Return the effects that the deletion of a study would have."""
    return connection.read(partial(_plan, study=study))


def delete(connection: Connection, study: str) -> Deletion:
    """Delete a study, and return the effects."""
    deletion = plan(connection, study)
    remove = partial(_batch, query=BATCH_OF_PROPOSALS, study=study)
    mark = partial(_batch, query=MARK, prefix=f"{study}#", mark=MARK_OF_DELETED)
    while True:
        connection.write(lambda tx: tx.run(CLOSE, study=study).consume())
        for work in (remove, mark):
            while connection.write(work, alone=True):
                pass

        if connection.write(partial(_last, study=study), alone=True):
            return deletion


def _plan(tx: ManagedTransaction, study: str) -> Deletion:
    counts = tx.run(COUNTS, study=study).single(strict=True).data()
    repeated = tx.run(REPEATED, prefix=f"{study}#").single(strict=True)["repeated"]
    learners = tuple(read_column(tx.run(LEARNERS, study=study), "name"))
    return Deletion(study, **counts, repeated=repeated, learners=learners)


def _batch(tx: ManagedTransaction, query: str, **parameters: str) -> int:
    return int(tx.run(query, {**parameters, "limit": BATCH}).single(strict=True)["done"])


def _last(tx: ManagedTransaction, study: str) -> bool:
    """Delete the node of an empty study; return False if it still has a proposal."""
    # The lock keeps out additions of a running search.
    tx.run(CLOSE, study=study).consume()
    tx.run(UNDIRECT, study=study).consume()
    tx.run(LAST, study=study).consume()
    left: int = tx.run(LEFT, study=study).single(strict=True)["left"]
    return left == 0
