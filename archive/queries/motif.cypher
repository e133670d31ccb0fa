// Effect of a motif: networks with and without a skip around two convolutions of 3 x 3.
// Each objective of a task under a protocol is separate. Imported results belong to the objective of the studies; they
// have none if studies have several. Results of trainings that paused at a rung are left out.
// $task = null         Name of the task; null stands for all tasks.
// $protocol = null     Name of the training protocol; null stands for all protocols.
// $objective = null    Objective of the studies; null stands for all objectives.
// $operations = ["conv3", "res3", "conv3x3-bn-relu", "nor_conv_3x3"]    The two layers in a row.
// $skips = ["skip_connect"]    Layers that pass on their input; an edge around the two layers is a skip as well.
MATCH (t:Task)
WHERE ($task IS NULL OR t.name = $task) AND ($protocol IS NULL OR t.protocol = $protocol)
OPTIONAL MATCH (s:Study)-[:ON]->(t)
WITH t, collect(DISTINCT s.objective) AS objectives
MATCH (t)<-[:ON]-(e:Evaluation)-[:OF]->(a:Architecture)
WHERE e.partial IS NULL AND NOT isNaN(e.value)
OPTIONAL MATCH (e)<-[:RESULTED_IN]-(:Proposal)<-[:PROPOSED]-(s:Study)
WITH t, e, a, coalesce(s.objective, CASE WHEN size(objectives) = 1 THEN objectives[0] END) AS objective
WHERE $objective IS NULL OR objective = $objective
// Each network is looked through once, however many results it has.
WITH a, collect({task: t.name, protocol: t.protocol, objective: objective, id: e.id, value: e.value}) AS results
OPTIONAL MATCH (a)-[:HAS_LAYER]->(one:Layer)
WHERE one.op IN $operations
OPTIONAL MATCH (before:Layer)-[:FEEDS]->(one)-[:FEEDS]->(two:Layer)-[:FEEDS]->(after:Layer)
WHERE two.op IN $operations
OPTIONAL MATCH (before)-[past:FEEDS]->(after)
OPTIONAL MATCH (before)-[:FEEDS]->(skip:Layer)-[:FEEDS]->(after)
WHERE skip.op IN $skips
WITH a, results, count(past) + count(skip) > 0 AS motif
UNWIND results AS result
RETURN result.task AS task, result.protocol AS protocol, result.objective AS objective, a.space AS space, motif,
       count(DISTINCT a.key) AS networks, count(result.id) AS evaluations, avg(result.value) AS mean,
       stDev(result.value) AS std, min(result.value) AS lowest, max(result.value) AS highest
ORDER BY task, protocol, objective, space, motif DESC
