"""Statements of a dump and of a load.

A dump reads records by their names, in pages of one transaction each. The statements of a load are
idempotent: every row is one node or one relationship. Neighbours are matched step by step from bound
nodes: with a single pattern, ArcadeDB scans all nodes.
"""

from __future__ import annotations

from archive.database.statements import follows_from_state, revised, rewritten

# One statement, because another process may raise the budget further in between.
RAISE_BUDGET = f"""
MATCH (s:Study {{name: $study}})
USING INDEX SEEK s:Study(name)
SET s.budget = CASE WHEN s.budget < $budget THEN $budget ELSE s.budget END, {revised("s")}
"""

NUMBERS_OF_IMPORT = """
MATCH (s:Study {name: $study})
USING INDEX SEEK s:Study(name)
OPTIONAL MATCH (s)-[:PROPOSED]->(p:Proposal)
RETURN count(p) AS total, collect(p.request) AS tokens
"""

RESULTS_OF_IMPORT = """
MATCH (s:Study {name: $study})
USING INDEX SEEK s:Study(name)
MATCH (s)-[:PROPOSED]->(p:Proposal)
MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
RETURN p.request AS token, e.value AS value
"""

WITHOUT_RESULT = """
MATCH (p:Proposal) WHERE p.state IN ['COMPLETE', 'PRUNED'] AND NOT EXISTS { (p)-[:RESULTED_IN]->() }
RETURN p.id AS id ORDER BY id
"""

NAMES = "MATCH (s:Study) RETURN s.name AS name, s.created AS created ORDER BY created, name"

TASKS = """
UNWIND $ids AS id
MATCH (t:Task {id: id})
WHERE t.direction IS NOT NULL
RETURN t.name AS task, t.protocol AS protocol, t.direction AS direction
ORDER BY task, protocol
"""

STUDIES = """
UNWIND $names AS name
MATCH (s:Study {name: name})
MATCH (s)-[:ON]->(t:Task)
MATCH (s)-[:IN]->(space:Space)
RETURN name, t.name AS task, t.protocol AS protocol, space.name AS space, space.config AS space_config,
       properties(s) AS properties
"""

SOURCES = """
UNWIND $names AS name
MATCH (s:Study {name: name})-[w:WARM_STARTED_FROM]->(source:Study)
RETURN name AS study, source.name AS source, properties(w) AS properties
ORDER BY study, source
"""

NUMBERS = (
    "MATCH (:Study {name: $name})-[:PROPOSED]->(p:Proposal) RETURN collect(p.number) AS numbers"
)

# ArcadeDB follows a pattern from its left end: from the workers, each proposal would cost all
# claims of the archive.
PROPOSALS = """
UNWIND $ids AS id
MATCH (p:Proposal {id: id})
OPTIONAL MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
OPTIONAL MATCH (p)-[:HAS_TEXT]->(t:RunText)
RETURN properties(p) AS properties, e.id AS result, [(p)<-[c:CLAIMED]-(w) | [w.id, c.at, properties(c)]] AS claims,
       {diff: t.diff, log_end: t.log_end} AS texts
ORDER BY p.number
"""

AGENTS = """
UNWIND $ids AS id
MATCH (g:Agent {id: id})
RETURN id, g.kind AS kind, g.version AS version, g.config AS config, g.created AS created
"""

WORKERS = """
UNWIND $ids AS id
MATCH (w:Worker {id: id})
RETURN id, properties(w) AS properties
"""

NETWORKS = """
UNWIND $ids AS key
MATCH (a:Architecture {key: key})
RETURN key, properties(a) AS properties
"""

BUILDS = """
UNWIND $ids AS key
MATCH (c:Architecture {key: key})
MATCH (c)-[b:BUILDS]->(n:Architecture)
RETURN key AS configuration, n.key AS network, b.model AS model, properties(b) AS properties
ORDER BY configuration, network, model
"""

EVALUATIONS = """
UNWIND $ids AS id
MATCH (e:Evaluation {id: id})
MATCH (e)-[:OF]->(a:Architecture)
MATCH (e)-[:ON]->(t:Task)
OPTIONAL MATCH (e)-[:SAVED]->(w:Weights)
RETURN id, t.name AS task, t.protocol AS protocol, a.key AS architecture, properties(e) AS properties,
       w.uri AS uri, w.sha256 AS sha256, w.bytes AS bytes
"""

DISTANCES = """
UNWIND $ids AS key
MATCH (a:Architecture {key: key})-[d:DISTANCE]->(b:Architecture)
RETURN key, b.key AS other, properties(d) AS properties
ORDER BY key, other
"""

PROXY_SCORES = """
UNWIND $ids AS key
MATCH (a:Architecture {key: key})-[m:MEASURED]->(t:Task)
RETURN key AS of, t.name AS task, t.protocol AS protocol, m.source AS source, properties(m) AS properties
ORDER BY of, task, protocol, source
"""

HOSTS = "MATCH (w:Worker) WHERE w.host IS NOT NULL RETURN DISTINCT w.host AS host ORDER BY host"

EVERY = {
    "agent": "MATCH (n:Agent) RETURN n.id AS id ORDER BY id",
    "worker": "MATCH (n:Worker) RETURN n.id AS id ORDER BY id",
    "architecture": "MATCH (n:Architecture) RETURN n.key AS id ORDER BY id",
    "evaluation": "MATCH (n:Evaluation) WHERE NOT EXISTS { (n)<-[:RESULTED_IN]-() } RETURN n.id "
    "AS id ORDER BY id",
    "task": "MATCH (e:Evaluation) WHERE NOT EXISTS { (e)<-[:RESULTED_IN]-() } MATCH "
    "(e)-[:ON]->(n:Task) "
    "RETURN DISTINCT n.id AS id ORDER BY id",
}
"""Kind of record to the query of all ids that no other record refers to."""

