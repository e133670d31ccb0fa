// Networks that were proposed more than once on one task, and the time saved by reusing their results.
// $task = null         Name of the task; null stands for all tasks.
// $protocol = null     Name of the training protocol; null stands for all protocols.
MATCH (t:Task)
WHERE ($task IS NULL OR t.name = $task) AND ($protocol IS NULL OR t.protocol = $protocol)
MATCH (t)<-[:ON]-(s:Study)
MATCH (s)-[:PROPOSED]->(p:Proposal)
OPTIONAL MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
WITH t, s, p, e, coalesce(e.answered_from, '') AS source
OPTIONAL MATCH (known:Evaluation {id: source})
WITH t.name AS task, t.protocol AS protocol, p.functional_key AS network, count(DISTINCT s) AS studies,
     count(DISTINCT p) AS proposals, count(known) AS answered,
     sum(CASE WHEN known.seconds - known.seconds = 0.0 AND known.seconds >= 0.0 THEN known.seconds END) AS saved,
     count(e) - count(e.answered_from) AS trainings
RETURN task, protocol, sum(proposals) AS proposals, count(network) AS networks,
       sum(CASE WHEN studies > 1 THEN 1 ELSE 0 END) AS in_several_studies, sum(answered) AS answered,
       sum(saved) AS seconds_saved, sum(CASE WHEN trainings > 1 THEN trainings - 1 ELSE 0 END) AS trained_again
ORDER BY task, protocol
