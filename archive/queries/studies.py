"""Statements about studies: lists, counts and best values, tasks and recipes."""

from __future__ import annotations

from typing import LiteralString

from archive.store.records import CANCELLED
from archive.store.studies.creation import FEASIBLE, WHOLE

SPACES_OF_STUDIES = """
MATCH (s:Study)-[:IN]->(space:Space)
RETURN s.name AS study, space.name AS space, s.objective AS objective, s.created AS created
ORDER BY created DESC, study
"""

STUDIES = """
MATCH (s:Study)-[:ON]->(t:Task)
MATCH (s)-[:IN]->(space:Space)
RETURN properties(s) AS study, t.name AS task, t.protocol AS protocol, space.name AS space,
       space.config AS space_config
ORDER BY s.created, s.name
"""

OPEN_PROPOSALS = """
UNWIND $studies AS study
MATCH (p:Proposal {open: study})
USING INDEX SEEK p:Proposal(open)
RETURN study, sum(CASE WHEN p.state = 'RUNNING' THEN 1 ELSE 0 END) AS running,
       sum(CASE WHEN p.state = 'WAITING' THEN 1 ELSE 0 END) AS waiting
"""

COUNTS_OF_STUDY = f"""
MATCH (s:Study {{name: $study}})
USING INDEX SEEK s:Study(name)
MATCH (p:Proposal {{study: $study}})
USING INDEX SEEK p:Proposal(study)
OPTIONAL MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
WITH p.state AS state, p.agent AS agent, p.number AS number, coalesce({WHOLE}, false) AS whole,
     CASE WHEN e.value - e.value = 0.0 AND {FEASIBLE} THEN e.value END AS value,
     CASE WHEN e.answered_from IS NULL AND e.seconds - e.seconds = 0.0 AND e.seconds >= 0.0
          THEN e.seconds END AS seconds,
     e.answered_from AS answered,
     CASE WHEN p.state = 'FAILED' AND (p.reason = '{CANCELLED}' OR p.reason STARTS WITH '{CANCELLED}: ')
          THEN 1 ELSE 0 END AS cancelled
RETURN state, whole, agent, min(number) AS first, count(*) AS proposals, max(value) AS largest,
       min(value) AS smallest, sum(seconds) AS seconds,
       count(answered) AS answered, sum(cancelled) AS cancelled
"""

PROTOCOLS = """
MATCH (t:Task)
OPTIONAL MATCH (s:Study)-[:ON]->(t)
RETURN t.name AS task, t.protocol AS protocol, t.direction AS direction, collect(DISTINCT s.direction) AS directions
"""

# Reused results repeat others, and partial ones are not comparable.
BEST_NETWORKS = """
MATCH (t:Task {name: $task}) WHERE t.protocol = $protocol
MATCH (t)<-[:ON]-(e:Evaluation)-[:OF]->(a:Architecture)
WHERE e.answered_from IS NULL AND e.partial IS NULL AND NOT isNaN(e.value)
WITH a, e, CASE WHEN $minimise THEN -e.value ELSE e.value END AS score
ORDER BY score DESC, e.id LIMIT $k
RETURN a.key AS architecture, e.value AS value, e.id AS evaluation, e.epochs AS epochs, e.seconds AS seconds
"""

NAMES_OF_STUDIES: LiteralString = "MATCH (s:Study) RETURN s.name AS name"

SIZES = """
MATCH (n) WHERE n:Study OR n:Architecture OR n:Evaluation
RETURN labels(n)[0] AS label, count(n) AS nodes ORDER BY label
"""

STUDIES_BY_PREFIX = """
MATCH (s:Study)
WHERE s.name STARTS WITH $prefix
RETURN s.name AS name
ORDER BY name
"""
