"""Deleting a study: its proposals and results go, what it shares with other studies stays.

    goes     the study, its proposals, their evaluations
    stays    architectures with their costs, distances and morphisms, tasks, agents, workers, files of weights

Files of weights that no evaluation names any more are left to `archive db gc`. A result of another study that repeats
one of this study keeps its value; its `answered_from` says that the original was deleted, since a new study of the same
name may give the id to another result.

Deletion runs in batches. It is closed by a transaction that finds the study empty: what a search adds meanwhile goes,
too. A deletion that was interrupted leaves the study with a budget of 0, and the same call goes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from archive.database.statements import revised, rewritten

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

REPEATS = "MATCH (e:Evaluation) WHERE e.answered_from STARTS WITH $prefix AND NOT e.id STARTS WITH $prefix"
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
DETACH DELETE e, p
RETURN count(*) AS done
"""

LAST = """
MATCH (s:Study {name: $study})
USING INDEX SEEK s:Study(name)
WHERE NOT EXISTS { (s)-[:PROPOSED]->() }
DETACH DELETE s
"""

LEFT = "MATCH (s:Study {name: $study}) RETURN count(s) AS left"

MARK_OF_DELETED = " (deleted)"


@dataclass(frozen=True)
class Deletion:
    """What the deletion of a study removes and touches.

    Attributes:
        study: Its name.
        proposals: How many proposals go.
        evaluations: How many results go.
        running: How many of the proposals are being trained: their results will be refused.
        repeated: Results of other studies that repeat one of this study without a training; they stay.
        learners: Studies that started warm from it; they keep their own results.
    """

    study: str
    proposals: int
    evaluations: int
    running: int
    repeated: int
    learners: tuple[str, ...]


def plan(connection: Connection, study: str) -> Deletion:
    """Return what the deletion of a study would remove."""
    return connection.read(partial(_plan, study=study))


def delete(connection: Connection, study: str) -> Deletion:
    """Delete a study, and return what went."""
    found = plan(connection, study)
    remove = partial(_batch, query=BATCH_OF_PROPOSALS, study=study)
    mark = partial(_batch, query=MARK, prefix=f"{study}#", mark=MARK_OF_DELETED)
    while True:
        connection.write(lambda tx: tx.run(CLOSE, study=study).consume())
        for work in (remove, mark):
            while connection.write(work, alone=True):
                pass
        if connection.write(partial(_last, study=study), alone=True):
            return found


def _plan(tx: ManagedTransaction, study: str) -> Deletion:
    counts = tx.run(COUNTS, study=study).single(strict=True).data()
    repeated = tx.run(REPEATED, prefix=f"{study}#").single(strict=True)["repeated"]
    learners = tuple(row["name"] for row in tx.run(LEARNERS, study=study))
    return Deletion(study, **counts, repeated=repeated, learners=learners)


def _batch(tx: ManagedTransaction, query: str, **parameters: str) -> int:
    return int(tx.run(query, {**parameters, "limit": BATCH}).single(strict=True)["done"])


def _last(tx: ManagedTransaction, study: str) -> bool:
    """Delete the node of an empty study; False where it still has a proposal."""
    # The lock keeps out what a search may be adding at this moment.
    tx.run(CLOSE, study=study).consume()
    tx.run(LAST, study=study).consume()
    left: int = tx.run(LEFT, study=study).single(strict=True)["left"]
    return left == 0
