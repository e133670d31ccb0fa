// Cost of each task: trainings and their seconds, by study and for imports; results that reuse others are left out.
// $task = null     Name of the task; null stands for all tasks.
MATCH (t:Task) WHERE $task IS NULL OR t.name = $task
MATCH (t)<-[:ON]-(e:Evaluation)
WHERE e.answered_from IS NULL
OPTIONAL MATCH (e)<-[:RESULTED_IN]-(p:Proposal)
WITH t, e, p, CASE WHEN e.seconds - e.seconds = 0.0 AND e.seconds >= 0.0 THEN e.seconds END AS measured
RETURN t.name AS task, t.protocol AS protocol, p.study AS study, count(e) AS evaluations, sum(measured) AS seconds,
       sum(measured) / 3600 AS hours, avg(measured) AS mean_seconds, sum(e.epochs) AS epochs,
       count(e) - count(measured) AS unmeasured
ORDER BY task, protocol, study
