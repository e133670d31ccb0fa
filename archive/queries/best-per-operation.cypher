// The best network with each operation, and the mean value of networks with it.
// Each objective of a task under a protocol is ranked separately, in the direction of its studies, or of the imported
// results if it has no study; if studies disagree, larger is better. Imported results belong to the objective of the
// studies; they have none if studies have several. Results of trainings that paused at a rung are left out.
// $task = null         Name of the task; null stands for all tasks.
// $protocol = null     Name of the training protocol; null stands for all protocols.
// $objective = null    Objective of the studies; null stands for all objectives.
// $minimise = null (true or false)    Whether smaller values are better; null: as the task's studies have it.
MATCH (t:Task)
WHERE ($task IS NULL OR t.name = $task) AND ($protocol IS NULL OR t.protocol = $protocol)
OPTIONAL MATCH (s:Study)-[:ON]->(t)
WITH t, collect(DISTINCT s.objective) AS objectives, collect(DISTINCT s.direction + ' ' + s.objective) AS directions
MATCH (t)<-[:ON]-(e:Evaluation)-[:OF]->(a:Architecture)
WHERE e.partial IS NULL AND NOT isNaN(e.value)
OPTIONAL MATCH (e)<-[:RESULTED_IN]-(:Proposal)<-[:PROPOSED]-(s:Study)
WITH t, directions, e, a, coalesce(s.objective, CASE WHEN size(objectives) = 1 THEN objectives[0] END) AS objective
WHERE $objective IS NULL OR objective = $objective
WITH t, e, a, objective,
     coalesce($minimise, CASE WHEN objective IS NULL THEN coalesce(t.direction, 'maximise') = 'minimise'
                              ELSE NOT 'maximise ' + objective IN directions END) AS minimise
MATCH (a)-[:HAS_LAYER]->(l:Layer)
WHERE NOT l.op IN ['ip', 'op']
WITH DISTINCT t.name AS task, t.protocol AS protocol, objective, l.op AS operation, a.key AS architecture,
     e.id AS evaluation, e.value AS value, CASE WHEN minimise THEN -e.value ELSE e.value END AS score, minimise
ORDER BY score DESC, architecture, evaluation
WITH task, protocol, objective, minimise, operation, collect(architecture) AS ranked, collect(value) AS observed,
     avg(value) AS mean, count(DISTINCT architecture) AS networks
RETURN task, protocol, objective, operation, networks, size(observed) AS evaluations, observed[0] AS best, mean,
       ranked[0] AS architecture
ORDER BY task, protocol, objective, CASE WHEN minimise THEN -best ELSE best END DESC, operation