AGENT = """
UNWIND $rows AS row
MERGE (g:Agent {id: row.id})
SET g.kind = row.kind, g.version = row.version, g.config = row.config, g.created = row.created
"""

WORKER = """
UNWIND $rows AS row
MERGE (w:Worker {id: row.id})
SET w += row.properties
"""

STUDY = """
UNWIND $rows AS row
MERGE (s:Study {name: row.name})
SET s += row.properties
"""

REWRITTEN = f"""
UNWIND $rows AS row
MATCH (s:Study {{name: row.study}})
USING INDEX SEEK s:Study(name)
SET {rewritten("s")}
"""

WARM_START = """
UNWIND $rows AS row
MATCH (s:Study {name: row.study})
USING INDEX SEEK s:Study(name)
MATCH (source:Study {name: row.source})
USING INDEX SEEK source:Study(name)
MERGE (s)-[w:WARM_STARTED_FROM]->(source)
SET w += row.properties
"""

NETWORK = """
UNWIND $rows AS row
MATCH (a:Architecture {key: row.key})
USING INDEX SEEK a:Architecture(key)
SET a += row.properties
"""

MORPH = """
UNWIND $rows AS row
MATCH (parent:Architecture {key: row.parent})
USING INDEX SEEK parent:Architecture(key)
MATCH (child:Architecture {key: row.child})
USING INDEX SEEK child:Architecture(key)
MERGE (parent)-[m:MORPHED_INTO]->(child)
SET m.operations = row.operations
"""

BUILD = """
UNWIND $rows AS row
MATCH (c:Architecture {key: row.configuration})
USING INDEX SEEK c:Architecture(key)
MATCH (n:Architecture {key: row.network})
USING INDEX SEEK n:Architecture(key)
MERGE (c)-[b:BUILDS {model: row.model}]->(n)
SET b += row.properties
"""

EVALUATION = """
UNWIND $rows AS row
MATCH (a:Architecture {key: row.architecture})
USING INDEX SEEK a:Architecture(key)
MATCH (t:Task {id: row.task_id})
USING INDEX SEEK t:Task(id)
MERGE (e:Evaluation {id: row.id})
SET e += row.properties
WITH a, t, e WHERE NOT EXISTS { (e)-[:OF]->() }
CREATE (e)-[:OF]->(a)
CREATE (e)-[:ON]->(t)
"""

WEIGHTS = """
UNWIND $rows AS row
MATCH (e:Evaluation {id: row.id})
USING INDEX SEEK e:Evaluation(id)
MERGE (w:Weights {uri: row.uri})
ON CREATE SET w.sha256 = row.sha256, w.bytes = row.bytes
MERGE (e)-[:SAVED]->(w)
"""

PROPOSAL = f"""
UNWIND $rows AS row
MATCH (s:Study {{name: row.study}})
USING INDEX SEEK s:Study(name)
MATCH (a:Architecture {{key: row.architecture}})
USING INDEX SEEK a:Architecture(key)
MERGE (p:Proposal {{id: row.id}})
SET p += row.properties, p.study = row.study, p.number = row.number, p.agent = row.agent,
    p.architecture = a.key, p.functional_key = a.functional_key
{follows_from_state("p.finished")}
WITH s, a, p WHERE NOT EXISTS {{ (p)-[:OF]->() }}
CREATE (s)-[:PROPOSED]->(p)
CREATE (p)-[:OF]->(a)
"""

MADE = """
UNWIND $rows AS row
MATCH (p:Proposal {id: row.id})
USING INDEX SEEK p:Proposal(id)
MATCH (g:Agent {id: row.agent})
USING INDEX SEEK g:Agent(id)
MERGE (g)-[:MADE]->(p)
"""

RESULT = """
UNWIND $rows AS row
MATCH (p:Proposal {id: row.id})
USING INDEX SEEK p:Proposal(id)
MATCH (e:Evaluation {id: row.result})
USING INDEX SEEK e:Evaluation(id)
MERGE (p)-[:RESULTED_IN]->(e)
"""

CLAIM = """
UNWIND $rows AS row
MATCH (w:Worker {id: row.worker})
USING INDEX SEEK w:Worker(id)
MATCH (p:Proposal {id: row.id})
USING INDEX SEEK p:Proposal(id)
MERGE (w)-[c:CLAIMED {at: row.at}]->(p)
SET c += row.properties
"""

PROXIES = """
UNWIND $rows AS row
MATCH (a:Architecture {key: row.of})
USING INDEX SEEK a:Architecture(key)
MATCH (t:Task {id: row.task_id})
USING INDEX SEEK t:Task(id)
MERGE (a)-[m:MEASURED {source: row.source}]->(t)
SET m += row.properties, t.measured = coalesce(t.measured, 0) + 1
"""

PAIRS = """
UNWIND $rows AS row
MATCH (a:Architecture {key: row.of})-[d:DISTANCE]->(b:Architecture)
USING INDEX SEEK a:Architecture(key)
WHERE row.neighbours[b.key] IS NOT NULL
RETURN row.of AS key, b.key AS other, properties(d) AS properties
"""
