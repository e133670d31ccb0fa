"""Cypher statements of a load; each is idempotent.

Every row is one node or one relationship. Neighbours are matched step by step from bound nodes:
with a single pattern, ArcadeDB scans all nodes.
"""

from archive.database.statements import follows_from_state, rewritten

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
