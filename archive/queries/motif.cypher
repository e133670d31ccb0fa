// Effect of a motif: networks with and without a skip around two convolutions of 3 x 3.
// Each objective of a task under a protocol is separate. Imported results belong to the objective of the studies; they
// have none if studies have several. Results of trainings that paused at a rung are left out.
// $task = null         Name of the task; null stands for all tasks.
// $protocol = null     Name of the training protocol; null stands for all protocols.
// $objective = null    Objective of the studies; null stands for all objectives.
// $operations = ["conv3", "res3", "conv3x3-bn-relu", "nor_conv_3x3"]    The two layers in a row.
// $skips = ["skip_connect"]    Layers that pass on their input; an edge around the two layers is a skip as well.
MATCH (one:Layer)
WHERE one.op IN $operations
MATCH (before:Layer)-[:FEEDS]->(one)-[:FEEDS]->(two:Layer)-[:FEEDS]->(after:Layer)
WHERE two.op IN $operations
OPTIONAL MATCH (before)-[past:FEEDS]->(after)
OPTIONAL MATCH (before)-[:FEEDS]->(skip:Layer)-[:FEEDS]->(after)
WHERE skip.op IN $skips
WITH one, count(past) + count(skip) AS ways
WHERE ways > 0
MATCH (holder:Architecture)-[:HAS_LAYER]->(one)
WITH collect(DISTINCT holder.key) AS keys
OPTIONAL MATCH (other:Study)-[:ON]->(searched:Task)
WITH keys, collect(DISTINCT {task: searched.name, protocol: searched.protocol, objective: other.objective}) AS studied
MATCH (t:Task)
WHERE ($task IS NULL OR t.name = $task) AND ($protocol IS NULL OR t.protocol = $protocol)
MATCH (t)<-[:ON]-(e:Evaluation)-[:OF]->(a:Architecture)
WHERE e.partial IS NULL AND NOT isNaN(e.value)
OPTIONAL MATCH (e)<-[:RESULTED_IN]-(:Proposal)<-[:PROPOSED]-(s:Study)
WITH a.key AS key, a.key IN keys AS motif, a.space AS space, e.id AS evaluation, e.value AS value, t.name AS task,
     t.protocol AS protocol, s.objective AS own,
     [study IN studied WHERE study.task = t.name AND study.protocol = t.protocol | study.objective] AS objectives
WITH key, motif, space, evaluation, value, task, protocol,
     coalesce(own, CASE WHEN size(objectives) = 1 THEN objectives[0] END) AS objective
WHERE $objective IS NULL OR objective = $objective
RETURN task, protocol, objective, space, motif, count(DISTINCT key) AS networks, count(evaluation) AS evaluations,
       avg(value) AS mean, stDev(value) AS std, min(value) AS lowest, max(value) AS highest
ORDER BY task, protocol, objective, space, motif DESC
