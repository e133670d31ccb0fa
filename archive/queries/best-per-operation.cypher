// The best network that holds each operation, and how networks with it do on average.
// Each task under each protocol is ranked by itself, in the direction of its studies, or of the imported results where
// these are all there is; where studies disagree, larger is better.
// $task = null         Name of the task; null stands for every task.
// $protocol = null     How it was measured; null stands for every way.
// $minimise = null     Whether smaller values are better; null stands for what the task's studies want.
MATCH (t:Task)
WHERE ($task IS NULL OR t.name = $task) AND ($protocol IS NULL OR t.protocol = $protocol)
OPTIONAL MATCH (s:Study)-[:ON]->(t)
WITH t, collect(DISTINCT s.direction) AS wanted
WITH t, coalesce($minimise, CASE WHEN size(wanted) > 0 THEN wanted = ['minimise']
                                 ELSE coalesce(t.direction, 'maximise') = 'minimise' END) AS minimise
MATCH (t)<-[:ON]-(e:Evaluation)-[:OF]->(a:Architecture)
WHERE NOT isNaN(e.value)
MATCH (a)-[:HAS_LAYER]->(l:Layer)
WHERE NOT l.op IN ['ip', 'op']
WITH DISTINCT t.name AS task, t.protocol AS protocol, l.op AS operation, a.key AS architecture, e.id AS evaluation,
     e.value AS value, CASE WHEN minimise THEN -e.value ELSE e.value END AS score, minimise
ORDER BY score DESC, architecture, evaluation
WITH task, protocol, minimise, operation, collect(architecture) AS found, collect(value) AS observed, avg(value) AS mean,
     count(DISTINCT architecture) AS networks
RETURN task, protocol, operation, networks, size(observed) AS evaluations, observed[0] AS best, mean,
       found[0] AS architecture
ORDER BY task, protocol, CASE WHEN minimise THEN -best ELSE best END DESC, operation
