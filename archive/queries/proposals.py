"""Statements about proposals and their results: rows of a study, curves, claims and failures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.database.connection import Connection

STEPS_OF_STUDY = """
MATCH (p:Proposal {study: $study})
USING INDEX SEEK p:Proposal(study)
MATCH (p)-[:OF]->(:Architecture)<-[m:MORPHED_INTO]-(parent:Architecture)
WITH p.number / 1000 AS part, collect([p.number, parent.key, m.operations]) AS rows
RETURN rows
"""

DETAILS_OF_PROPOSAL = """
MATCH (p:Proposal {id: $id})
OPTIONAL MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
OPTIONAL MATCH (e)-[:SAVED]->(w:Weights)
RETURN p.hyperparameters AS hyperparameters, p.priority AS priority, p.created AS created, e.seed AS seed,
       p.cause AS cause, p.refused_by AS refused_by, p.memory_bytes AS memory_bytes,
       e.device AS device, e.hardware AS hardware, e.answered_from AS answered_from, w.uri AS weights
"""

VALUES_OF_NETWORKS = """
UNWIND $keys AS key
MATCH (a:Architecture {key: key})<-[:OF]-(p:Proposal {study: $study})
OPTIONAL MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
RETURN key, p.number AS number, p.agent AS agent, e.value AS value
"""

WAITING = """
MATCH (s:Study)
WITH s.name AS study
MATCH (p:Proposal {open: study})
WHERE p.state = 'WAITING'
RETURN p.id AS id, study, p.number AS number, p.architecture AS architecture, p.agent AS agent,
       coalesce(p.priority, 0.0) AS priority, p.attempts AS attempts, p.created AS created, p.reason AS reason,
       p.cause AS cause
ORDER BY priority DESC, created, id LIMIT $shown
"""

FAILED = """
MATCH (p:Proposal {state: 'FAILED'})
RETURN p.id AS id, p.study AS study, p.number AS number, p.architecture AS architecture, p.reason AS reason,
       p.cause AS cause, p.worker AS worker, p.attempts AS attempts, p.finished AS finished
ORDER BY finished DESC, id LIMIT $shown
"""

CURVES_OF_RESULTS = """
UNWIND $ids AS id
MATCH (e:Evaluation {id: id})
USING INDEX SEEK e:Evaluation(id)
RETURN id, [name IN keys(e) WHERE name STARTS WITH 'curve_' | [name, e[name]]] AS curve
"""

# In a list, because ArcadeDB would seek by state, through the entries of all studies
# (`archive.queue.claims`).
CURVES_IN_TRAINING = """
MATCH (p:Proposal {open: $study})
USING INDEX SEEK p:Proposal(open)
WHERE p.state IN ['RUNNING'] AND p.curve_epoch IS NOT NULL
RETURN p.id AS id, p.number AS number,
       [name IN keys(p) WHERE name STARTS WITH 'curve_' | [name, p[name]]] AS curve
ORDER BY number LIMIT $limit
"""

CLAIM_FIELDS = (
    "[w.id, p.study, p.number, p.architecture, c.at, c.ended, c.outcome, p.state, p.finished]"
)

# Each MATCH starts from a bound node: with a single pattern, ArcadeDB scans the claims of all
# workers.
CLAIMS_OF_STUDY = f"""
MATCH (p:Proposal {{study: $study}})
USING INDEX SEEK p:Proposal(study)
MATCH (p)<-[c:CLAIMED]-(w:Worker)
WHERE $since IS NULL OR p.state = 'RUNNING' OR p.finished >= $since OR c.at >= $since OR c.ended >= $since
WITH w, c, p ORDER BY c.at DESC LIMIT $most
RETURN collect({CLAIM_FIELDS}) AS rows
"""

CLAIMS_OF_ALL = f"""
MATCH (w:Worker)
WHERE $since IS NULL OR w.heartbeat >= $since
MATCH (w)-[c:CLAIMED]->(p:Proposal)
WHERE $since IS NULL OR p.state = 'RUNNING' OR p.finished >= $since OR c.at >= $since OR c.ended >= $since
WITH w, c, p ORDER BY c.at DESC LIMIT $most
RETURN collect({CLAIM_FIELDS}) AS rows
"""

TIME_OF_SERVER = "RETURN timestamp() AS now"

REASONS_OF_STUDY = """
MATCH (p:Proposal {study: $study})
USING INDEX SEEK p:Proposal(study)
WHERE p.state = 'FAILED'
RETURN coalesce(p.reason, '') AS reason, count(p) AS count
ORDER BY count DESC, reason LIMIT 5
"""

AGENTS = "MATCH (a:Agent) WHERE a.id IN $ids RETURN a.id AS id, a.config AS config"

CALLS_OF_AGENTS = """
MATCH (:Study {name: $study})-[:PROPOSED]->(p:Proposal) WHERE $begin <= p.number < $end
RETURN p.number AS number, p.agent AS agent, p.request AS request, p.based_on AS based_on ORDER BY number
"""
"""Calls of agents in a study, from one number of a proposal to another.

Proposals are numbered in their order.
"""

AGENT = "MATCH (a:Agent {id: $id}) RETURN a.kind, a.config"

VALUES_OF_RESULT = """
MATCH (e:Evaluation {id: $id})
RETURN e.value, [name IN $further | e['metric_' + name]]
"""

TRACES_OF_STUDIES = """
UNWIND $names AS name
MATCH (s:Study {name: name})-[:PROPOSED]->(p:Proposal)
OPTIONAL MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
RETURN name, p.number AS number, p.functional_key AS key, p.agent AS agent, p.request AS request,
       p.seconds AS seconds, e.value AS value
ORDER BY name, number
"""


def read_claims(
    connection: Connection, studies: Sequence[str], seconds: float | None, most: int
) -> tuple[int, list[Sequence[Any]]]:
    """Return the server's time and the rows of claims, the latest first.

    Args:
        connection: Connection to the archive.
        studies: Names of studies; empty for all.
        seconds: Length of time up to now; None for all time.
        most: Most rows of a study, or of all studies.

    Returns:
        The time in milliseconds since 1970, and rows as `CLAIM_FIELDS` lists them.
    """
    now = connection.read(lambda tx: int(tx.run(TIME_OF_SERVER).single(strict=True)["now"]))
    since = None if seconds is None else now - round(min(1000 * seconds, now))

    def read_rows(tx: ManagedTransaction) -> list[Sequence[Any]]:
        rows: list[Sequence[Any]] = []
        for study in studies:
            for record in tx.run(CLAIMS_OF_STUDY, study=study, since=since, most=most):
                rows += record["rows"]

        if not studies:
            for record in tx.run(CLAIMS_OF_ALL, since=since, most=most):
                rows += record["rows"]

        return rows

    return now, connection.read(read_rows)
