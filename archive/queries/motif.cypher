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
MATCH (t)<-[:ON]-(result:Evaluation)-[:OF]->(a:Architecture)
// Each network is looked through once, however many results it has.
WITH a.key AS key, count(result) AS results
// Few networks have the operations, and the steps behind them cost most.
MATCH (a:Architecture {key: key})
OPTIONAL MATCH (a)-[:HAS_LAYER]->(part:Layer)
WHERE part.op IN $operations
WITH key, CASE WHEN count(part) > 1 THEN key END AS searched
OPTIONAL MATCH (a:Architecture {key: searched})-[:HAS_LAYER]->(one:Layer)-[:FEEDS]->(two:Layer)-[:FEEDS]->(after:Layer),
               (before:Layer)-[:FEEDS]->(one)
WHERE one.op IN $operations AND two.op IN $operations
OPTIONAL MATCH (before)-[past:FEEDS]->(after)
OPTIONAL MATCH (before)-[:FEEDS]->(skip:Layer)-[:FEEDS]->(after)
WHERE skip.op IN $skips
WITH key, count(past) + count(skip) > 0 AS motif
MATCH (a:Architecture {key: key})<-[:OF]-(e:Evaluation)-[:ON]->(t:Task)
WHERE ($task IS NULL OR t.name = $task) AND ($protocol IS NULL OR t.protocol = $protocol)
  AND e.partial IS NULL AND NOT isNaN(e.value)
OPTIONAL MATCH (e)<-[:RESULTED_IN]-(:Proposal)<-[:PROPOSED]-(s:Study)
OPTIONAL MATCH (other:Study)-[:ON]->(t)
WITH key, motif, a.space AS space, e.id AS evaluation, e.value AS value, t.name AS task, t.protocol AS protocol,
     s.objective AS own, collect(DISTINCT other.objective) AS objectives
WITH key, motif, space, evaluation, value, task, protocol,
     coalesce(own, CASE WHEN size(objectives) = 1 THEN objectives[0] END) AS objective
WHERE $objective IS NULL OR objective = $objective
RETURN task, protocol, objective, space, motif, count(DISTINCT key) AS networks, count(evaluation) AS evaluations,
       avg(value) AS mean, stDev(value) AS std, min(value) AS lowest, max(value) AS highest
ORDER BY task, protocol, objective, space, motif DESC
