"""Statements about networks: results, relatives, steps, and the networks of a space."""

from __future__ import annotations

EVALUATIONS_OF_NETWORK = """
MATCH (:Architecture {key: $key})<-[:OF]-(e:Evaluation)-[:ON]->(t:Task)
OPTIONAL MATCH (e)<-[:RESULTED_IN]-(p:Proposal)
OPTIONAL MATCH (p)<-[:PROPOSED]-(s:Study)
RETURN e.id AS evaluation, p.study AS study, p.number AS number, p.agent AS agent, t.name AS task,
       t.protocol AS protocol, s.objective AS objective, coalesce(e.partial, false) AS partial,
       coalesce(s.direction, t.direction) AS direction,
       e.value AS value, e.epochs AS epochs, e.seconds AS seconds, e.seed AS seed, e.model AS model,
       e.source AS source, e.device AS device, e.answered_from AS answered_from, e.created AS created,
       [name IN keys(e) WHERE name STARTS WITH 'metric_' | [name, e[name]]] AS metrics
ORDER BY task, protocol, objective, value DESC, evaluation
LIMIT 1000
"""

PROPOSALS_OF_NETWORK = """
MATCH (:Architecture {key: $key})<-[:OF]-(p:Proposal)
WHERE NOT p.state IN ['COMPLETE', 'PRUNED']
RETURN p.id AS id, p.study AS study, p.number AS number, p.state AS state, p.reason AS reason
ORDER BY id LIMIT 100
"""

RELATIVES = """
UNWIND $keys AS key
MATCH (a:Architecture {key: key})
OPTIONAL MATCH (a)<-[:OF]-(e:Evaluation)-[:ON]->(t:Task)
OPTIONAL MATCH (e)<-[:RESULTED_IN]-(:Proposal)<-[:PROPOSED]-(s:Study)
WITH key, a.layers AS layers, t.name AS task, s.objective AS objective, count(e) AS evaluations,
     min(e.value) AS lowest, max(e.value) AS largest
ORDER BY key, task, objective
RETURN key, layers, sum(evaluations) AS evaluations, collect([task, objective, lowest, largest]) AS ranges
"""

STEPS_OF_NETWORK = """
MATCH (a:Architecture {key: $key})
OPTIONAL MATCH (a)<-[up:MORPHED_INTO]-(parent:Architecture)
WITH a, collect([parent.key, up.operations]) AS parents
OPTIONAL MATCH (a)-[down:MORPHED_INTO]->(child:Architecture)
RETURN parents, collect([child.key, down.operations]) AS children
"""

NETWORKS_BY_PREFIX = """
MATCH (a:Architecture) WHERE a.key STARTS WITH $prefix
RETURN a.key AS key, a.space AS space, a.layers AS layers ORDER BY key LIMIT 20
"""

NETWORKS_BY_MODEL = """
MATCH (a:Architecture)<-[:OF]-(e:Evaluation) WHERE e.model STARTS WITH $prefix
WITH a, min(e.model) AS model
RETURN a.key AS key, a.space AS space, a.layers AS layers, model ORDER BY model LIMIT 20
"""

SIZES_OF_SPACES = """
MATCH (a:Architecture)
RETURN a.space AS space, count(a) AS networks
ORDER BY networks DESC, space
"""

# The only clauses of the query: both servers then answer it by an index.
SIZE_OF_SPACE = "MATCH (a:Architecture {space: $space}) RETURN count(a) AS networks"

RESULTS_OF_NETWORK = """
MATCH (:Architecture {key: $key})<-[:OF]-(e:Evaluation)-[:ON]->(t:Task)
RETURN e.id AS evaluation, t.name AS task, t.protocol AS protocol, e.value AS value, e.epochs AS epochs,
       e.seconds AS seconds
ORDER BY task, evaluation
"""

NETWORKS_OF_STUDY = """
MATCH (s:Study {name: $study})-[:PROPOSED]->(p:Proposal)
WHERE p.state IN ['COMPLETE', 'PRUNED']
RETURN DISTINCT p.architecture AS key
"""

RESULTS_OF_NETWORKS = """
UNWIND $keys AS key
MATCH (a:Architecture {key: key})
OPTIONAL MATCH (a)<-[:OF]-(e:Evaluation)
RETURN key, a.layers AS layers, a.edges AS edges, count(e) AS evaluations
"""

CREATION = "MATCH (m:SchemaMigration) RETURN min(m.applied) AS created"
"""Time of creation, which distinguishes archives that existed at one address at different times."""

NUMBER_OF_NETWORKS = "MATCH (a:Architecture) RETURN count(a) AS architectures"
"""Number of architectures. Without further clauses, both servers know it without counting."""

CODES_OF_SPACE = """
MATCH (a:Architecture {space: $space})
RETURN a.key AS key
"""

CODES_BY_KEY = """
MATCH (a:Architecture {space: $space})
WITH substring(a.key, 0, 2) AS part, collect([a.key, a.code]) AS rows
RETURN rows
"""

# Results that were imported with their source: the networks are published.
PUBLISHED_ACCURACY = """
MATCH (e:Evaluation)
WHERE e.source IS NOT NULL AND e.metric_top1 IS NOT NULL
MATCH (e)-[:OF]->(a:Architecture)
MATCH (e)-[:ON]->(t:Task)
WHERE $space IS NULL OR a.space = $space
RETURN t.name AS task, collect([a.key, e.metric_top1, e.model, e.family]) AS results
"""

KEYS_BY_TASK = """
MATCH (t:Task)<-[:ON]-(:Evaluation)-[:OF]->(a:Architecture)
WHERE $space IS NULL OR a.space = $space
RETURN t.name AS name, collect(DISTINCT a.key) AS keys
"""

KEYS_BY_AGENT = """
MATCH (p:Proposal)-[:OF]->(a:Architecture)
WHERE p.agent IS NOT NULL AND ($space IS NULL OR a.space = $space)
RETURN p.agent AS name, collect(DISTINCT a.key) AS keys
"""

KEYS_BY_STUDY = """
MATCH (p:Proposal)-[:OF]->(a:Architecture)
WHERE p.state IN ['COMPLETE', 'PRUNED'] AND ($space IS NULL OR a.space = $space)
RETURN p.study AS name, collect(DISTINCT a.key) AS keys
"""

KEYS_BY_SPACE = """
MATCH (a:Architecture)
WHERE $space IS NULL OR a.space = $space
RETURN a.space AS name, collect(a.key) AS keys
"""

SPACES = "MATCH (a:Architecture) RETURN DISTINCT a.space AS space ORDER BY space"

KEY_OF_NETWORK = "MATCH (a:Architecture {key: $key}) RETURN a.key"
