// The best network with each operation, and the mean value of networks with it.
// Each objective of a task under a protocol is ranked separately, in the direction of its studies, or of the imported
// results if it has no study; if studies disagree, larger is better. Imported results belong to the objective of the
// studies; they have none if studies have several. Results of trainings that paused at a rung are left out.
// $task = null         Name of the task; null stands for all tasks.
// $protocol = null     Name of the training protocol; null stands for all protocols.
// $objective = null    Objective of the studies; null stands for all objectives.
// $minimise = null (true or false)    Whether smaller values are better; null: as the task's studies have it.
OPTIONAL MATCH (other:Study)-[:ON]->(searched:Task)
WITH collect(DISTINCT {task: searched.name, protocol: searched.protocol, objective: other.objective,
                       direction: other.direction}) AS studied
MATCH (t:Task)
WHERE ($task IS NULL OR t.name = $task) AND ($protocol IS NULL OR t.protocol = $protocol)
MATCH (t)<-[:ON]-(result:Evaluation)-[:OF]->(a:Architecture)
// Each network is looked through once, however many results it has.
WITH studied, a.key AS architecture, count(result) AS results
MATCH (a:Architecture {key: architecture})-[:HAS_LAYER]->(l:Layer)
WHERE NOT l.op IN ['ip', 'op']
WITH studied, architecture, collect(DISTINCT l.op) AS operations
MATCH (a:Architecture {key: architecture})<-[:OF]-(e:Evaluation)-[:ON]->(t:Task)
WHERE ($task IS NULL OR t.name = $task) AND ($protocol IS NULL OR t.protocol = $protocol)
  AND e.partial IS NULL AND NOT isNaN(e.value)
OPTIONAL MATCH (e)<-[:RESULTED_IN]-(:Proposal)<-[:PROPOSED]-(s:Study)
WITH architecture, operations, e.id AS evaluation, e.value AS value, t.name AS task, t.protocol AS protocol,
     t.direction AS direction, s.objective AS own,
     [study IN studied WHERE study.task = t.name AND study.protocol = t.protocol | study] AS known
// All studies of a task have one objective if they have the first one's.
WITH architecture, operations, evaluation, value, task, protocol, direction,
     [study IN known | study.direction + ' ' + study.objective] AS directions,
     coalesce(own, CASE WHEN all(study IN known WHERE study.objective = known[0].objective)
                        THEN known[0].objective END) AS objective
WHERE $objective IS NULL OR objective = $objective
WITH architecture, operations, evaluation, value, task, protocol, objective,
     coalesce($minimise, CASE WHEN objective IS NULL THEN coalesce(direction, 'maximise') = 'minimise'
                              ELSE NOT 'maximise ' + objective IN directions END) AS minimise
WITH architecture, operations, evaluation, value, task, protocol, objective, minimise,
     CASE WHEN minimise THEN -value ELSE value END AS score
ORDER BY score DESC, architecture, evaluation
UNWIND operations AS operation
WITH task, protocol, objective, minimise, operation, collect(architecture) AS ranked, collect(value) AS observed,
     avg(value) AS mean, count(DISTINCT architecture) AS networks
RETURN task, protocol, objective, operation, networks, size(observed) AS evaluations, observed[0] AS best, mean,
       ranked[0] AS architecture
ORDER BY task, protocol, objective, CASE WHEN minimise THEN -best ELSE best END DESC, operation
